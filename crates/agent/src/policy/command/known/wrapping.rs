//! Programs that run the rest of their words.

use crate::policy::command::options::Options;

/// The programs, their options, and how many words of their own come before the verb.
pub(in crate::policy::command) const PROGRAMS: [(&str, Options, usize); 14] = [
    ("nohup unbuffer catchsegv not noglob builtin coproc", Options::NONE, 0),
    ("setsid", Options { letters: "cfw", names: "ctty fork wait" }, 0),
    ("nice", Options { letters: "0123456789n:", names: "adjustment=" }, 0),
    ("ionice", Options { letters: "tc:n:", names: "class= classdata= ignore" }, 0),
    ("chrt", Options { letters: "bfiorR", names: "batch fifo idle other rr reset-on-fork" }, 1),
    ("taskset", Options { letters: "ac", names: "cpu-list" }, 1),
    ("stdbuf", Options { letters: "i:o:e:", names: "input= output= error=" }, 0),
    (
        "timeout gtimeout",
        Options {
            letters: "vfk:s:",
            names: "preserve-status foreground kill-after= signal= verbose",
        },
        1,
    ),
    (
        "time",
        Options { letters: "pvqaf:o>", names: "portability verbose quiet append format= output>" },
        0,
    ),
    ("caffeinate", Options { letters: "dimsut:w:", names: "" }, 0),
    ("chronic", Options { letters: "ve", names: "" }, 0),
    ("busybox toybox", Options::NONE, 0),
    ("command", Options { letters: "p", names: "" }, 0),
    ("exec", Options { letters: "la:", names: "" }, 0),
];

pub(in crate::policy::command) const XARGS: Options = Options {
    letters: "0rtxI:n:L:l?P:s:d:a:E:e?i?",
    names: "null no-run-if-empty verbose exit max-args= max-procs= replace? delimiter= arg-file= \
            max-lines? max-chars= eof?",
};

/// The options of shells: letters are those of `set`, and `c` for a line.
pub(in crate::policy::command) const SHELL: Options =
    Options { letters: "abcefhlmnuvxCiso:", names: "login norc noprofile posix verbose" };
