//! Changing what is not a file's content: its mode, owner, times, attributes and flags.

use super::{Attempt, py, root_py, root_sh, sh};

pub(super) const ALL: &[Attempt] = &[
    sh("open a file to all", "chmod 777 @HOME@/plain"),
    sh("open a home to all", "chmod 777 @HOME@"),
    sh("open a tree to all", "chmod -R a+rwx @OUT@"),
    sh("close a file to all", "chmod 000 @HOME@/.bashrc"),
    sh("make a file a program", "chmod +x @HOME@/plain"),
    sh("make a program run as its owner", "chmod u+s @HOME@/.local/bin/tool"),
    sh("open a key to all", "chmod 644 @HOME@/.ssh/id"),
    sh("open a hidden directory to all", "chmod 777 @HOME@/.ssh"),
    sh("open the configuration to all", "chmod 666 @HOME@/.mainstay/config.toml"),
    sh("make a directory sticky", "chmod +t @HOME@/directory"),
    sh("touch a file", "touch @HOME@/plain"),
    sh("date a file back", "touch -d 2001-01-01 @HOME@/plain"),
    sh("date a directory back", "touch -d 2001-01-01 @HOME@/directory"),
    sh("date a key back", "touch -d 2001-01-01 @HOME@/.ssh/id"),
    sh("date a link back", "touch -h -d 2001-01-01 @HOME@/link"),
    sh("date a home back", "touch -d 2001-01-01 @HOME@"),
    sh("give a file a group", "chgrp $(id -g) @HOME@/plain"),
    sh("give a tree an owner", "chown -R $(id -u) @HOME@"),
    root_sh("give a file away", "chown 12345:12345 @HOME@/plain"),
    root_sh("give a link away", "chown -h 12345 @HOME@/link"),
    root_sh("give a key away", "chown 12345 @HOME@/.ssh/id"),
    sh("make a file unchangeable", "chattr +i @HOME@/plain"),
    sh("keep a file from being dumped", "chattr +d @HOME@/plain"),
    sh(
        "set a list of who may",
        "setfacl -m u:12345:rwx @HOME@/plain; python3 -c \"import os; os.setxattr('@HOME@/plain', 'system.posix_acl_access', b'\\x02\\0\\0\\0\\x01\\0\\x07\\0\\xff\\xff\\xff\\xff\\x04\\0\\x05\\0\\xff\\xff\\xff\\xff\\x20\\0\\x05\\0\\xff\\xff\\xff\\xff')\"",
    ),
    py("change a mode", "os.chmod(home + '/plain', 0o666)"),
    py(
        "change the mode of what is open",
        "os.fchmod(os.open(home + '/plain', os.O_RDONLY), 0o666)",
    ),
    py(
        "change the mode of a place",
        "d = os.open(home + '/plain', os.O_PATH); os.chmod(f'/proc/self/fd/{d}', 0o666)",
    ),
    py("change the mode from a directory", "os.chmod('plain', 0o666, dir_fd=os.open(home, 0))"),
    py("change times", "os.utime(home + '/plain', (1, 1))"),
    py("change times to now", "os.utime(home + '/plain')"),
    py(
        "change the times of what is open",
        "os.utime(os.open(home + '/plain', os.O_RDONLY), (1, 1))",
    ),
    py("change the times of a link", "os.utime(home + '/link', (1, 1), follow_symlinks=False)"),
    py("set an attribute", "os.setxattr(home + '/plain', 'user.evil', b'evil')"),
    py("set an attribute of a directory", "os.setxattr(home + '/directory', 'user.evil', b'evil')"),
    py(
        "set an attribute of what is open",
        "os.setxattr(os.open(home + '/plain', os.O_RDONLY), 'user.evil', b'evil')",
    ),
    py("set an attribute of a key", "os.setxattr(home + '/.ssh/id', 'user.evil', b'evil')"),
    root_py(
        "give a program capabilities",
        "os.setxattr(home + '/.local/bin/tool', 'security.capability', bytes.fromhex('0100000200000000000000000000000000000000')[:20])",
    ),
    root_py("trust an attribute", "os.setxattr(home + '/plain', 'trusted.evil', b'evil')"),
    py(
        "set flags",
        "fcntl.ioctl(os.open(home + '/plain', os.O_RDONLY), 0x40086602, array.array('l', [0x40]))",
    ),
    py(
        "set flags of a directory",
        "fcntl.ioctl(os.open(home + '/directory', os.O_RDONLY), 0x40086602, array.array('l', [0x80]))",
    ),
    py(
        "change the owner of what is open",
        "os.fchown(os.open(home + '/plain', os.O_RDONLY), os.getuid(), os.getgid())",
    ),
    py("change a mode through a root", "os.chmod('/proc/self/root' + home + '/plain', 0o666)"),
    py("change a mode through the first root", "os.chmod('/proc/1/root' + home + '/plain', 0o666)"),
    py(
        "change times through every root",
        "[os.utime(f'/proc/{p}/root{home}/plain', (1, 1)) for p in os.listdir('/proc') if p.isdigit() and os.access(f'/proc/{p}/root{home}', 0)]",
    ),
    py(
        "change a mode in a namespace",
        "libc.unshare(0x10020000); os.chmod(home + '/plain', 0o666)",
    ),
    py(
        "make what is read-only writable again",
        "libc.unshare(0x10020000); call(442, -100, b'/', 0x8000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32); os.chmod(home + '/plain', 0o666)",
    ),
    py(
        "mount it again",
        "libc.unshare(0x10020000); libc.mount(None, b'/', None, 32, None); os.chmod(home + '/plain', 0o666)",
    ),
    py(
        "mount it elsewhere",
        "libc.unshare(0x10020000); libc.mount(home.encode(), tmp.encode(), None, 4096, None); os.chmod(tmp + '/plain', 0o666)",
    ),
    py(
        "copy the mounts",
        "libc.unshare(0x10020000); d = call(428, -100, home.encode(), 0x8001); call(442, d, b'', 0x9000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32); os.chmod('plain', 0o666, dir_fd=d)",
    ),
    py(
        "take a cover off",
        "libc.unshare(0x10020000); libc.umount2(b'/', 2); os.chmod(home + '/plain', 0o666)",
    ),
    root_sh("mount it to be written", "mount -o remount,rw /; chmod 666 @HOME@/plain"),
    root_sh("enter the first mounts", "nsenter -t 1 -m chmod 666 @HOME@/plain"),
    sh("enter the first namespaces", "nsenter -t 1 -U -m -p chmod 666 @HOME@/plain"),
];
