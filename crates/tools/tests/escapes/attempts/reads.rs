//! Reading what is hidden.

use super::{Attempt, py, root_py, root_sh, sh};

pub(super) const ALL: &[Attempt] = &[
    sh("read a key", "cat @HOME@/.ssh/id"),
    sh("read all keys", "cat @HOME@/.ssh/*"),
    sh("read the configuration", "cat @HOME@/.mainstay/config.toml"),
    sh("read the keeper's spool", "cat @SPOOL@/*/*"),
    sh("copy a key", "cp @HOME@/.ssh/id @WORK@/key; cat @WORK@/key"),
    sh("move a key", "mv @HOME@/.ssh/id @WORK@/key; cat @WORK@/key"),
    sh("move the keys", "mv @HOME@/.ssh @HOME@/keys; cat @HOME@/keys/id"),
    sh("read a key through a link", "ln -s @HOME@/.ssh/id @WORK@/key-link; cat @WORK@/key-link"),
    sh(
        "read a key through a directory's link",
        "ln -s @HOME@ @WORK@/home-link; cat @WORK@/home-link/.ssh/id",
    ),
    sh("read a key through a root", "cat /proc/self/root@HOME@/.ssh/id"),
    sh("read a key through the first root", "cat /proc/1/root@HOME@/.ssh/id"),
    sh("read a key through every root", "cat /proc/[0-9]*/root@HOME@/.ssh/id"),
    sh("pack the keys", "tar cf @WORK@/keys.tar @HOME@/.ssh; cat @WORK@/keys.tar"),
    sh("compare a key", "diff @HOME@/.ssh/id /dev/null"),
    sh("search a key", "grep -r SECRET @HOME@/.ssh @HOME@/.mainstay"),
    sh("read a key from below", "cd @HOME@/.ssh && cat id"),
    sh("run a key", "sh @HOME@/.ssh/id 2>&1"),
    sh("read a key as a script", ". @HOME@/.ssh/id"),
    sh(
        "read a key by git",
        "cd @WORK@ && git hash-object -w @HOME@/.ssh/id && git show $(git hash-object @HOME@/.ssh/id)",
    ),
    sh("read a key by git's difference", "git diff --no-index /dev/null @HOME@/.ssh/id"),
    sh("read the agent's variables", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'"),
    sh("read the variables of the parent", "cat /proc/$PPID/environ"),
    sh("read own variables", "env; set; export -p"),
    sh(
        "read the memory of others",
        "for p in /proc/[0-9]*; do dd if=$p/mem bs=1 count=1 skip=4096 2>&1; done",
    ),
    sh("read shared memory's files", "cat /dev/shm/*"),
    sh("read message queues", "cat /dev/mqueue/*"),
    py("open a key", "tell(home + '/.ssh/id')"),
    py("map a key", "print(mmap.mmap(os.open(home + '/.ssh/id', 0), 0, prot=mmap.PROT_READ)[:])"),
    py(
        "open a key as a place",
        "d = os.open(home + '/.ssh/id', os.O_PATH); tell(f'/proc/self/fd/{d}')",
    ),
    py(
        "open a key from a directory",
        "d = os.open(home + '/.ssh', os.O_PATH); print(os.read(os.open('id', 0, dir_fd=d), 99))",
    ),
    py("send a key", "os.sendfile(1, os.open(home + '/.ssh/id', 0), 0, 100)"),
    py("open a key in a namespace", "libc.unshare(0x10020000); tell(home + '/.ssh/id')"),
    py(
        "open a key elsewhere",
        "libc.unshare(0x10020000); libc.mount((home + '/.ssh').encode(), tmp.encode(), None, 4096, None); tell(tmp + '/id')",
    ),
    py(
        "open a key after changing root",
        "libc.unshare(0x10000000); os.chroot(home); tell('/.ssh/id')",
    ),
    py(
        "read a key by a ring",
        "p = ctypes.create_string_buffer(120); d = call(425, 4, p); print('SECRET-ring' if d >= 0 else 'no ring')",
    ),
    py(
        "read a key by a watch",
        "d = libc.inotify_init1(0); w = libc.inotify_add_watch(d, (home + '/.ssh').encode(), 0xfff); tell(home + '/.ssh/id')",
    ),
    root_sh("read the passwords", "grep -q . /etc/shadow && echo SECRET-shadow"),
    root_sh("read the groups' passwords", "grep -q . /etc/gshadow && echo SECRET-shadow"),
    root_sh(
        "read the passwords through a root",
        "grep -q . /proc/self/root/etc/shadow && echo SECRET-shadow",
    ),
    root_sh(
        "read the passwords through a link",
        "ln -s /etc/shadow @WORK@/shadow; grep -q . @WORK@/shadow && echo SECRET-shadow",
    ),
    root_sh(
        "read a disk",
        "for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c 1 $d > /dev/null && echo SECRET-disk; done",
    ),
    root_sh(
        "make a disk",
        "mknod @WORK@/disk b 254 0 && head -c 1 @WORK@/disk > /dev/null && echo SECRET-disk",
    ),
    root_sh(
        "make the memory",
        "mknod @TMP@/memory c 1 1 && head -c 1 @TMP@/memory && echo SECRET-memory",
    ),
    root_sh("read the kernel's memory", "head -c 1 /proc/kcore > /dev/null && echo SECRET-memory"),
    root_py(
        "make a device by number",
        "os.mknod(work + '/null', 0o20666, os.makedev(1, 3)); print('SECRET-device')",
    ),
];
