//! The commands of the chat: lines that begin with a slash.

use mainstay_agent::skills::is_invocation;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    Help,
    Model,
    Mode,
    New,
    Resume,
    Fork,
    Undo,
    Retry,
    Context,
    Compact,
    Uncompact,
    Cost,
    Approvals,
    Memory,
    Skills,
    Processes,
    Quit,
}

/// A command, what it takes, and what it does.
pub(crate) const ALL: &[(Slash, &str, &str, &str)] = &[
    (Slash::Help, "help", "", "show commands and keys"),
    (Slash::Model, "model", "[PROVIDER/MODEL]", "list models, or switch to another one"),
    (Slash::Mode, "mode", "[plan|ask|auto|yes]", "show what is done without asking, or change it"),
    (Slash::New, "new", "", "start a new session"),
    (Slash::Resume, "resume", "[ID]", "list sessions, or open one"),
    (Slash::Fork, "fork", "[TURN]", "continue in a copy of the session; files stay as they are"),
    (Slash::Undo, "undo", "[keep|force|redo]", "restore files as they were before the last turn"),
    (Slash::Retry, "retry", "", "try the last message again"),
    (Slash::Context, "context", "", "show what uses the tokens"),
    (Slash::Compact, "compact", "[FOCUS]", "replace the old part with a summary, to make room"),
    (Slash::Uncompact, "uncompact", "", "revert the last compaction"),
    (Slash::Cost, "cost", "", "show the cost of the session and the day"),
    (
        Slash::Approvals,
        "approvals",
        "",
        "list what is waiting for a decision, and what you always allow",
    ),
    (Slash::Memory, "memory", "", "show what is remembered, and what was recalled here"),
    (Slash::Skills, "skills", "[approve|reject ID]", "list skills, and decide on proposed ones"),
    (Slash::Processes, "processes", "", "list what runs in the background"),
    (Slash::Quit, "quit", "", "leave; everything is saved"),
];

impl Slash {
    /// Whether it can be done while a turn goes on: it only looks, or it ends all.
    pub(crate) fn works_during_a_turn(self) -> bool {
        match self {
            Self::Help | Self::Context | Self::Cost | Self::Approvals | Self::Processes => true,
            Self::Memory | Self::Skills | Self::Quit | Self::Compact => true,
            Self::Model
            | Self::Mode
            | Self::New
            | Self::Resume
            | Self::Fork
            | Self::Undo
            | Self::Retry => false,
            Self::Uncompact => false,
        }
    }
}

/// Reads a line that begins with a slash: a command, or as much of its name as tells it apart.
/// Returns `None` if the line is not a command, such as a path.
pub(crate) fn parse(line: &str) -> Option<Result<(Slash, &str), String>> {
    let rest = line.strip_prefix('/')?;
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.contains('/') || line.trim_end().contains('\n') {
        return None;
    }
    let rest = rest.trim();
    let matching: Vec<_> = ALL.iter().filter(|(_, full, ..)| full.starts_with(name)).collect();
    let exact = ALL.iter().find(|(_, full, ..)| *full == name);
    Some(match (exact, &matching[..]) {
        (Some((slash, ..)), _) | (None, [(slash, ..)]) if !name.is_empty() => Ok((*slash, rest)),
        (_, []) => Err(format!("Unknown command /{name}. /help lists all commands.")),
        (_, several) => {
            let names: Vec<String> =
                several.iter().map(|(_, full, ..)| format!("/{full}")).collect();
            Err(format!("/{name} is ambiguous: {}.", names.join(", ")))
        }
    })
}

/// Whether a word is the whole name of a command.
pub(crate) fn is_command(name: &str) -> bool {
    ALL.iter().any(|(_, full, ..)| *full == name)
}

/// The skill that a line calls for by its whole name, if it is known and no command has the name.
pub(crate) fn skill(line: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
    let (name, _) = is_invocation(line)?;
    (!is_command(name) && is_known(name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_called_by_its_whole_name_and_a_command_comes_first() {
        let known = |name: &str| ["deploy", "help", "q"].contains(&name);
        assert_eq!(skill("/deploy now", known), Some("deploy"));
        assert_eq!(skill("/q", known), Some("q"), "before a shortened command");
        assert_eq!(skill("/help", known), None);
        assert_eq!(skill("/dep", known), None);
        assert_eq!(skill("/deploy/x", known), None);
    }

    #[test]
    fn names_may_be_shortened_while_they_are_clear() {
        assert_eq!(parse("/mode plan"), Some(Ok((Slash::Mode, "plan"))));
        assert_eq!(parse("/model a/b"), Some(Ok((Slash::Model, "a/b"))));
        assert_eq!(parse("/q"), Some(Ok((Slash::Quit, ""))));
        assert!(matches!(parse("/re"), Some(Err(words)) if words.contains("/resume, /retry")));
        assert!(matches!(parse("/nothing"), Some(Err(words)) if words.contains("/help")));
        assert_eq!(parse("/etc/passwd is what?"), None);
        assert_eq!(parse("hello"), None);
        assert!(matches!(parse("/"), Some(Err(_))));
    }
}
