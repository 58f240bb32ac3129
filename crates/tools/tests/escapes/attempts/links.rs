//! Going outside by another name.

use super::{Attempt, py, sh};

pub(super) const ALL: &[Attempt] = &[
    sh("write through a link", "ln -s @HOME@/plain @WORK@/l1; echo evil > @WORK@/l1"),
    sh(
        "write through a link to a directory",
        "ln -s @HOME@ @WORK@/l2; echo evil > @WORK@/l2/plain",
    ),
    sh("write through a relative link", "cd @WORK@; ln -s ../home/plain l3; echo evil > l3"),
    sh("write through two links", "cd @WORK@; ln -s ../home l4; ln -s l4/plain l5; echo evil > l5"),
    sh(
        "write through a link that leads nowhere",
        "ln -s @HOME@/new @WORK@/l6; echo evil > @WORK@/l6",
    ),
    sh("write through the user's link", "echo evil > @HOME@/link"),
    sh("replace the user's link", "ln -sf /etc/passwd @HOME@/link"),
    sh("make a link there", "ln -s /etc/passwd @HOME@/l"),
    sh("make a hard link", "ln @HOME@/plain @WORK@/h1 && echo evil > @WORK@/h1"),
    sh("make a hard link there", "echo evil > @WORK@/h2; ln @WORK@/h2 @HOME@/h2"),
    sh("make a hard link to a key", "ln @HOME@/.ssh/id @WORK@/h3; cat @WORK@/h3"),
    sh("copy by hard links", "cp -al @HOME@/directory @WORK@/h4 && chmod 777 @WORK@/h4/one"),
    sh("write through the root of a process", "echo evil > /proc/self/root@HOME@/plain"),
    sh("write through the directory of a process", "cd @HOME@; echo evil > /proc/self/cwd/plain"),
    sh("write through the first root", "echo evil > /proc/1/root@HOME@/plain"),
    sh("write through the first directory", "cd /proc/1/cwd && echo evil > .@HOME@/plain"),
    sh(
        "write through every root",
        "for p in /proc/[0-9]*; do echo evil > $p/root@HOME@/plain; done 2>&1",
    ),
    sh(
        "write through every descriptor",
        "for d in /proc/[0-9]*/fd/*; do [ -d $d/ ] && echo evil > $d/../home/plain; done 2>&1",
    ),
    sh("write through a thread's root", "echo evil > /proc/thread-self/root@HOME@/plain"),
    sh("write through a map", "for m in /proc/[0-9]*/map_files/*; do echo evil > $m; done 2>&1"),
    sh("write by dots", "cd @WORK@/deep; echo evil > ../../home/plain"),
    sh("write by doubled slashes", "echo evil > //@HOME@//./plain"),
    sh("copy through a link", "ln -s @HOME@ @WORK@/l7; cp /etc/passwd @WORK@/l7/.bashrc"),
    sh(
        "move through a link",
        "ln -s @HOME@ @WORK@/l8; echo evil > @WORK@/x8; mv @WORK@/x8 @WORK@/l8/plain",
    ),
    sh("remove through a link", "ln -s @HOME@ @WORK@/l9; rm @WORK@/l9/plain"),
    sh("change a mode through a link", "ln -s @HOME@/plain @WORK@/la; chmod 777 @WORK@/la"),
    sh("make through a link", "ln -s @HOME@ @WORK@/lb; mkdir @WORK@/lb/new"),
    sh(
        "unpack through a link",
        "cd @TMP@ && mkdir -p lc && echo evil > lc/plain && tar cf lc.tar lc/plain && rm -r lc && ln -s @HOME@ lc && tar xf lc.tar --keep-directory-symlink",
    ),
    sh("sync through a link", "ln -s @HOME@ @TMP@/ld; cp -r @WORK@/file @TMP@/ld/.profile"),
    py(
        "open the parent of a moved directory",
        "os.makedirs(work + '/m/n', exist_ok=True); os.chdir(work + '/m/n'); os.rename(work + '/m/n', tmp + '/n'); open('../../home/plain', 'w').write('evil')",
    ),
    py(
        "link by a descriptor",
        "d = os.open(home + '/plain', os.O_PATH); os.link(f'/proc/self/fd/{d}', work + '/hard', follow_symlinks=True); open(work + '/hard', 'w').write('evil')",
    ),
    py(
        "link an open place",
        "d = os.open(home + '/plain', os.O_PATH); libc.linkat(d, b'', -100, (work + '/hard2').encode(), 0x1000); open(work + '/hard2', 'w').write('evil')",
    ),
    py(
        "open by a handle",
        "h = ctypes.create_string_buffer(200); h[0] = b'\\x80'; m = ctypes.c_int(); libc.name_to_handle_at(-100, (home + '/plain').encode(), h, ctypes.byref(m), 0); d = libc.open_by_handle_at(os.open(work, 0), h, os.O_WRONLY); os.write(d, b'evil')",
    ),
    py(
        "follow a magic link to a directory",
        "d = os.open(home, os.O_PATH); open(f'/proc/self/fd/{d}/plain', 'w').write('evil')",
    ),
    py(
        "read a key by a handle",
        "h = ctypes.create_string_buffer(200); h[0] = b'\\x80'; m = ctypes.c_int(); libc.name_to_handle_at(-100, (home + '/.ssh/id').encode(), h, ctypes.byref(m), 0); print(os.read(libc.open_by_handle_at(os.open(work, 0), h, 0), 100))",
    ),
];
