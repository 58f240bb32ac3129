//! The user's terminals and other devices.

use super::{Attempt, py, root_py, root_sh, sh};

pub(super) const ALL: &[Attempt] = &[
    sh("read a terminal", "timeout 0.2 cat @TTY@"),
    sh("read every terminal", "for t in /dev/pts/* /dev/tty*; do timeout 0.1 head -c 5 $t; done"),
    sh("read a line of a terminal", "timeout 0.2 sh -c 'read line < @TTY@; echo $line'"),
    sh("write to a terminal", "echo evil > @TTY@"),
    sh("write to every terminal", "for t in /dev/pts/*; do echo evil > $t; done"),
    sh("open a terminal to all", "chmod 666 @TTY@"),
    sh("set a terminal", "stty -F @TTY@ sane"),
    sh("read through a root's terminal", "timeout 0.2 cat /proc/1/root@TTY@"),
    sh("write to all who are there", "echo evil | wall 2>&1; echo evil | write $(id -un) 2>&1"),
    py(
        "open a terminal",
        "print(os.read(os.open('@TTY@', os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY), 100))",
    ),
    py(
        "take a terminal",
        "os.setsid(); d = os.open('@TTY@', os.O_RDWR); fcntl.ioctl(d, termios.TIOCSCTTY, 1)",
    ),
    py(
        "type into a terminal",
        "d = os.open('@TTY@', os.O_RDWR | os.O_NOCTTY); [fcntl.ioctl(d, termios.TIOCSTI, bytes([c])) for c in b'evil']",
    ),
    py(
        "throw typed keys away",
        "termios.tcflush(os.open('@TTY@', os.O_RDWR | os.O_NOCTTY), termios.TCIOFLUSH)",
    ),
    py(
        "set a terminal's size",
        "fcntl.ioctl(os.open('@TTY@', os.O_RDWR | os.O_NOCTTY), termios.TIOCSWINSZ, struct.pack('HHHH', 1, 1, 1, 1)); print(open('@TTY@'))",
    ),
    py(
        "type into a terminal of its own",
        "m, s = os.openpty(); os.setsid(); fcntl.ioctl(s, termios.TIOCSCTTY, 0); fcntl.ioctl(s, termios.TIOCSTI, b'x'); print('SECRET-typed')",
    ),
    py(
        "ask the console",
        "m, s = os.openpty(); fcntl.ioctl(s, 0x541c, b'\\x02'); print('SECRET-console')",
    ),
    py(
        "find the user's terminal by number",
        "print(os.read(os.open('/dev/pts/' + '@TTY@'.rsplit('/')[-1], os.O_RDONLY | os.O_NONBLOCK), 100))",
    ),
    py(
        "mount all terminals",
        "libc.unshare(0x10020000); libc.mount(b'devpts', tmp.encode(), b'devpts', 0, None); print(os.read(os.open(tmp + '/' + '@TTY@'.rsplit('/')[-1], os.O_NONBLOCK), 100))",
    ),
    root_sh("read the screen", "head -c 1 /dev/vcs > /dev/null && echo SECRET-screen"),
    root_sh("read the console", "timeout 0.1 head -c 1 /dev/console && echo SECRET-console"),
    root_sh("read what is typed", "timeout 0.1 head -c 1 /dev/input/event0 && echo SECRET-keys"),
    root_sh("read the kernel's log", "timeout 0.1 head -c 1 /dev/kmsg && echo SECRET-log"),
    root_sh("write the kernel's log", "echo evil > /dev/kmsg && echo SECRET-log"),
    root_sh("use the virtual machine", "exec 3<> /dev/kvm && echo SECRET-device"),
    root_sh("use a file system of one's own", "exec 3<> /dev/fuse && echo SECRET-device"),
    root_sh("use a loop", "exec 3<> /dev/loop-control && echo SECRET-device"),
    root_sh("use a tunnel", "exec 3<> /dev/net/tun && echo SECRET-device"),
    root_sh("load random numbers", "exec 3< /dev/hwrng && echo SECRET-device"),
    root_py(
        "make a terminal's device",
        "os.mknod(tmp + '/tty', 0o20666, os.makedev(136, int('@TTY@'.rsplit('/')[-1]))); print(os.read(os.open(tmp + '/tty', os.O_NONBLOCK), 100))",
    ),
];
