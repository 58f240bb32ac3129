//! Programs that only look.

use crate::policy::command::options::Options;

/// Programs none of whose options writes, runs or reaches anything, in any implementation that people
/// have. So a word among their arguments that nobody can see is harmless too.
pub(in crate::policy::command) const WHATEVER_IS_GIVEN: &str = "\
    : [[ arch b2sum base32 basename bzcat cal cat cksum cmp column comm cut df diff dir dirname du \
    echo egrep expand expr factor false fgrep fmt fold free grep groups gzcat head hexdump id join \
    jq locale logname ls lsblk lscpu md5 md5sum nl nproc numfmt od paste pgrep pidof pr printenv ps \
    pwd readlink realpath rev seq sha1sum sha224sum sha256sum sha384sum sha512sum shasum shellcheck \
    sleep stat sum sync tac tail tr true tsort tty uname unexpand uptime vdir vmstat w wc whereis \
    which who whoami xzcat yes zcat";

/// What the plain words of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy::command) enum Operands {
    /// Words, or files that are read.
    Any,
    /// Files that are read; one that begins with `@` holds options.
    Objects,
    /// Files that are read; one that begins with `+` is a command of the pager.
    Pages,
    /// The second is a file that is written.
    SecondWritten,
}

/// Programs that only look with these options.
pub(in crate::policy::command) const WITH_OPTIONS: [(&str, Options, Operands); 23] = [
    (
        "ag",
        Options {
            letters: "acilLnoqsSuUvwQ0A:B:C:G:m:",
            names: "hidden nocolor color column count depth= files-with-matches follow ignore= \
                    ignore-case literal nogroup nonumbers numbers path-to-ignore= stats vimgrep",
        },
        Operands::Any,
    ),
    (
        "base64",
        Options { letters: "dDiw:o>", names: "decode ignore-garbage wrap= output>" },
        Operands::Any,
    ),
    (
        "bat batcat",
        Options {
            letters: "nAfpPuSr:l:m:H:",
            names: "plain number show-all language= line-range= style= color= paging= theme= \
                    decorations= wrap= tabs= list-languages list-themes highlight-line= \
                    file-name= terminal-width=",
        },
        Operands::Any,
    ),
    (
        "fd fdfind",
        Options {
            letters: "HIgisaFpLu0d:t:e:E:c:j:S:",
            names: "hidden no-ignore no-ignore-vcs glob regex ignore-case case-sensitive \
                    absolute-path follow full-path print0 fixed-strings max-depth= min-depth= \
                    exact-depth= exclude= type= extension= size= changed-within= changed-before= \
                    max-results= color= threads= and=",
        },
        Operands::Any,
    ),
    (
        "file",
        Options {
            letters: "bhikLNnrs0e:F:f:m:P:",
            names: "brief mime mime-type mime-encoding dereference no-dereference separator= \
                    files-from= exclude= keep-going raw no-pad special-files extension",
        },
        Operands::Any,
    ),
    ("getconf", Options { letters: "a", names: "" }, Operands::Any),
    (
        "iconv",
        Options { letters: "f:t:clso>", names: "from-code= to-code= list silent verbose output>" },
        Operands::Any,
    ),
    (
        "less",
        Options {
            letters: "EFGIJKMNQRSUWXaegimnqrsuwfcCp:x:b:h:j:y:z:",
            names: "RAW-CONTROL-CHARS quit-if-one-screen chop-long-lines no-init LINE-NUMBERS \
                    ignore-case IGNORE-CASE quit-at-eof QUIT-AT-EOF squeeze-blank-lines",
        },
        Operands::Pages,
    ),
    ("lsof", Options { letters: "naPltRUVi?p:u:c:d:s?F?", names: "" }, Operands::Any),
    ("more", Options { letters: "dlfpcsu0123456789n:", names: "" }, Operands::Pages),
    (
        "nm",
        Options {
            letters: "aABDfgnoPprsSuCv",
            names: "demangle? dynamic extern-only print-size size-sort numeric-sort \
                    undefined-only defined-only format= no-sort reverse-sort special-syms",
        },
        Operands::Objects,
    ),
    (
        "objdump",
        Options {
            letters: "aCdDfhptrRsTxwj:M:",
            names: "disassemble? disassemble-all syms section-headers headers private-headers \
                    all-headers full-contents reloc dynamic-syms demangle? section= \
                    start-address= stop-address= no-show-raw-insn wide",
        },
        Operands::Objects,
    ),
    (
        "readelf",
        Options {
            letters: "aehlSsrdVWnugAIx:p:R:",
            names: "all file-header program-headers segments section-headers sections symbols \
                    syms relocs dynamic version-info wide notes unwind arch-specific histogram \
                    hex-dump= string-dump= dyn-syms",
        },
        Operands::Objects,
    ),
    (
        "rg",
        Options {
            letters: "abcFhHiIlLnNopPqsSuUvwx0.A:B:C:e:E:f:g:j:m:M:r:t:T:d:",
            names: "after-context= before-context= context= regexp= file= glob= iglob= type= \
                    type-not= type-add= type-list files files-with-matches files-without-match \
                    count count-matches color= colors= column no-column heading no-heading hidden \
                    no-hidden ignore-case case-sensitive smart-case fixed-strings word-regexp \
                    line-regexp invert-match line-number no-line-number multiline \
                    multiline-dotall max-count= max-depth= max-columns= max-filesize= no-ignore \
                    no-ignore-vcs no-ignore-parent no-ignore-global follow only-matching pcre2 \
                    engine= pretty quiet replace= sort= sortr= stats text trim unrestricted \
                    vimgrep with-filename no-filename null null-data passthru path-separator= \
                    threads= json line-buffered encoding= crlf byte-offset no-messages no-config",
        },
        Operands::Any,
    ),
    (
        "size",
        Options { letters: "ABdoxtG", names: "format= radix= common totals" },
        Operands::Objects,
    ),
    (
        "strings",
        Options {
            letters: "afwo0123456789n:t:e:",
            names: "all bytes= radix= encoding= print-file-name include-all-whitespace",
        },
        Operands::Objects,
    ),
    (
        "tokei",
        Options {
            letters: "fCe:t:s:o:",
            names: "files exclude= type= sort= output= hidden languages compact no-ignore",
        },
        Operands::Any,
    ),
    (
        "tree",
        Options {
            letters: "adflxpshugDFqNQAnCSiJXrtUvcL:P:I:",
            names: "noreport prune filesfirst dirsfirst du si inodes device gitignore matchdirs \
                    ignore-case charset= filelimit= timefmt= sort= info",
        },
        Operands::Any,
    ),
    (
        "uniq",
        Options {
            letters: "cdDiuzf:s:w:",
            names: "count repeated all-repeated? group? ignore-case unique zero-terminated \
                    skip-fields= skip-chars= check-chars=",
        },
        Operands::SecondWritten,
    ),
    // It reads no clusters: `-rp` is `-r`.
    ("xxd", Options { letters: "abeirEuCpdc:g:l:o:s:", names: "" }, Operands::SecondWritten),
    (
        "yq",
        Options {
            letters: "rjcCMnNPveo:p:I:",
            names: "raw-output output-format= input-format= prettyPrint null-input exit-status \
                    colors no-colors",
        },
        Operands::Any,
    ),
    (
        "zgrep",
        Options {
            letters: "acEFGhHiIlLnoPqrsvwxzA:B:C:e:m:",
            names: "count ignore-case files-with-matches line-number only-matching color?",
        },
        Operands::Any,
    ),
    ("zstdcat", Options::NONE, Operands::Any),
];

/// Programs that say their version without a look at the workspace: none reads a file there that may
/// choose another program or load code. `cargo`, `rustc`, `mvn`, `make`, `go` and `yarn` do.
pub(in crate::policy::command) const VERSION_ELSEWHERE: &str = "\
    bash c++ cc clang clang++ cmake curl docker g++ gcc gh git java javac jq ld lua luajit ninja \
    node nodejs npm perl php pip pip3 psql python python2 python3 rg ruby ruff sqlite3 uv wget";
