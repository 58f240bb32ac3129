//! What a test needs of the machine beyond files and processes, and the variables that say how much of
//! it to test.
//!
//! A test that silently returns where something is missing looks as if it had passed. So a missing
//! capability fails the test, unless the one variable below says that it may be missing.

/// Names the capabilities that may be missing, by commas: `landlock,fuse`.
pub const ALLOW_MISSING: &str = "MAINSTAY_TEST_ALLOW_MISSING";

/// Says how many kills the sweeps make that strike at moments of time, for a thorough run.
pub const KILLS: &str = "MAINSTAY_TEST_KILLS";

/// How many kills a sweep makes: so many as [`KILLS`] says, or else `usual`.
///
/// # Panics
///
/// If the variable is set and is not a number.
pub fn kills(usual: u64) -> u64 {
    match std::env::var(KILLS) {
        Ok(number) => number.parse().unwrap_or_else(|_| panic!("{KILLS}={number} is no number")),
        Err(_) => usual,
    }
}

/// How many generated command lines the comparison of what they do with their class runs.
pub const LINES: &str = "MAINSTAY_TEST_LINES";

/// Which command lines those are.
pub const SEED: &str = "MAINSTAY_TEST_SEED";

/// Asks for the whole of every long sweep; see [`crate::thorough`].
pub const THOROUGH: &str = "MAINSTAY_TEST_THOROUGH";

/// How long many edit each file, in milliseconds: the test of edits by many takes longer and finds more.
pub const EDITING_MILLIS: &str = "MAINSTAY_TEST_EDITING_MILLIS";

/// That each n-th point of a long sweep is struck.
pub const SWEEP_STEP: &str = "MAINSTAY_TEST_SWEEP_STEP";

/// Says to that comparison that it runs in its box, and where that lies.
pub const INSIDE: &str = "MAINSTAY_TEST_BOX";

/// What a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// The kernel confines processes with landlock.
    Landlock,
    /// `/dev/fuse` can be opened.
    Fuse,
    /// `unshare` makes a network namespace.
    NetworkNamespace,
    /// Commands can be put into a process namespace.
    ProcessNamespace,
    /// A file system can be mounted and frozen.
    Freezer,
}

impl Capability {
    const ALL: [Self; 5] =
        [Self::Landlock, Self::Fuse, Self::NetworkNamespace, Self::ProcessNamespace, Self::Freezer];

    /// The name in the variable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Fuse => "fuse",
            Self::NetworkNamespace => "network-namespace",
            Self::ProcessNamespace => "process-namespace",
            Self::Freezer => "freezer",
        }
    }

    /// Returns `true` if the capability is there. Returns `false`, and says that the test is skipped,
    /// if it is missing and [`ALLOW_MISSING`] names it.
    ///
    /// # Panics
    ///
    /// If it is missing and the variable does not name it.
    #[must_use = "the test must end where this is false"]
    #[track_caller]
    pub fn require(self, is_there: bool) -> bool {
        let allowed = std::env::var(ALLOW_MISSING).unwrap_or_default();
        match decide(self, is_there, &allowed) {
            Ok(true) => true,
            Ok(false) => {
                eprintln!("skipped: {} is missing, as {ALLOW_MISSING} allows", self.name());
                false
            }
            Err(reason) => panic!("{reason}"),
        }
    }
}

fn decide(capability: Capability, is_there: bool, allowed: &str) -> Result<bool, String> {
    let allowed: Vec<&str> =
        allowed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = Capability::ALL.map(Capability::name);
    if let Some(unknown) = allowed.iter().find(|name| !known.contains(name)) {
        return Err(format!(
            "{ALLOW_MISSING} names {unknown:?}, which is not a capability. Valid names: {}.",
            known.join(", ")
        ));
    }
    let name = capability.name();
    if is_there || allowed.contains(&name) {
        return Ok(is_there);
    }
    Err(format!(
        "This test needs {name}, which this machine does not have. \
         Set {ALLOW_MISSING}={name} to skip it."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_fails_unless_it_is_named() {
        let fuse = Capability::Fuse;
        assert_eq!(decide(fuse, true, ""), Ok(true));
        assert_eq!(decide(fuse, true, "fuse"), Ok(true));
        assert_eq!(decide(fuse, false, "landlock, fuse"), Ok(false));
        for others in ["", "landlock", "landlock,network-namespace"] {
            let refused = decide(fuse, false, others).unwrap_err();
            assert!(refused.contains("This test needs fuse"), "{refused}");
        }
    }

    #[test]
    fn a_name_that_nobody_knows_fails_every_test() {
        let refused = decide(Capability::Fuse, true, "fuse,landlok").unwrap_err();
        assert!(refused.contains("landlok") && refused.contains("landlock"), "{refused}");
    }
}
