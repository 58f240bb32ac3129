//! How the program ends, as a number for scripts.

use std::process::ExitCode;

/// An exit code of the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// It failed, or something is not well.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// The work is kept and waits.
    Parked,
    /// Somebody else has what is needed.
    InUse,
    /// Stopped by Ctrl-C or a request to end.
    Interrupted,
}

impl Exit {
    /// Every way to end, in the order of the numbers.
    pub(crate) const ALL: [Self; 6] =
        [Self::Done, Self::Failed, Self::Usage, Self::Parked, Self::InUse, Self::Interrupted];

    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Parked => 3,
            Self::InUse => 4,
            Self::Interrupted => 130,
        }
    }

    /// What it means, for the help text.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed, or a check found a problem",
            Self::Usage => "invalid usage or configuration",
            Self::Parked => "parked: waiting for a human, a quota or a budget",
            Self::InUse => "in use by another process",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_end_has_its_own_number_and_meaning() {
        let mut codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.is_sorted(), "{codes:?}");
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 130]);
        assert!(Exit::ALL.iter().all(|exit| !exit.meaning().is_empty()));
    }
}
