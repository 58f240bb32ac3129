//! One thing the doctor looked at.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// Works, but not as well or as safely as it could.
    Warning,
    /// Does not work, or data is in danger.
    Problem,
}

/// What was found. Whatever is not well has exactly one next command, which destroys nothing.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) check: &'static str,
    /// How bad it is.
    pub(super) status: Status,
    /// One sentence.
    pub(super) message: String,
    /// The command to type next.
    pub(super) next: Option<String>,
}

impl Finding {
    /// All is well with it.
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, message: message.into(), next: None }
    }

    /// It could be better.
    pub(super) fn warning(
        check: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        let (message, next) = (message.into(), Some(next.into()));
        Self { check, status: Status::Warning, message, next }
    }

    /// It is bad.
    pub(super) fn problem(
        check: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        let (message, next) = (message.into(), Some(next.into()));
        Self { check, status: Status::Problem, message, next }
    }
}
