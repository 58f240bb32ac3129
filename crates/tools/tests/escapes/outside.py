"""Somebody outside of the sandbox, who sees what reaches him. The tests run him as the user.

He has a terminal with typed keys in it, listens on sockets, and has shared memory, a message queue, a
key and limits. For each line that he reads he tells how all of that stands, as a line of JSON.
"""
import array, ctypes, fcntl, json, os, platform, pty, resource, signal, socket, sys, termios, tty

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
signal.signal(signal.SIGUSR1, lambda *_: seen.append("signal"))
signal.signal(signal.SIGTERM, lambda *_: seen.append("signal"))
seen = []
add_key, keyctl = (248, 250) if platform.machine() == "x86_64" else (217, 219)
number = os.getpid()

master, slave = pty.openpty()
tty.setraw(slave)
os.set_blocking(master, False)
os.write(master, b"SECRET-typed\n")

abstract = socket.socket(socket.AF_UNIX)
abstract.bind(f"\0escape-{number}")
stream = socket.socket()
stream.bind(("127.0.0.1", 0))
datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagram.bind(("127.0.0.1", 0))
for listener in (abstract, stream):
    listener.listen(8)
for any_socket in (abstract, stream, datagram):
    any_socket.setblocking(False)

key = number & 0x7FFFFFFF
segment = libc.shmget(key, 4096, 0o1600)
memory = libc.shmat(segment, None, 0)
ctypes.memmove(memory, b"SECRET-shared\0", 14)
semaphores = libc.semget(key, 1, 0o1600)

file = f"/dev/shm/escape-{number}"
with open(file, "w") as made:
    made.write("SECRET-file")
queue = libc.mq_open(f"/escape-{number}".encode(), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600, None)
libc.mq_send(queue, b"SECRET-queue", 12, 0)
held = libc.syscall(add_key, b"user", f"escape-{number}".encode(), b"SECRET-key", 10, -4)


def contacts():
    for name, listener in (("abstract", abstract), ("stream", stream)):
        try:
            listener.accept()
            seen.append(name)
        except OSError:
            pass
    try:
        datagram.recv(100)
        seen.append("datagram")
    except OSError:
        pass
    return list(seen)


def shown_on_terminal():
    try:
        return os.read(master, 1000).decode(errors="replace")
    except OSError:
        return ""


def typed():
    count = array.array("i", [0])
    fcntl.ioctl(slave, termios.FIONREAD, count)
    return count[0]


def state():
    size = os.fstat(queue).st_size if queue >= 0 else 0
    status = os.stat(f"/dev/pts/{os.path.basename(os.ttyname(slave))}")
    payload = ctypes.create_string_buffer(20)
    libc.syscall(keyctl, 11, held, payload, 20)
    return {
        "contacts": contacts(),
        "terminal": [shown_on_terminal(), typed(), status.st_mode, status.st_uid],
        "shared": ctypes.string_at(memory, 14).decode(),
        "segment": libc.shmget(key, 0, 0),
        "semaphore": [libc.semget(key, 0, 0), libc.semctl(semaphores, 0, 12)],
        "file": [open(file).read(), os.stat(file).st_ctime_ns],
        "queue": [size, queue >= 0],
        "key": payload.value.decode(),
        "limits": [resource.getrlimit(kind) for kind in range(16)],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "processors": sorted(os.sched_getaffinity(0)),
        "badness": open("/proc/self/oom_score_adj").read(),
        "host": os.uname().nodename,
        "mask": os.umask(0o22),
    }


names = {
    "PID": number, "TTY": os.ttyname(slave), "ABSTRACT": f"escape-{number}", "KEY": key,
    "PORT": stream.getsockname()[1], "UDP": datagram.getsockname()[1], "HELD": held,
    "SEGMENT": segment,
}
os.umask(0o22)
print(json.dumps(names), flush=True)
for _ in sys.stdin:
    print(json.dumps(state(), sort_keys=True), flush=True)
os.unlink(file)
libc.mq_unlink(f"/escape-{number}".encode())
libc.shmctl(segment, 0, None)
libc.semctl(semaphores, 0, 0)
libc.syscall(keyctl, 21, held)
