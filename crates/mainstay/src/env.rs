//! The one registry of environment variables, and the one place that reads them.

use std::ffi::OsString;

/// A variable that changes what the program does.
#[derive(Debug)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, for the help text.
    pub(crate) doc: &'static str,
}

/// Where everything is kept.
pub(crate) const MAINSTAY_HOME: Variable =
    Variable { name: "MAINSTAY_HOME", doc: "Same as --home" };

/// Where the store is.
pub(crate) const MAINSTAY_STORE: Variable = Variable {
    name: "MAINSTAY_STORE",
    doc: "Same as --store; keeps a password out of process lists",
};

/// The user's own directory.
pub(crate) const HOME: Variable =
    Variable { name: "HOME", doc: "Holds .mainstay, the default of --home" };

/// Switches colours off.
pub(crate) const NO_COLOR: Variable =
    Variable { name: "NO_COLOR", doc: "Turns colours off, whatever its value" };

/// What the terminal can do.
pub(crate) const TERM: Variable =
    Variable { name: "TERM", doc: "Kind of terminal; on a dumb one the chat is plain lines" };

/// Which model is asked.
pub(crate) const MAINSTAY_MODEL: Variable =
    Variable { name: "MAINSTAY_MODEL", doc: "The model of new turns, as --model" };

/// Which set of settings holds.
pub(crate) const MAINSTAY_PROFILE: Variable =
    Variable { name: "MAINSTAY_PROFILE", doc: "The profile of new turns, as --profile" };

/// Where model servers of this machine are looked for.
pub(crate) const MAINSTAY_LOCAL_SERVERS: Variable = Variable {
    name: "MAINSTAY_LOCAL_SERVERS",
    doc: "Where the first run looks for models: NAME=URL[,NAME=URL], or `none`",
};

/// How long a keeper waits for a new agent.
pub(crate) const MAINSTAY_KEEPER_GRACE: Variable = Variable {
    name: "MAINSTAY_KEEPER_GRACE",
    doc: "How long commands outlive their agent, in seconds",
};

/// Every variable.
pub(crate) const ALL: [Variable; 9] = [
    MAINSTAY_HOME,
    MAINSTAY_STORE,
    MAINSTAY_MODEL,
    MAINSTAY_PROFILE,
    MAINSTAY_LOCAL_SERVERS,
    MAINSTAY_KEEPER_GRACE,
    HOME,
    NO_COLOR,
    TERM,
];

/// Variables that are not read here but set for every command, by `mainstay_tools::keeper`.
pub(crate) const GIVEN: [Variable; 2] = [
    Variable { name: "MAINSTAY_KEEPER", doc: "Keeper that owns the command" },
    Variable { name: "MAINSTAY_JOB", doc: "Call that started the command" },
];

/// A variable that the configuration names, such as that of a provider's key.
#[expect(clippy::disallowed_methods, reason = "this is the registry of environment variables")]
pub(crate) fn named_by_configuration(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The whole environment, of which commands are given a part.
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

impl Variable {
    /// The value; an empty one counts as not set.
    #[expect(clippy::disallowed_methods, reason = "this is the registry of environment variables")]
    pub(crate) fn get(&self) -> Option<OsString> {
        std::env::var_os(self.name).filter(|value| !value.is_empty())
    }

    /// The value as text.
    pub(crate) fn text(&self) -> Option<String> {
        self.get().map(|value| value.to_string_lossy().into_owned())
    }
}
