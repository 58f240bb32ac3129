//! Requests for a decision, as rows.
//!
//! A request names one exact action: a hash binds it to the tool, its arguments, the workspace, the
//! session, the call and what the policy made of it. It is decided once, by whoever is first, and a
//! yes is good for that one call. Functions here take a transaction, so that every face decides in
//! the same way.

use std::time::Duration;

use super::seal::{Sealer, is_proven};
use super::{friction, rules};
use mainstay_journal::{CallId, SessionId, TurnId, call, session};
use mainstay_store::{FromValue, Id, OwnerId, ReadTx, Row, ToValue, ValueRef, WriteTx, params};
use serde_json::Value;

use crate::policy::{ActionClass, Rule};
use crate::{Friction, Request, Result, Verdict};

/// The topic that is woken when something is asked or decided.
pub const TOPIC: &str = "approvals";

/// How long a request can be decided, and a yes used, where the settings say nothing else.
pub const LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) const TABLES: &str = "
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (id),
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    class TEXT NOT NULL,
    action TEXT NOT NULL,
    arguments TEXT NOT NULL,
    reason TEXT,
    rules TEXT NOT NULL,
    bound TEXT NOT NULL,
    workspace TEXT NOT NULL,
    state TEXT NOT NULL,
    said TEXT,
    decided_by TEXT,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decided_at INTEGER,
    used_at INTEGER
) STRICT;
CREATE INDEX approvals_of_call ON approvals (session, call);
CREATE INDEX approvals_by_time ON approvals (owner, asked_at);
CREATE INDEX approvals_decided ON approvals (owner, decided_at) WHERE decided_at IS NOT NULL;

CREATE TABLE approval_rules (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (id),
    workspace TEXT NOT NULL,
    class TEXT NOT NULL,
    rule TEXT NOT NULL,
    print TEXT NOT NULL,
    request TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (owner, print)
) STRICT;
";

/// What proves that a person decided, answered or said "always". Rows from before have none: a yes that
/// was not used is asked again.
pub(crate) const SEALS: &str = "
ALTER TABLE approvals ADD COLUMN seal TEXT;
ALTER TABLE approval_rules ADD COLUMN seal TEXT;
ALTER TABLE questions ADD COLUMN seal TEXT;
";

/// A request, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// What was asked.
    pub request: Request,
    /// Where the action would happen.
    pub workspace: String,
    /// How it stands.
    pub standing: RequestStanding,
    /// When the call began that was allowed.
    pub used_at: Option<i64>,
    /// Binds it to the exact action.
    bound: String,
    rules: Vec<Rule>,
    /// The seal on the decision, and what it must be on.
    seal: Option<String>,
    sealed: Vec<String>,
}

/// How a request stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestStanding {
    /// It waits for somebody.
    Open,
    /// Its call may run, or has.
    Allowed(RecordedDecision),
    /// Its call may not.
    Denied(RecordedDecision),
    /// Nobody decided in time, or a yes was not used in time: it is asked anew.
    Expired,
    /// The turn went on without it.
    Lapsed,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDecision {
    /// What was decided.
    pub verdict: Verdict,
    /// Who decided.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// Who gave a decision, and how deliberately.
#[derive(Clone, Copy, Debug)]
pub struct Decider<'a> {
    /// By whom, for whoever comes too late.
    pub by: &'a str,
    /// What it took.
    pub effort: Effort,
    /// What proves it. It is `None` where nobody asks for a proof.
    pub sealer: Option<&'a Sealer>,
}

/// What it took to give a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A key, or a plain command.
    Key,
    /// A word typed out, or an option that says the same.
    Word,
}

/// The result of deciding a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecideOutcome {
    /// It is decided like this.
    Done(Approval),
    /// It was decided before, or it expired; `standing` says which.
    TooLate(Approval),
    /// It is not decided: a yes takes more than a key, for this reason.
    NotSure(Approval, String),
}

/// What is to be asked.
pub(crate) struct NewRequest<'a> {
    pub(crate) owner: OwnerId,
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) class: ActionClass,
    pub(crate) action: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) reason: Option<&'a str>,
    pub(crate) rules: &'a [Rule],
    pub(crate) bound: &'a str,
    pub(crate) workspace: &'a str,
    pub(crate) limit: Duration,
}

/// Which requests are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFilter {
    /// Those that wait for somebody.
    Waiting,
    /// All of them, decided ones too.
    All,
}

/// Writes down a request. Nobody is asked before that.
pub(crate) fn ask(tx: &mut WriteTx<'_>, id: Id, new: &NewRequest<'_>) -> Result<()> {
    let now = tx.now();
    let rules = json(new.rules);
    let expires_at = now.saturating_add(i64::try_from(new.limit.as_millis()).unwrap_or(i64::MAX));
    let action = storable(new.action);
    let reason = new.reason.map(storable);
    tx.execute(
        "INSERT INTO approvals (id, owner, session, turn, call, tool, class, action, arguments,
             reason, rules, bound, workspace, state, asked_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        params![
            id,
            new.owner,
            new.session,
            new.turn,
            new.call,
            storable(new.tool),
            new.class,
            action,
            new.arguments.to_string(),
            reason,
            rules,
            new.bound,
            storable(new.workspace),
            RequestState::Open,
            now,
            expires_at
        ],
    )?;
    Ok(tx.wake(TOPIC)?)
}

/// Decides a request of this owner, unless somebody did or its time is over.
pub fn decide(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    id: Id,
    verdict: &Verdict,
    given: Decider<'_>,
) -> Result<DecideOutcome> {
    let approval = get(tx, owner, id)?;
    if approval.standing != RequestStanding::Open {
        return Ok(DecideOutcome::TooLate(approval));
    }
    let state = match verdict {
        Verdict::Always if !approval.rules.is_empty() => RequestState::Always,
        Verdict::Session if !approval.rules.is_empty() => RequestState::Session,
        Verdict::Once | Verdict::Session | Verdict::Always => RequestState::Once,
        Verdict::Deny { .. } => RequestState::Denied,
    };
    if state != RequestState::Denied
        && given.effort == Effort::Key
        && let Some(because) = approval.request.friction.because()
    {
        let because = because.to_owned();
        return Ok(DecideOutcome::NotSure(approval, because));
    }
    let said = match verdict {
        Verdict::Deny { reason } => reason.as_deref().map(storable),
        Verdict::Once | Verdict::Session | Verdict::Always => None,
    };
    let now = tx.now();
    // A yes can be used as long as the question could be answered.
    let until = now.saturating_add(approval.request.expires_at - approval.request.asked_at);
    let what = sealed_action(&approval.bound, &approval.rules);
    let sealed = sealed(id, &what, state, said.as_deref(), now, until);
    let seal = given.sealer.map(|sealer| sealer.seal(KIND, &texts(&sealed)));
    tx.execute(
        "UPDATE approvals SET state = ?2, said = ?3, decided_by = ?4, decided_at = ?5,
             expires_at = ?6, seal = ?7 WHERE id = ?1",
        params![id, state, said, storable(given.by), now, until, seal],
    )?;
    if state == RequestState::Always {
        for rule in &approval.rules {
            rules::remember(tx, owner, &approval, rule, given.sealer)?;
        }
    }
    tx.wake(TOPIC)?;
    Ok(DecideOutcome::Done(get(tx, owner, id)?))
}

/// Notes that the call of a request is about to run. It is part of the commit that starts it.
pub(crate) fn spend(tx: &mut WriteTx<'_>, id: Id) -> Result<()> {
    let now = tx.now();
    tx.execute(
        "UPDATE approvals SET used_at = ?2 WHERE id = ?1 AND used_at IS NULL",
        params![id, now],
    )?;
    Ok(())
}

/// The request of this owner with this id.
pub fn get(tx: &mut ReadTx<'_>, owner: OwnerId, id: Id) -> Result<Approval> {
    let found = select(tx, "a.owner = ?1 AND a.id = ?2", params![owner, id])?.pop();
    Ok(found.ok_or_else(|| unknown(&id.to_string()))?)
}

/// The request of this owner whose id begins like this.
pub fn find(tx: &mut ReadTx<'_>, owner: OwnerId, typed: &str) -> Result<Approval> {
    let id = tx.find_id("approvals", "request", typed)?;
    match get(tx, owner, id) {
        // An id of another owner is answered like one that does not exist.
        Err(_) => Err(unknown(typed).into()),
        found => found,
    }
}

/// The requests of an owner, the oldest first.
pub fn list(tx: &mut ReadTx<'_>, owner: OwnerId, which: RequestFilter) -> Result<Vec<Approval>> {
    let all = match which {
        RequestFilter::All => select(tx, "a.owner = ?1", params![owner])?,
        RequestFilter::Waiting => select(tx, "a.owner = ?1 AND a.state = 'open'", params![owner])?,
    };
    let wanted = |approval: &Approval| {
        which == RequestFilter::All || approval.standing == RequestStanding::Open
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// What waits in sessions that turns of this one began.
pub(crate) fn of_descendants(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Request>> {
    let mut waiting = Vec::new();
    let mut sessions = session::children(tx, session)?;
    while let Some(child) = sessions.pop() {
        sessions.extend(session::children(tx, child)?);
        let open = select(tx, "a.session = ?1 AND a.state = 'open'", params![child])?;
        let open = open.into_iter().filter(|approval| approval.standing == RequestStanding::Open);
        waiting.extend(open.map(|approval| approval.request));
    }
    waiting.sort_by_key(|request| request.id);
    Ok(waiting)
}

/// The requests of a session, the oldest first.
pub fn of_session(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Approval>> {
    select(tx, "a.session = ?1", params![session])
}

/// What a person is proven to have approved for a session. It holds as long as the session lasts.
pub(super) fn rules_of_session(
    tx: &mut ReadTx<'_>,
    session: SessionId,
    sealer: Option<&Sealer>,
) -> Result<Vec<Rule>> {
    let condition = "a.session = ?1 AND a.state = ?2";
    let found = select(tx, condition, params![session, RequestState::Session])?;
    let proven = found.into_iter().filter(|approval| {
        is_proven(sealer, approval.seal.as_deref(), KIND, &texts(&approval.sealed))
    });
    Ok(proven.flat_map(|approval| approval.rules).collect())
}

/// The last request for a call.
pub(crate) fn of_call(
    tx: &mut ReadTx<'_>,
    session: SessionId,
    call: CallId,
) -> Result<Option<Approval>> {
    Ok(select(tx, "a.session = ?1 AND a.call = ?2", params![session, call])?.pop())
}

/// Takes the requests of a session away with it.
pub fn delete_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    tx.execute("DELETE FROM approvals WHERE session = ?1", params![session])?;
    Ok(())
}

impl Approval {
    /// Whether it was asked about exactly this.
    pub(crate) fn is_about(&self, bound: &str) -> bool {
        self.bound == bound
    }

    /// Whether a person decided it as it says, or nobody did yet. What was used is past.
    pub(crate) fn is_proven(&self, sealer: Option<&Sealer>) -> bool {
        let decided =
            matches!(self.standing, RequestStanding::Allowed(_) | RequestStanding::Denied(_));
        !decided
            || self.used_at.is_some()
            || is_proven(sealer, self.seal.as_deref(), KIND, &texts(&self.sealed))
    }
}

/// What is sealed here.
const KIND: &str = "approval";

/// The action that was decided on, and what a yes to it remembers.
fn sealed_action(bound: &str, rules: &[Rule]) -> String {
    format!("{bound} {}", json(rules))
}

/// All that a decision says.
fn sealed(
    id: Id,
    action: &str,
    state: RequestState,
    said: Option<&str>,
    decided_at: i64,
    expires_at: i64,
) -> Vec<String> {
    let state = match state.to_value() {
        ValueRef::Text(word) => word.to_owned(),
        _ => String::new(),
    };
    let (is_said, said) = (said.is_some(), said.unwrap_or_default());
    vec![
        id.to_string(),
        action.to_owned(),
        state,
        is_said.to_string(),
        said.to_owned(),
        decided_at.to_string(),
        expires_at.to_string(),
    ]
}

fn texts(said: &[String]) -> Vec<&str> {
    said.iter().map(String::as_str).collect()
}

impl RequestStanding {
    /// A word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "waiting",
            Self::Allowed(decided) => match decided.verdict {
                Verdict::Always => "always",
                Verdict::Session => "session",
                Verdict::Once | Verdict::Deny { .. } => "approved",
            },
            Self::Denied(_) => "denied",
            Self::Expired => "expired",
            Self::Lapsed => "lapsed",
        }
    }
}

/// The column `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Open,
    Once,
    Session,
    Always,
    Denied,
}

impl ToValue for RequestState {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(match self {
            Self::Open => "open",
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Denied => "denied",
        })
    }
}

impl FromValue for RequestState {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Text("open") => Some(Self::Open),
            ValueRef::Text("once") => Some(Self::Once),
            ValueRef::Text("session") => Some(Self::Session),
            ValueRef::Text("always") => Some(Self::Always),
            ValueRef::Text("denied") => Some(Self::Denied),
            _ => None,
        }
    }
}

fn select(
    tx: &mut ReadTx<'_>,
    condition: &str,
    params: mainstay_store::Params<'_>,
) -> Result<Vec<Approval>> {
    let sql = format!(
        "SELECT a.id, a.session, a.turn, a.call, a.tool, a.class, a.action, a.arguments, a.reason,
             a.rules, a.bound, a.workspace, a.state, a.said, a.decided_by, a.asked_at, a.expires_at,
             a.decided_at, a.used_at, a.owner, c.state, a.seal
         FROM approvals a LEFT JOIN calls c ON c.session = a.session AND c.id = a.call
         WHERE {condition} ORDER BY a.asked_at, a.id"
    );
    let now = tx.now();
    let mut found = tx.query(&sql, params, |row| Ok((read(row, now)?, row.get(19)?)))?;
    for (approval, owner) in &mut found {
        if approval.standing == RequestStanding::Open {
            approval.request.friction =
                friction::required_friction(tx, *owner, approval.request.class)?;
        }
    }
    Ok(found.into_iter().map(|(approval, _)| approval).collect())
}

fn read(row: &Row<'_>, now: i64) -> mainstay_store::Result<Approval> {
    let asked_at: i64 = row.get(15)?;
    let expires_at: i64 = row.get(16)?;
    let used_at: Option<i64> = row.get(18)?;
    let state: RequestState = row.get(12)?;
    let call: Option<call::State> = row.get(20)?;
    let decided = |verdict| -> mainstay_store::Result<RecordedDecision> {
        let by: Option<String> = row.get(14)?;
        let at: Option<i64> = row.get(17)?;
        Ok(RecordedDecision { verdict, by: by.unwrap_or_default(), at: at.unwrap_or(asked_at) })
    };
    let expired = now >= expires_at;
    let standing = match state {
        RequestState::Open if call.is_none_or(|call| call == call::State::Done) => {
            RequestStanding::Lapsed
        }
        RequestState::Open if expired => RequestStanding::Expired,
        RequestState::Open => RequestStanding::Open,
        RequestState::Once | RequestState::Session | RequestState::Always
            if expired && used_at.is_none() =>
        {
            RequestStanding::Expired
        }
        RequestState::Once => RequestStanding::Allowed(decided(Verdict::Once)?),
        RequestState::Session => RequestStanding::Allowed(decided(Verdict::Session)?),
        RequestState::Always => RequestStanding::Allowed(decided(Verdict::Always)?),
        RequestState::Denied => {
            RequestStanding::Denied(decided(Verdict::Deny { reason: row.get(13)? })?)
        }
    };
    let (id, bound, said): (Id, String, Option<String>) = (row.get(0)?, row.get(10)?, row.get(13)?);
    let decided_at: Option<i64> = row.get(17)?;
    let decided_at = decided_at.unwrap_or(asked_at);
    let rules: String = row.get(9)?;
    let arguments: String = row.get(7)?;
    // Rules that cannot be parsed are dropped: then "always" counts as once.
    let rules: Vec<Rule> = serde_json::from_str(&rules).unwrap_or_default();
    let what = sealed_action(&bound, &rules);
    let sealed = sealed(id, &what, state, said.as_deref(), decided_at, expires_at);
    let covered: Vec<String> = rules.iter().map(Rule::describe).collect();
    Ok(Approval {
        request: Request {
            id,
            session: row.get(1)?,
            turn: row.get(2)?,
            call: row.get(3)?,
            tool: row.get(4)?,
            class: row.get(5)?,
            action: row.get(6)?,
            arguments: serde_json::from_str(&arguments).unwrap_or_default(),
            reason: row.get(8)?,
            always: (!covered.is_empty()).then(|| covered.join(" and ")),
            friction: Friction::Key,
            asked_at,
            expires_at,
        },
        workspace: row.get(11)?,
        standing,
        used_at,
        bound,
        rules,
        seal: row.get(21)?,
        sealed,
    })
}

fn json(rules: &[Rule]) -> String {
    // A path that is not UTF-8 cannot be written as JSON; then nothing is remembered.
    serde_json::to_string(rules).unwrap_or_else(|_| "[]".to_owned())
}

fn unknown(typed: &str) -> mainstay_store::Error {
    mainstay_store::Error::UnknownId { what: "request".to_owned(), typed: typed.to_owned() }
}

/// Text as the store takes it: any character but NUL.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\\u0000")
}
