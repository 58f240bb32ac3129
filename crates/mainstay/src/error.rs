//! The binary's one error: a sentence, who must act, and the next step.

use mainstay_store::FileSystem;

use crate::exit::Exit;
use crate::wording;

/// What went wrong, for a person and for a script.
#[derive(Debug)]
pub(crate) struct Error {
    /// Who must act.
    pub(crate) kind: Kind,
    /// One sentence.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hints: Vec<String>,
}

/// Errors sorted by who must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The command line cannot be understood.
    Usage,
    /// An option or a variable points at the wrong thing.
    Configuration,
    /// Another process has it.
    InUse,
    /// Ctrl-C, or a request to end.
    Interrupted,
    /// Everything else.
    Failed,
}

impl Kind {
    /// The exit code of an error of this kind.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Usage | Self::Configuration => Exit::Usage,
            Self::InUse => Exit::InUse,
            Self::Interrupted => Exit::Interrupted,
            Self::Failed => Exit::Failed,
        }
    }
}

impl Error {
    /// An error of the configuration.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self { kind: Kind::Configuration, message: message.into(), hints: Vec::new() }
    }

    /// A command line that cannot be followed.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), hints: Vec::new() }
    }

    /// A failure.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, message: message.into(), hints: Vec::new() }
    }

    /// The user stopped it.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { kind: Kind::Interrupted, message: message.into(), hints: Vec::new() }
    }

    /// Adds a next step.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Replaces the next steps by one that fits better here.
    #[must_use]
    pub(crate) fn only_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints = vec![hint.into()];
        self
    }
}

impl From<mainstay_store::Error> for Error {
    fn from(error: mainstay_store::Error) -> Self {
        use mainstay_store::Error as StoreError;
        let kind = match &error {
            StoreError::BadAddress(_) | StoreError::Refused { .. } => Kind::Configuration,
            StoreError::UnknownId { .. } | StoreError::AmbiguousId { .. } => Kind::Usage,
            StoreError::InUse { .. } | StoreError::Locked { .. } => Kind::InUse,
            _ => Kind::Failed,
        };
        if let StoreError::Unreadable { path, .. } = &error
            && FileSystem::of(path).is_ok_and(|system| system.read_only)
        {
            // The engine says only that it cannot open the file.
            let message = format!("{} is on a read-only file system", path.display());
            let hint = format!("Check how it is mounted: findmnt --target {}", wording::path(path));
            return Self { kind, message, hints: vec![hint] };
        }
        let mut hints: Vec<String> = error.hint().into_iter().collect();
        if let StoreError::UnknownId { what, .. } = &error {
            match what.as_str() {
                "session" => hints.push("List the sessions: `mainstay sessions list`".to_owned()),
                "request" | "question" => {
                    hints.push("List what is waiting for you: `mainstay approvals`".to_owned());
                }
                "rule" => hints.push("List the rules: `mainstay approvals rules`".to_owned()),
                _ => {}
            }
        }
        // An engine's own words may have many lines.
        let message = wording::line(&error.to_string());
        Self { kind, message, hints }
    }
}

impl From<mainstay_journal::Error> for Error {
    fn from(error: mainstay_journal::Error) -> Self {
        match error {
            mainstay_journal::Error::Store(error) => error.into(),
            damaged @ mainstay_journal::Error::Damaged { .. } => Self::failed(damaged.to_string())
                .hint("Check the whole store: `mainstay store check`"),
        }
    }
}

impl From<mainstay_memory::Error> for Error {
    fn from(error: mainstay_memory::Error) -> Self {
        match error {
            mainstay_memory::Error::Store(error) => error.into(),
            refused @ mainstay_memory::Error::Refused(_) => Self::usage(refused.to_string())
                .hint("List what is remembered: `mainstay memory list`"),
            damaged @ mainstay_memory::Error::Damaged { .. } => Self::failed(damaged.to_string())
                .hint("Check the whole store: `mainstay store check`"),
        }
    }
}

impl From<mainstay_agent::skills::SkillError> for Error {
    fn from(trouble: mainstay_agent::skills::SkillError) -> Self {
        use mainstay_agent::skills::SkillError;
        let kind = match &trouble {
            SkillError::Busy(_) => Kind::InUse,
            SkillError::Missing(_) | SkillError::Exists(_) | SkillError::NotInTrash(_) => {
                Kind::Usage
            }
            SkillError::Invalid { .. }
            | SkillError::Changed(_)
            | SkillError::Decided { .. }
            | SkillError::File { .. } => Kind::Failed,
        };
        Self { kind, message: trouble.to_string(), hints: vec![trouble.hint()] }
    }
}

impl From<mainstay_agent::Error> for Error {
    fn from(error: mainstay_agent::Error) -> Self {
        match error {
            mainstay_agent::Error::Journal(error) => error.into(),
            blocked @ mainstay_agent::Error::Blocked(_) => Self::failed(blocked.to_string())
                .hint("Rephrase it, or check the hooks in config.toml and hooks.json in the home."),
            memory @ mainstay_agent::Error::Memory(_) => Self::failed(memory.to_string()).hint(
                "Nothing was started and nothing is lost. Check the store: `mainstay doctor`",
            ),
            mainstay_agent::Error::Skills(trouble) => trouble.into(),
            other => Self::configuration(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_errors_end_with_the_code_of_who_must_act() {
        let code = |error: mainstay_store::Error| Error::from(error).kind.exit().code();
        assert_eq!(code("mysql://x".parse::<mainstay_store::Location>().unwrap_err()), 2);
        let refused = mainstay_store::Error::Refused { server: "s".into(), detail: "d".into() };
        assert_eq!(code(refused), 2);
        let taken = mainstay_store::Error::InUse { what: "it".into(), holder: "other".into() };
        assert_eq!(code(taken), 4);
        assert_eq!(code(mainstay_store::Error::Io("broken".into())), 1);
    }

    #[test]
    fn an_unknown_id_is_told_with_the_command_that_lists_those_there_are() {
        for (what, command) in [
            ("session", Some("`mainstay sessions list`")),
            ("request", Some("`mainstay approvals`")),
            ("question", Some("`mainstay approvals`")),
            ("rule", Some("`mainstay approvals rules`")),
            ("proposal", None),
        ] {
            let unknown =
                mainstay_store::Error::UnknownId { what: what.to_owned(), typed: "x".to_owned() };
            let error = Error::from(unknown);
            assert_eq!(error.kind, Kind::Usage, "{what}");
            let listed = error.hints.iter().filter(|hint| hint.contains("`mainstay ")).count();
            assert_eq!(listed, usize::from(command.is_some()), "{what}: {:?}", error.hints);
            if let Some(command) = command {
                assert!(error.hints.iter().any(|hint| hint.contains(command)), "{error:?}");
            }
        }
    }

    #[test]
    fn every_kind_of_error_has_the_exit_code_of_who_must_act() {
        let code = |kind: Kind| kind.exit().code();
        assert_eq!(code(Kind::Usage), 2);
        assert_eq!(code(Kind::Configuration), 2);
        assert_eq!(code(Kind::InUse), 4);
        assert_eq!(code(Kind::Interrupted), 130);
        assert_eq!(code(Kind::Failed), 1);
    }
}
