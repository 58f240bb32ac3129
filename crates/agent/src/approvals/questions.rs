//! Questions that models ask people, as rows: answered once, by whoever is first.

use mainstay_journal::{CallId, SessionId, TurnId, call, session};
use mainstay_store::{Id, OwnerId, ReadTx, Row, WriteTx, params};

use crate::approvals::requests::{RequestFilter, TOPIC, storable};
use crate::approvals::seal::{Sealer, is_proven};
use crate::{Question, Result};

pub(crate) const TABLES: &str = "
CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (id),
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    call TEXT NOT NULL,
    text TEXT NOT NULL,
    choices TEXT NOT NULL,
    answer TEXT,
    answered_by TEXT,
    asked_at INTEGER NOT NULL,
    answered_at INTEGER
) STRICT;
CREATE INDEX questions_of_call ON questions (session, call);
CREATE INDEX questions_by_time ON questions (owner, asked_at);
";

/// A question, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedQuestion {
    /// What was asked.
    pub question: Question,
    /// How it stands.
    pub standing: QuestionStanding,
    /// The seal on the answer.
    seal: Option<String>,
}

/// How a question stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionStanding {
    /// It waits for somebody.
    Open,
    /// It has its answer.
    Answered {
        /// What was said.
        answer: String,
        /// Who said it.
        by: String,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// The turn went on without an answer.
    Lapsed,
}

/// The result of answering a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// It is answered like this.
    Done(RecordedQuestion),
    /// It was answered before, or the turn went on without an answer; `standing` says which.
    TooLate(RecordedQuestion),
}

/// Who gave an answer.
#[derive(Clone, Copy, Debug)]
pub struct Answerer<'a> {
    /// By whom, for whoever comes too late.
    pub by: &'a str,
    /// What proves it. It is `None` where nobody asks for a proof.
    pub sealer: Option<&'a Sealer>,
}

/// What is sealed here.
const KIND: &str = "answer";

/// A question that is to be asked.
#[derive(Clone, Copy)]
pub(crate) struct NewQuestion<'a> {
    pub(crate) owner: OwnerId,
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
    pub(crate) call: CallId,
    pub(crate) text: &'a str,
    pub(crate) choices: &'a [String],
}

/// Writes down a question. Nobody is asked before that.
pub(crate) fn ask(tx: &mut WriteTx<'_>, id: Id, new: &NewQuestion<'_>) -> Result<()> {
    let NewQuestion { owner, session, turn, call, text, choices } = *new;
    let now = tx.now();
    let choices = serde_json::Value::from(choices).to_string();
    tx.execute(
        "INSERT INTO questions (id, owner, session, turn, call, text, choices, asked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![id, owner, session, turn, call, storable(text), choices, now],
    )?;
    Ok(tx.wake(TOPIC)?)
}

/// Answers a question of this owner, unless somebody did. The number of a choice stands for it.
pub fn answer(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    id: Id,
    text: &str,
    given: Answerer<'_>,
) -> Result<AnswerOutcome> {
    let asked = get(tx, owner, id)?;
    if asked.standing != QuestionStanding::Open {
        return Ok(AnswerOutcome::TooLate(asked));
    }
    let now = tx.now();
    let text = storable(asked.question.meant(text));
    let said = [id.to_string(), text.clone(), now.to_string()];
    let seal = given.sealer.map(|sealer| sealer.seal(KIND, &said.each_ref().map(String::as_str)));
    tx.execute(
        "UPDATE questions SET answer = ?2, answered_by = ?3, answered_at = ?4, seal = ?5
         WHERE id = ?1",
        params![id, text, storable(given.by), now, seal],
    )?;
    tx.wake(TOPIC)?;
    Ok(AnswerOutcome::Done(get(tx, owner, id)?))
}

/// The question of this owner with this id.
pub fn get(tx: &mut ReadTx<'_>, owner: OwnerId, id: Id) -> Result<RecordedQuestion> {
    let found = select(tx, "q.owner = ?1 AND q.id = ?2", params![owner, id])?.pop();
    Ok(found.ok_or_else(|| unknown(&id.to_string()))?)
}

/// The question of this owner whose id begins like this.
pub fn find(tx: &mut ReadTx<'_>, owner: OwnerId, typed: &str) -> Result<RecordedQuestion> {
    let id = tx.find_id("questions", "question", typed)?;
    match get(tx, owner, id) {
        // An id of another owner is answered like one that does not exist.
        Err(_) => Err(unknown(typed).into()),
        found => found,
    }
}

/// The questions to an owner, the oldest first.
pub fn list(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    which: RequestFilter,
) -> Result<Vec<RecordedQuestion>> {
    let all = match which {
        RequestFilter::All => select(tx, "q.owner = ?1", params![owner])?,
        RequestFilter::Waiting => {
            select(tx, "q.owner = ?1 AND q.answered_at IS NULL", params![owner])?
        }
    };
    let wanted = |asked: &RecordedQuestion| {
        which == RequestFilter::All || asked.standing == QuestionStanding::Open
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// What was asked in sessions that turns of this one began.
pub(crate) fn of_descendants(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Question>> {
    let mut waiting = Vec::new();
    let mut sessions = session::children(tx, session)?;
    while let Some(child) = sessions.pop() {
        sessions.extend(session::children(tx, child)?);
        let open = select(tx, "q.session = ?1 AND q.answered_at IS NULL", params![child])?;
        let open = open.into_iter().filter(|asked| asked.standing == QuestionStanding::Open);
        waiting.extend(open.map(|asked| asked.question));
    }
    waiting.sort_by_key(|question| question.id);
    Ok(waiting)
}

/// The question that a call asks.
pub(crate) fn of_call(
    tx: &mut ReadTx<'_>,
    session: SessionId,
    call: CallId,
) -> Result<Option<RecordedQuestion>> {
    Ok(select(tx, "q.session = ?1 AND q.call = ?2", params![session, call])?.pop())
}

/// Takes the questions of a session away with it.
pub fn delete_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    tx.execute("DELETE FROM questions WHERE session = ?1", params![session])?;
    Ok(())
}

impl RecordedQuestion {
    /// Whether a person gave the answer that it has, or nobody did yet.
    pub(crate) fn is_proven(&self, sealer: Option<&Sealer>) -> bool {
        let QuestionStanding::Answered { answer, at, .. } = &self.standing else { return true };
        let (id, at) = (self.question.id.to_string(), at.to_string());
        is_proven(sealer, self.seal.as_deref(), KIND, &[&id, answer, &at])
    }
}

impl Question {
    /// What a person means who types this: the number of a choice stands for it.
    pub fn meant<'a>(&'a self, typed: &'a str) -> &'a str {
        let typed = typed.trim();
        let place = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        // Where a choice is that very number, the person means what it says.
        if self.choices.iter().any(|choice| choice == typed) {
            return typed;
        }
        place.and_then(|place| self.choices.get(place)).map_or(typed, String::as_str)
    }
}

impl QuestionStanding {
    /// A word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "waiting",
            Self::Answered { .. } => "answered",
            Self::Lapsed => "lapsed",
        }
    }
}

fn select(
    tx: &mut ReadTx<'_>,
    condition: &str,
    params: mainstay_store::Params<'_>,
) -> Result<Vec<RecordedQuestion>> {
    let sql = format!(
        "SELECT q.id, q.session, q.turn, q.call, q.text, q.choices, q.answer, q.answered_by,
             q.asked_at, q.answered_at, c.state, q.seal
         FROM questions q LEFT JOIN calls c ON c.session = q.session AND c.id = q.call
         WHERE {condition} ORDER BY q.asked_at, q.id"
    );
    Ok(tx.query(&sql, params, read)?)
}

fn read(row: &Row<'_>) -> mainstay_store::Result<RecordedQuestion> {
    let choices: String = row.get(5)?;
    let asked_at: i64 = row.get(8)?;
    let call: Option<call::State> = row.get(10)?;
    let standing = match row.get::<Option<String>>(6)? {
        Some(answer) => QuestionStanding::Answered {
            answer,
            by: row.get::<Option<String>>(7)?.unwrap_or_default(),
            at: row.get::<Option<i64>>(9)?.unwrap_or(asked_at),
        },
        None if call.is_none_or(|call| call == call::State::Done) => QuestionStanding::Lapsed,
        None => QuestionStanding::Open,
    };
    let question = Question {
        id: row.get(0)?,
        session: row.get(1)?,
        turn: row.get(2)?,
        call: row.get(3)?,
        text: row.get(4)?,
        choices: serde_json::from_str(&choices).unwrap_or_default(),
        asked_at,
    };
    Ok(RecordedQuestion { question, standing, seal: row.get(11)? })
}

fn unknown(typed: &str) -> mainstay_store::Error {
    mainstay_store::Error::UnknownId { what: "question".to_owned(), typed: typed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_a_choice_unless_it_is_one() {
        let question = |choices: &[&str]| Question {
            id: Id::new(),
            session: SessionId::new(),
            turn: TurnId::new(),
            call: CallId::new(),
            text: "which?".to_owned(),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            asked_at: 0,
        };
        let letters = question(&["red", "blue"]);
        let cases = [("1", "red"), (" 2\n", "blue"), ("3", "3"), ("0", "0"), ("green", "green")];
        for (typed, meant) in cases {
            assert_eq!(letters.meant(typed), meant);
        }
        assert_eq!(question(&["3", "1"]).meant("1"), "1");
        assert_eq!(question(&[]).meant("1"), "1");
    }
}
