//! The network, and sockets that have no place among the files.

use super::{Attempt, py, root_py, root_sh, sh};

pub(super) const ALL: &[Attempt] = &[
    py("connect to this host", "socket.create_connection(('127.0.0.1', @PORT@), 1).send(b'told')"),
    py("connect by a name", "socket.create_connection(('localhost', @PORT@), 1).send(b'told')"),
    py("connect to any address", "socket.create_connection(('0.0.0.0', @PORT@), 1).send(b'told')"),
    py(
        "connect by the other protocol",
        "socket.create_connection(('::ffff:127.0.0.1', @PORT@), 1).send(b'told')",
    ),
    py(
        "connect without waiting",
        "s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', @PORT@)); time.sleep(0.05)",
    ),
    py(
        "connect with the first bytes",
        "s = socket.socket(); s.sendto(b'told', 0x20000000, ('127.0.0.1', @PORT@))",
    ),
    py(
        "send a datagram",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'told', ('127.0.0.1', @UDP@))",
    ),
    py(
        "send a datagram by the other protocol",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'told', ('::ffff:127.0.0.1', @UDP@))",
    ),
    py("connect to an abstract socket", "socket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@')"),
    py(
        "connect to an abstract socket from a namespace",
        "libc.unshare(0x10000000); socket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@')",
    ),
    py(
        "take an abstract socket's name",
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'told', '\\0@ABSTRACT@')",
    ),
    py(
        "connect in a network of one's own",
        "libc.unshare(0x50000000); socket.create_connection(('127.0.0.1', @PORT@), 1)",
    ),
    py(
        "enter the first network",
        "libc.setns(os.open('/proc/1/ns/net', 0), 0); socket.create_connection(('127.0.0.1', @PORT@), 1)",
    ),
    py(
        "enter a process's network",
        "libc.setns(os.pidfd_open(@PID@), 0x40000000); socket.create_connection(('127.0.0.1', @PORT@), 1)",
    ),
    py(
        "enter every network",
        "[libc.setns(os.open(f'/proc/{p}/ns/net', 0), 0) for p in os.listdir('/proc') if p.isdigit() and os.access(f'/proc/{p}/ns/net', 4)]; socket.create_connection(('127.0.0.1', @PORT@), 1)",
    ),
    py(
        "reach a public address",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 53)); s.send(b'x'); print('SECRET-sent')",
    ),
    py(
        "reach this host's own address",
        "s = socket.socket(); s.settimeout(0.3); print('SECRET-sent' if s.connect_ex(('10.0.0.1', @PORT@)) == 0 else 'no')",
    ),
    py("ask for a name", "print('SECRET-' + socket.gethostbyname('example.com'))"),
    py(
        "reach a virtual machine's host",
        "s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(0.3); s.connect((2, 1024)); print('SECRET-host')",
    ),
    py(
        "see the links of the host",
        "print(['SECRET-link' for n, l in socket.if_nameindex() if l != 'lo'])",
    ),
    py(
        "send raw packets",
        "s = socket.socket(17, socket.SOCK_RAW, 768); s.bind(('eth0', 0)); s.send(b'x' * 60); print('SECRET-sent')",
    ),
    root_py(
        "send a raw message",
        "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); s.sendto(b'x' * 20, ('192.0.2.1', 0)); print('SECRET-sent')",
    ),
    py(
        "watch the host's changes",
        "s = socket.socket(16, socket.SOCK_RAW, 15); s.bind((0, 1)); s.settimeout(0.05); print('SECRET-' + str(s.recv(99)))",
    ),
    sh("connect by the shell", "timeout 1 bash -c 'echo told > /dev/tcp/127.0.0.1/@PORT@'"),
    sh("send by the shell", "timeout 1 bash -c 'echo told > /dev/udp/127.0.0.1/@UDP@'"),
    sh(
        "connect by a tool",
        "timeout 1 curl -s http://127.0.0.1:@PORT@/ || timeout 1 nc -w 1 127.0.0.1 @PORT@ < /dev/null",
    ),
    sh("connect by git", "timeout 2 git ls-remote git://127.0.0.1:@PORT@/x"),
    root_sh(
        "join the host's network",
        "nsenter -t 1 -n timeout 1 bash -c 'echo told > /dev/tcp/127.0.0.1/@PORT@'",
    ),
    root_sh(
        "make a link",
        "ip link add evil type dummy && ip link set lo down && echo SECRET-link; ip link set lo up",
    ),
];
