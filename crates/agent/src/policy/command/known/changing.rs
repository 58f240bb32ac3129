//! Programs that change files: their harmless options, and which of them name files.

use crate::policy::command::options::Options;

/// What a program does to its plain words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy::command) enum Effect {
    /// Writes to each of them.
    Writes,
    /// Removes each of them.
    Removes,
    /// Copies, moves or links all but the last to the last.
    Copies,
    /// Changes who may do what with them; the first is the mode or the owner.
    Permits,
    /// Reads them, and writes where its options say.
    Reads,
    /// Replaces each by a smaller or a larger one, unless it shows the result.
    Packs,
    /// Reads the first and writes files whose names begin with the second.
    Splits,
    /// Writes files whose names begin with `xx`.
    SplitsHere,
    /// Makes an empty file.
    MakesTemporary,
}

/// The programs. With an option that stands here they touch no files but those that are named.
pub(in crate::policy::command) const PROGRAMS: [(&str, Options, Effect); 27] = [
    ("mkdir", Options { letters: "pvm:", names: "parents verbose mode=" }, Effect::Writes),
    (
        "touch",
        Options { letters: "acmhd:t:r:", names: "no-create no-dereference date= reference= time=" },
        Effect::Writes,
    ),
    (
        "truncate",
        Options { letters: "cos:r:", names: "no-create io-blocks size= reference=" },
        Effect::Writes,
    ),
    (
        "rmdir",
        Options { letters: "pv", names: "parents verbose ignore-fail-on-non-empty" },
        Effect::Writes,
    ),
    ("unlink", Options::NONE, Effect::Writes),
    ("mkfifo", Options { letters: "m:", names: "mode=" }, Effect::Writes),
    (
        "tee",
        Options { letters: "aip", names: "append ignore-interrupts output-error?" },
        Effect::Writes,
    ),
    (
        "shred",
        Options {
            letters: "fuvxzn:s:",
            names: "force verbose zero exact iterations= size= remove?",
        },
        Effect::Writes,
    ),
    (
        "rm",
        Options {
            letters: "rRfivId",
            names: "recursive force interactive? verbose dir one-file-system preserve-root?",
        },
        Effect::Removes,
    ),
    (
        "cp",
        Options {
            letters: "aRrpPLHdfivnulsTbxt>",
            names: "archive recursive force interactive no-clobber verbose update? link \
                    symbolic-link preserve? no-preserve= parents dereference no-dereference \
                    target-directory> no-target-directory strip-trailing-slashes reflink? \
                    sparse= one-file-system attributes-only backup? remove-destination",
        },
        Effect::Copies,
    ),
    (
        "mv",
        Options {
            letters: "fivnuTbt>",
            names: "force interactive no-clobber verbose update? no-target-directory backup? \
                    target-directory> strip-trailing-slashes",
        },
        Effect::Copies,
    ),
    (
        "ln",
        Options {
            letters: "sfinvTrLPbht>",
            names: "symbolic force interactive no-dereference no-target-directory relative \
                    verbose logical physical backup? target-directory>",
        },
        Effect::Copies,
    ),
    (
        "install",
        Options {
            letters: "DdvpCcTbm:o:g:t>",
            names: "directory mode= owner= group= compare preserve-timestamps verbose \
                    no-target-directory target-directory>",
        },
        Effect::Copies,
    ),
    (
        "chmod",
        Options {
            letters: "Rcfvh",
            names: "recursive changes silent quiet verbose reference= preserve-root",
        },
        Effect::Permits,
    ),
    (
        "chown chgrp",
        Options {
            letters: "RcfvhP",
            names: "recursive changes silent quiet verbose reference= from= preserve-root \
                    dereference no-dereference",
        },
        Effect::Permits,
    ),
    (
        "sort",
        Options {
            letters: "bcCdfghiMnruVzmRsk:t:S:T>o>",
            names: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort \
                    ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort \
                    reverse version-sort sort= unique stable merge zero-terminated check? debug \
                    key= field-separator= buffer-size= parallel= batch-size= files0-from= \
                    random-source= output> temporary-directory>",
        },
        Effect::Reads,
    ),
    (
        "split",
        Options {
            letters: "dxuea:b:C:l:n:t:",
            names: "lines= bytes= line-bytes= number= suffix-length= numeric-suffixes? \
                    hex-suffixes? elide-empty-files verbose separator= unbuffered",
        },
        Effect::Splits,
    ),
    (
        "csplit",
        Options {
            letters: "ksqzn:",
            names: "keep-files quiet silent digits= elide-empty-files suppress-matched",
        },
        Effect::SplitsHere,
    ),
    (
        "mktemp",
        Options { letters: "dqutp>", names: "directory quiet dry-run suffix=" },
        Effect::MakesTemporary,
    ),
    (
        "gzip gunzip",
        Options {
            letters: "cdkflnNqrtv123456789",
            names: "stdout to-stdout decompress uncompress keep force list test no-name name \
                    quiet verbose recursive best fast rsyncable",
        },
        Effect::Packs,
    ),
    (
        "bzip2 bunzip2",
        Options {
            letters: "cdkzftqvs123456789",
            names: "stdout decompress compress keep force test quiet verbose small fast best",
        },
        Effect::Packs,
    ),
    (
        "xz unxz",
        Options {
            letters: "cdkzfltqve0123456789T:M:F:C:",
            names: "stdout to-stdout decompress uncompress compress keep force list test quiet \
                    verbose extreme threads= memlimit= format= check= best fast",
        },
        Effect::Packs,
    ),
    (
        "zstd unzstd",
        Options {
            letters: "cdkftlqv0123456789T?o>",
            names: "stdout decompress compress keep force test list quiet verbose ultra",
        },
        Effect::Packs,
    ),
    (
        "tar bsdtar gtar",
        Options {
            letters: "ctxrujJzZavkpPhSmOwlf:C:X:b:N:",
            names: "create extract get list append update gzip gunzip ungzip bzip2 xz zstd \
                    auto-compress verbose file= directory= exclude= exclude-from= exclude-vcs \
                    exclude-vcs-ignores strip-components= keep-old-files keep-newer-files \
                    overwrite numeric-owner owner= group= mode= mtime= sort= wildcards \
                    no-wildcards no-recursion totals preserve-permissions same-permissions \
                    no-same-owner no-same-permissions dereference to-stdout format= newer= \
                    touch one-file-system absolute-names",
        },
        Effect::Reads,
    ),
    ("zip", Options { letters: "rqvjyuXD0123456789", names: "recurse-paths quiet" }, Effect::Reads),
    ("unzip", Options { letters: "lvtpzZq12shmMC", names: "" }, Effect::Reads),
    (
        "patch",
        Options {
            letters: "NREstuvbfp:i:d:F:",
            names: "forward reverse remove-empty-files silent quiet batch unified verbose backup \
                    force strip= input= directory= fuzz= dry-run",
        },
        Effect::Reads,
    ),
];
