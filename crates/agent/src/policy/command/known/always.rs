//! What "always" lets vary: options that change how much a program says or how much of its task it
//! does, and never what is run.

use crate::policy::command::options::Options;

/// What may vary in a command that a person said "always" to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy::command) enum Vary {
    /// The listed options.
    Options,
    /// The listed options and the plain words, which choose tests or packages by name.
    Names,
}

/// The first words of a command, and what may vary after them. A command that is not here is covered
/// word by word.
pub(in crate::policy::command) const SHAPES: [(&str, Options, Vary); 12] = [
    ("cargo test|cargo nextest|cargo bench", CARGO, Vary::Names),
    ("cargo build|cargo check|cargo clippy|cargo doc|cargo fmt", CARGO, Vary::Options),
    (
        "make",
        Options { letters: "skBnij?", names: "silent quiet keep-going always-make jobs?" },
        Vary::Options,
    ),
    ("ninja", Options { letters: "vj:k:", names: "verbose quiet" }, Vary::Options),
    ("pytest|python -m pytest|python3 -m pytest", PYTEST, Vary::Names),
    (
        "npm test|npm run|npm ci|npm install",
        Options { letters: "s", names: "silent" },
        Vary::Options,
    ),
    ("go test|go build|go vet", Options { letters: "v", names: "" }, Vary::Options),
    (
        "git push",
        Options { letters: "uqv", names: "set-upstream quiet verbose progress no-progress" },
        Vary::Options,
    ),
    (
        "git fetch",
        Options { letters: "pqvt", names: "prune quiet verbose tags no-tags progress no-progress" },
        Vary::Options,
    ),
    (
        "git pull",
        Options {
            letters: "qvr",
            names: "quiet verbose rebase ff-only no-rebase progress no-progress",
        },
        Vary::Options,
    ),
    (
        "git ls-remote",
        Options { letters: "htq", names: "heads branches tags refs quiet" },
        Vary::Options,
    ),
    (
        "ruff check|ruff format|mypy|black|tsc",
        Options { letters: "qv", names: "quiet verbose check diff watch" },
        Vary::Options,
    ),
];

const CARGO: Options = Options {
    letters: "qvrp:j:F:",
    names: "quiet verbose release workspace all package= exclude= lib bins bin= examples example= \
            tests test= benches bench= all-targets all-features no-default-features features= \
            jobs= no-run no-fail-fast doc locked offline frozen keep-going message-format= check",
};

const PYTEST: Options = Options {
    letters: "qvxslk:m:n:",
    names: "quiet verbose exitfirst maxfail= lf last-failed ff failed-first tb= durations= \
            collect-only no-header no-summary color= sw stepwise",
};
