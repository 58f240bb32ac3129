//! Whoever can be asked while a turn goes on, and what is asked.
//!
//! A question is a row before it is put to anybody, and what was answered is a commit before
//! anything is done with it. So it does not matter who answers: a person at this terminal, another
//! process, or nobody, in which case the turn is parked and the question waits.

use futures_util::future::BoxFuture;
use mainstay_journal::{CallId, SessionId, TurnId};
use mainstay_store::Id;
use serde::Serialize;
use serde_json::Value;

use crate::policy::ActionClass;

/// Somebody who can be asked while a turn goes on: the person at a terminal, for one.
///
/// An answer of `None` means that nobody answers now: the turn is parked and the question stays. The
/// future is dropped when somebody else answered first, when the turn is cancelled, and when the
/// question's time is over; a face then takes its prompt away.
pub trait Asker: Send + Sync {
    /// Asks whether an action may be done.
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Verdict>>;

    /// Asks a question of the model.
    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>>;

    /// Says that an answer came too late, because somebody else had decided: who and what, in a
    /// sentence.
    fn overtaken(&self, _words: &str) {}
}

/// A request for a decision on one exact action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Its name, for `mainstay approve`.
    pub id: Id,
    /// The session that asks.
    pub session: SessionId,
    /// The turn that asks.
    pub turn: TurnId,
    /// The call that is to run.
    pub call: CallId,
    /// The tool that is called.
    pub tool: String,
    /// What the policy takes the action for.
    pub class: ActionClass,
    /// The exact action, in words that go on after "wants": "to run `make`".
    pub action: String,
    /// The arguments of the call.
    pub arguments: Value,
    /// Why the policy asks, if there is more to say than the class: a clause such as "it deletes files".
    pub reason: Option<String>,
    /// What "always" would remember, such as "the command `cargo test`". It is `None` if
    /// "always" cannot be said.
    pub always: Option<String>,
    /// What a yes takes.
    pub friction: Friction,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: i64,
    /// Until when it can be decided.
    pub expires_at: i64,
}

impl Request {
    /// "TOOL wants to do this": the one sentence that all faces show.
    pub fn wants(&self) -> String {
        format!("{} wants {}", self.tool, self.action)
    }
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This call may run, once.
    Once,
    /// It may, and so may what [`Request::always`] names, in this session. Where there is no always it
    /// counts as once.
    Session,
    /// It may, and so may what [`Request::always`] names from now on. Where there is no always it
    /// counts as once.
    Always,
    /// It may not.
    Deny {
        /// Why, for the model.
        reason: Option<String>,
    },
}

/// What a yes takes: the more often yes was said, the less it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Friction {
    /// A key.
    Key,
    /// A word that is typed out, for this reason, a clause: "this is the fourth approval of its kind
    /// within a minute".
    Word {
        /// Why.
        because: String,
    },
}

impl Friction {
    /// The word that is typed where a key is not enough.
    pub const WORD: &'static str = "yes";

    /// Why a key is not enough. Returns `None` if it is.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::Key => None,
            Self::Word { because } => Some(because),
        }
    }
}

/// A question that a model asks the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Its name, for `mainstay answer`.
    pub id: Id,
    /// The session that asks.
    pub session: SessionId,
    /// The turn that asks.
    pub turn: TurnId,
    /// The call that waits for the answer.
    pub call: CallId,
    /// What is asked.
    pub text: String,
    /// Answers to choose from; any other is as good.
    pub choices: Vec<String>,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: i64,
}
