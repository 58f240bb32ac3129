//! Processes outside: their signals, limits, priorities and memory, and what processes share.

use super::{Attempt, py, root_py, sh};

pub(super) const ALL: &[Attempt] = &[
    sh("signal a process", "kill -USR1 @PID@"),
    sh("end a process", "kill -TERM @PID@"),
    sh("signal all processes", "sh -c 'trap \"\" USR1; kill -USR1 -1'"),
    sh("signal by name", "pkill -USR1 -f escape; killall -USR1 python3.11"),
    sh("signal every number", "for i in $(seq @PID@ $((@PID@ + 3))); do kill -USR1 $i; done"),
    sh("limit a process", "prlimit --pid @PID@ --nofile=10:10"),
    sh("limit a process's memory", "prlimit --pid @PID@ --as=1000000000:1000000000"),
    sh("slow a process down", "renice -n 19 -p @PID@"),
    sh("slow a user down", "renice -n 19 -u $(id -u)"),
    sh("bind a process", "taskset -pc 0 @PID@"),
    sh("choose a process to be killed", "echo 1000 > /proc/@PID@/oom_score_adj"),
    sh(
        "choose all to be killed",
        "for p in /proc/[0-9]*; do echo 900 > $p/oom_score_adj; done 2>&1",
    ),
    sh("schedule a process", "chrt -i -p 0 @PID@"),
    sh("slow a process's disk down", "ionice -c 3 -p @PID@"),
    sh(
        "read a process's variables",
        "cat /proc/@PID@/environ; cat /proc/@PID@/cmdline | grep -q outside && echo SECRET-line",
    ),
    sh(
        "debug a process",
        "timeout 2 gdb -p @PID@ -batch -ex 'call (int)umask(0)' 2>&1 | grep umask",
    ),
    py("send a signal", "os.kill(@PID@, signal.SIGUSR1)"),
    py(
        "send a signal by a descriptor",
        "signal.pidfd_send_signal(os.pidfd_open(@PID@), signal.SIGUSR1)",
    ),
    py("send a signal to a thread", "call(234, @PID@, @PID@, 10)"),
    py("queue a signal", "libc.sigqueue(@PID@, 10, 0)"),
    py("send a signal to the group", "os.killpg(os.getpgid(@PID@), signal.SIGUSR1)"),
    py("limit", "resource.prlimit(@PID@, resource.RLIMIT_NOFILE, (10, 10))"),
    py(
        "limit the parent",
        "resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0)); resource.prlimit(@PID@, resource.RLIMIT_CORE, (0, 0))",
    ),
    py("set a priority", "os.setpriority(os.PRIO_PROCESS, @PID@, 19)"),
    py("set a user's priority", "os.setpriority(os.PRIO_USER, os.getuid(), 18)"),
    py("set a group's priority", "os.setpriority(os.PRIO_PGRP, @PID@, 18)"),
    py("bind to a processor", "os.sched_setaffinity(@PID@, {0})"),
    py("trace", "print(libc.ptrace(16, @PID@, 0, 0)); os.waitpid(@PID@, 0); os.kill(@PID@, 10)"),
    py(
        "trace without stopping",
        "print('SECRET-traced' if libc.ptrace(0x4206, @PID@, 0, 0) == 0 else 'no')",
    ),
    py(
        "read memory",
        "b = ctypes.create_string_buffer(8); v = (ctypes.c_uint64 * 2)(ctypes.addressof(b), 8); a = int(open('/proc/@PID@/maps').readline().split('-')[0], 16); r = (ctypes.c_uint64 * 2)(a, 8); print('SECRET-memory' if call(310, @PID@, v, 1, r, 1, 0) > 0 else 'no')",
    ),
    py(
        "read memory as a file",
        "a = int(open('/proc/@PID@/maps').readline().split('-')[0], 16); f = open('/proc/@PID@/mem', 'rb'); f.seek(a); f.read(8); print('SECRET-memory')",
    ),
    py(
        "take a descriptor",
        "d = os.pidfd_open(@PID@); print('SECRET-descriptor' if call(438, d, 3, 0) >= 0 else 'no')",
    ),
    py("see a process", "os.stat('/proc/@PID@/exe'); print('SECRET-seen')"),
    py(
        "see the agent",
        "[print('SECRET-' + c) for c in (open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()) if 'confined' in c.split('\\0')]",
    ),
    py(
        "move a process in memory",
        "print('SECRET-moved' if call(279, @PID@, 0, None, None, None, 0) >= 0 else 'no')",
    ),
    py(
        "compare descriptors",
        "print('SECRET-compared' if call(312, os.getpid(), @PID@, 0, 0, 0) >= 0 else 'no')",
    ),
    py(
        "attach shared memory",
        "s = libc.shmget(@KEY@, 0, 0); print(ctypes.string_at(libc.shmat(s, None, 0), 14) if s >= 0 else 'no')",
    ),
    py(
        "attach shared memory by number",
        "m = libc.shmat(@SEGMENT@, None, 0); print('no' if m in (None, 2**64 - 1) else ctypes.string_at(m, 14))",
    ),
    py("remove shared memory", "libc.shmctl(@SEGMENT@, 0, None)"),
    py("remove all shared memory", "[libc.shmctl(i, 0, None) for i in range(70000)]"),
    py("use semaphores", "s = libc.semget(@KEY@, 0, 0); libc.semctl(s, 0, 16, 5)"),
    py("remove semaphores", "[libc.semctl(i, 0, 0) for i in range(1000)]"),
    py(
        "read a queue",
        "q = libc.mq_open(b'/@ABSTRACT@', os.O_RDWR | os.O_NONBLOCK); b = ctypes.create_string_buffer(9000); libc.mq_receive(q, b, 8192, None); print(b.value)",
    ),
    py(
        "write a queue",
        "q = libc.mq_open(b'/@ABSTRACT@', os.O_RDWR | os.O_NONBLOCK); libc.mq_send(q, b'evil', 4, 0)",
    ),
    py(
        "remove a queue",
        "libc.mq_unlink(b'/@ABSTRACT@'); q = libc.mq_open(b'/@ABSTRACT@', os.O_CREAT | os.O_RDWR, 0o600, None); libc.mq_send(q, b'SECRET', 6, 0)",
    ),
    py("read a shared file", "tell('/dev/shm/@ABSTRACT@')"),
    py("write a shared file", "open('/dev/shm/@ABSTRACT@', 'r+').write('evil')"),
    py("open a shared file to all", "os.chmod('/dev/shm/@ABSTRACT@', 0o666)"),
    root_py("become another user", "os.setuid(64321); os.kill(@PID@, 10)"),
    root_py("name the host", "socket.sethostname('evil')"),
];
