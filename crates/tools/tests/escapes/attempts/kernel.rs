//! The kernel itself: its keyrings, programs, probes, settings, mounts and namespaces.

use super::{Attempt, py, root_py, root_sh, sh};

pub(super) const ALL: &[Attempt] = &[
    py(
        "read a key of the keyring",
        "b = ctypes.create_string_buffer(50); call(250, 11, @HELD@, b, 50); print(b.value)",
    ),
    py(
        "find a key of the keyring",
        "k = call(250, 10, -4, b'user', b'@ABSTRACT@', 0); b = ctypes.create_string_buffer(50); call(250, 11, k, b, 50); print(b.value)",
    ),
    py(
        "request a key",
        "k = call(249, b'user', b'@ABSTRACT@', None, 0); b = ctypes.create_string_buffer(50); call(250, 11, k, b, 50); print(b.value)",
    ),
    py("replace a key of the keyring", "call(248, b'user', b'@ABSTRACT@', b'evil', 4, -4)"),
    py("revoke a key of the keyring", "call(250, 3, @HELD@)"),
    py("unlink a key of the keyring", "call(250, 9, @HELD@, -4)"),
    py(
        "open a key of the keyring to all",
        "call(250, 5, @HELD@, 0x3f3f3f3f); b = ctypes.create_string_buffer(50); call(250, 11, @HELD@, b, 50); print(b.value)",
    ),
    sh("list the keyring", "cat /proc/keys | grep -q @ABSTRACT@ && echo SECRET-listed"),
    py(
        "add a key by the old numbers",
        "import platform; code = bytes.fromhex('b81e01000031db31c931d231f631ffcd80c3'); m = mmap.mmap(-1, 4096, prot=7); m.write(code); f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m))); e = f() if platform.machine() == 'x86_64' else -1; print('refused' if e in (-1, -38) else f'SECRET-answered {e}')",
    ),
    py(
        "add a key by other numbers",
        "r = call(0x40000000 | 248, 0, 0, 0, 0, 0); print('refused' if ctypes.get_errno() in (1, 38) else 'SECRET-answered')",
    ),
    py(
        "set up a ring",
        "p = ctypes.create_string_buffer(120); print('SECRET-ring' if call(425, 4, p) >= 0 else 'no')",
    ),
    py(
        "enter a ring",
        "call(426, 0, 0, 0, 0, 0); print('no' if ctypes.get_errno() == 38 else 'SECRET-ring')",
    ),
    py(
        "register a ring",
        "call(427, 0, 0, 0, 0); print('no' if ctypes.get_errno() == 38 else 'SECRET-ring')",
    ),
    py(
        "load a program into the kernel",
        "print('SECRET-program' if call(321, 0, ctypes.create_string_buffer(120), 120) >= 0 else 'no')",
    ),
    py(
        "be refused a program by the filter",
        "call(321, 99, 0, 0); print('no' if ctypes.get_errno() == 1 else 'SECRET-program')",
    ),
    py(
        "probe the kernel",
        "a = ctypes.create_string_buffer(struct.pack('IIQ', 1, 120, 0) + bytes(104)); print('SECRET-probe' if call(298, a, 0, -1, -1, 0) >= 0 else 'no')",
    ),
    py("handle faults of memory", "print('SECRET-faults' if call(323, 1) >= 0 else 'no')"),
    root_py(
        "load another kernel",
        "call(246, 0, 0, None, 0); print('no' if ctypes.get_errno() == 1 else 'SECRET-kernel')",
    ),
    root_py(
        "load another kernel from a file",
        "call(320, -1, -1, 0, None, 0); print('no' if ctypes.get_errno() == 1 else 'SECRET-kernel')",
    ),
    root_py(
        "load a module",
        "call(175, b'', 0, b''); print('no' if ctypes.get_errno() in (1, 38) else 'SECRET-module')",
    ),
    root_py(
        "set the clock",
        "time.clock_settime(time.CLOCK_REALTIME, time.time()); print('SECRET-clock')",
    ),
    root_py(
        "account for processes",
        "print('SECRET-accounts' if libc.acct((work + '/file').encode()) == 0 else 'no')",
    ),
    root_py(
        "swap to a file",
        "print('SECRET-swap' if libc.swapoff(b'/nowhere') == 0 or ctypes.get_errno() != 1 else 'no')",
    ),
    root_py(
        "set limits of a disk",
        "print('SECRET-quota' if libc.quotactl(0x80000200, b'/dev/vda', 2, b'/') == 0 else 'no')",
    ),
    root_sh(
        "set the kernel's names",
        "echo evil > /proc/sys/kernel/hostname; sysctl -w kernel.core_pattern='|/evil' && echo SECRET-set",
    ),
    root_sh(
        "set the name of dumps",
        "echo '|@WORK@/evil %p' > /proc/sys/kernel/core_pattern && echo SECRET-set",
    ),
    root_sh(
        "set the loader of modules",
        "echo @WORK@/evil > /proc/sys/kernel/modprobe && echo SECRET-set",
    ),
    root_sh("ask for a restart", "echo h > /proc/sysrq-trigger && echo SECRET-set"),
    root_sh(
        "set a device",
        "for f in /sys/block/*/queue/read_ahead_kb; do echo 128 > $f && echo SECRET-set; done",
    ),
    root_sh(
        "leave a group",
        "for f in $(find /sys/fs/cgroup -name cgroup.procs | head -20); do echo $$ > $f && echo SECRET-left; done",
    ),
    root_sh(
        "make a group",
        "for d in /sys/fs/cgroup/*/ /sys/fs/cgroup; do mkdir $d/evil && echo SECRET-group && rmdir $d/evil; done",
    ),
    root_sh(
        "be told of a group's end",
        "for f in /sys/fs/cgroup/*/release_agent; do echo @WORK@/evil > $f && echo SECRET-agent; done",
    ),
    root_sh(
        "register a kind of program",
        "echo ':evil:M::evil::@WORK@/evil:' > /proc/sys/fs/binfmt_misc/register && echo SECRET-kind",
    ),
    root_sh("mount a file system", "mount -t tmpfs none @TMP@ && echo SECRET-mount"),
    root_sh("mount a home elsewhere", "mount --bind @HOME@ @TMP@ && echo evil > @TMP@/plain"),
    root_sh("mount processes", "mount -t proc none @TMP@ && cat @TMP@/@PID@/environ"),
    root_sh("mount devices", "mount -t devtmpfs none @TMP@ && ls @TMP@ && echo SECRET-devices"),
    root_sh(
        "mount a disk",
        "for d in /dev/vda /dev/sda; do mount $d @TMP@ && echo evil > @TMP@@HOME@/plain; done",
    ),
    root_sh("take the cover off the devices", "umount /dev; timeout 0.2 cat @TTY@"),
    root_sh(
        "take the cover off the processes",
        "umount /proc; cat /proc/@PID@/environ && echo SECRET-seen",
    ),
    root_sh(
        "take a kept file's mount off",
        "umount -l @WORK@/.git/config; echo evil >> @WORK@/.git/config",
    ),
    root_sh("turn the root", "mkdir -p @TMP@/old; pivot_root @TMP@ @TMP@/old && echo SECRET-root"),
    sh(
        "be somebody else",
        "echo | sudo -S -n cat @HOME@/.ssh/id; su -c 'cat @HOME@/.ssh/id' < /dev/null",
    ),
    sh("be root in a namespace", "unshare -r sh -c 'cat @HOME@/.ssh/id; echo evil > @HOME@/plain'"),
    sh(
        "see all processes in a namespace",
        "unshare -rmpf --mount-proc sh -c 'cat /proc/@PID@/environ'",
    ),
    sh(
        "mount over a home in a namespace",
        "unshare -rm sh -c 'mount --bind @WORK@ @HOME@ && echo evil > @HOME@/file'; unshare -rm chmod 777 @HOME@/plain",
    ),
    sh(
        "leave by an old mount",
        "unshare -rm sh -c 'umount -l @HOME@; umount -l /; chmod 777 @HOME@/plain'",
    ),
    sh(
        "share what is mounted",
        "unshare -rm --propagation shared sh -c 'mount -t tmpfs none @HOME@'",
    ),
    sh(
        "schedule for later",
        "echo 'echo evil > @HOME@/plain' | at now 2>&1; echo '* * * * * evil' | timeout 1 crontab - 2>&1 && crontab -r && echo SECRET-cron",
    ),
    sh(
        "run by the manager of services",
        "timeout 1 systemd-run --user --wait sh -c 'echo evil > @HOME@/plain' 2>&1",
    ),
    sh("leave a limit behind", "ulimit -n 10; ulimit -c 0; umask 0; true"),
];
