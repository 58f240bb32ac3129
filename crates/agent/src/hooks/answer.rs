//! What hooks answer, and what it means.

use mainstay_tools::keeper::{Ended, Exit};
use serde_json::Value;

use super::{Failure, Hook, Moment};

/// The longest text that a hook brings into a conversation.
const LONGEST: usize = 10_000;
/// The longest line of a notice.
const LONGEST_LINE: usize = 300;

/// What the hooks of one moment said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HookReply {
    /// Why it must not be done, or is not done yet.
    pub(crate) block: Option<String>,
    /// Why the turn is to end.
    pub(crate) halt: Option<String>,
    /// What was said about asking a person.
    pub(crate) permission: Option<Permission>,
    /// What is done instead of what was asked for, in the words of the hook.
    pub(crate) input: Option<Value>,
    /// What the model is to know.
    pub(crate) context: Vec<String>,
    /// What the user is to know.
    pub(crate) notices: Vec<String>,
}

/// What hooks say about asking a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Nobody has to be asked.
    Allow,
    /// Somebody has to be, for this reason.
    Ask(String),
}

impl HookReply {
    /// Puts the words of the next hook to those of the ones before. The strictest holds; of two
    /// that change the input the first one does.
    pub(super) fn join(&mut self, next: HookReply) {
        let HookReply { block, halt, permission, input, context, notices } = next;
        self.block = self.block.take().or(block);
        self.halt = self.halt.take().or(halt);
        self.permission = match (self.permission.take(), permission) {
            (Some(ask @ Permission::Ask(_)), _) | (_, Some(ask @ Permission::Ask(_))) => Some(ask),
            (one, other) => one.or(other),
        };
        match (&self.input, input) {
            (None, input) => self.input = input,
            (Some(first), Some(second)) if *first != second => {
                let words = "two hooks changed the same call differently; the first one holds";
                self.notices.push(words.to_owned());
            }
            (Some(_), _) => {}
        }
        self.context.extend(context);
        self.notices.extend(notices);
    }

    /// What a hook that failed means.
    pub(super) fn failed(hook: &Hook, how: &str) -> Self {
        let name = short(&hook.command);
        let moment = hook.moment.name();
        let mut heard = Self::default();
        heard.notices.push(format!("the {moment} hook `{name}` {how}"));
        if hook.failure == Failure::Blocks {
            heard.block = Some(format!("the hook that has to agree, `{name}`, {how}"));
        }
        heard
    }

    /// What a hook meant that ended. `output` is all that it wrote; nothing where it was too much.
    pub(super) fn read(hook: &Hook, ended: &Ended, output: Option<&[u8]>) -> Self {
        let errors = ended.errors.as_ref().map(|errors| errors.text()).unwrap_or_default();
        match &ended.how {
            Exit::Code(0) => match output.map(std::str::from_utf8) {
                None => Self::failed(hook, "wrote more than anybody reads; it is ignored"),
                Some(Err(_)) => Self::failed(hook, "wrote what is no text; it is ignored"),
                Some(Ok(text)) => Self::said(hook, text.trim()),
            },
            Exit::Code(2) => {
                let said = match (errors.trim(), output.map(String::from_utf8_lossy)) {
                    ("", Some(output)) => output.trim().to_owned(),
                    (errors, _) => errors.to_owned(),
                };
                let mut heard = Self::default();
                match hook.moment {
                    Moment::SessionStart => heard.notices.push(one_line(&said)),
                    _ => heard.block = Some(reason(&said)),
                }
                heard
            }
            how => {
                let line = first_line(&errors);
                let said = if line.is_empty() { String::new() } else { format!(": {line}") };
                let verb = match how {
                    Exit::Killed(_) => "was ",
                    Exit::Failed(_) => "",
                    _ => "ended with ",
                };
                Self::failed(hook, &format!("{verb}{how}{said}"))
            }
        }
    }

    /// What a hook meant by what it wrote.
    fn said(hook: &Hook, text: &str) -> Self {
        if text.starts_with('{') {
            return match serde_json::from_str(text) {
                Ok(answer) => Self::answered(hook, &answer),
                Err(error) => {
                    Self::failed(hook, &format!("wrote JSON that cannot be read: {error}"))
                }
            };
        }
        let mut heard = Self::default();
        let adds = matches!(
            hook.moment,
            Moment::SessionStart | Moment::UserPromptSubmit | Moment::PreCompact
        );
        if text.contains('\0') {
            return Self::failed(hook, "wrote what is no text; it is ignored");
        }
        if adds && !text.is_empty() {
            heard.context.push(bounded(text));
        }
        heard
    }

    fn answered(hook: &Hook, answer: &Value) -> Self {
        let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
        let special = answer.get("hookSpecificOutput").unwrap_or(&Value::Null);
        let mut heard = Self::default();
        let before = hook.moment == Moment::PreToolUse;
        heard.notices.extend(text(answer, "systemMessage").map(|words| cut(&words)));
        if answer.get("continue") == Some(&Value::Bool(false)) {
            let why = text(answer, "stopReason").unwrap_or_default();
            heard.halt = Some(reason(&why));
        }
        let why = text(answer, "reason").unwrap_or_default();
        match text(answer, "decision").as_deref() {
            None => {}
            Some("block" | "deny") => heard.block = Some(reason(&why)),
            Some("approve" | "allow") => heard.permission = before.then_some(Permission::Allow),
            Some(other) => heard.notices.push(unknown_word(hook, other)),
        }
        let why = text(special, "permissionDecisionReason").unwrap_or_default();
        match text(special, "permissionDecision").as_deref().filter(|_| before) {
            None | Some("defer") => {}
            Some("allow") => heard.permission = Some(Permission::Allow),
            Some("ask") => heard.permission = Some(Permission::Ask(reason(&why))),
            Some("deny") => heard.block = Some(reason(&why)),
            Some(other) => heard.notices.push(unknown_word(hook, other)),
        }
        heard.context.extend(text(special, "additionalContext").map(|words| bounded(&words)));
        if before {
            heard.input = special.get("updatedInput").filter(|input| input.is_object()).cloned();
        }
        heard
    }
}

fn unknown_word(hook: &Hook, word: &str) -> String {
    let (name, word) = (short(&hook.command), short(word));
    format!("the {} hook `{name}` decided {word:?}, which means nothing here", hook.moment.name())
}

/// A reason, which nobody may leave out.
fn reason(said: &str) -> String {
    match said.trim() {
        "" => "it gave no reason".to_owned(),
        said => bounded(said),
    }
}

fn bounded(text: &str) -> String {
    let text = text.trim();
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("{}\n[… cut here]", &text[..text.floor_char_boundary(LONGEST)])
}

fn first_line(text: &str) -> String {
    one_line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
}

/// Words on one line, without what a terminal would obey.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&words.join(" "))
}

fn cut(text: &str) -> String {
    let clean: String = text.chars().filter(|letter| !letter.is_control()).collect();
    if clean.len() <= LONGEST_LINE {
        return clean;
    }
    format!("{} …", &clean[..clean.floor_char_boundary(LONGEST_LINE)])
}

/// A command, as much of it as tells it from others.
fn short(command: &str) -> String {
    let line = one_line(command);
    if line.chars().count() <= 60 {
        return line;
    }
    format!("{} …", line.chars().take(60).collect::<String>())
}

#[cfg(test)]
mod tests;
