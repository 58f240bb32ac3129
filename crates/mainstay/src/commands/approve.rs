//! `mainstay approve`, and what it shares with `mainstay deny`

use std::io::{self, BufRead as _, IsTerminal as _};

use clap::Args;
use mainstay_agent::approvals::requests::{self, Approval, DecideOutcome, Decider, Effort};
use mainstay_agent::{Friction, Verdict};
use mainstay_journal::SessionId;
use mainstay_journal::session::root;
use mainstay_store::ProcessIdentity;

use super::approvals;
use super::resume::{self, ResumeArgs};
use crate::context::{Context, open_existing};
use crate::error::{Error, Kind};
use crate::exit::Exit;
use crate::printing;
use crate::{engine, humans_only, proof, wording};

/// Allow a call that is waiting for your decision
///
/// This allows that one call as it was asked, once.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// Request to approve (a prefix of its ID is enough); see `mainstay approvals`
    id: String,

    /// Also allow similar calls in this session; `mainstay approvals` shows which
    #[arg(long, conflicts_with = "always")]
    session: bool,

    /// Also allow similar calls from now on; `mainstay approvals` shows which
    #[arg(long)]
    always: bool,

    /// Confirm a call for which a plain yes is not enough
    #[arg(long)]
    sure: bool,

    /// Continue the turn right away
    #[arg(long)]
    resume: bool,
}

pub(crate) fn run(args: &ApproveArgs, context: &Context) -> Result<Exit, Error> {
    let verdict = match (args.session, args.always) {
        (_, true) => Verdict::Always,
        (true, false) => Verdict::Session,
        (false, false) => Verdict::Once,
    };
    let effort = if args.sure { Effort::Word } else { Effort::Key };
    let decision = Decision { typed: &args.id, verdict, effort, command: "mainstay approve" };
    let (approval, session) = decision.made(context)?;
    let request = &approval.request;
    let how = match (&decision.verdict, &request.always) {
        (Verdict::Always, Some(always)) => format!("always: {}", wording::line(always)),
        (Verdict::Session, Some(always)) => {
            format!("for this session: {}", wording::line(always))
        }
        _ => "once".to_owned(),
    };
    let words = format!("Approved, {how}: {}.", wording::line(&wording::wants(request)));
    report_decision(&approval, session, &words, args.resume, context)
}

/// What was decided on the command line.
pub(super) struct Decision<'a> {
    pub(super) typed: &'a str,
    pub(super) verdict: Verdict,
    pub(super) effort: Effort,
    pub(super) command: &'a str,
}

impl Decision<'_> {
    /// Writes the decision down, or says why not. With it comes the session to go on with: a helper
    /// asks for the one that it helps.
    pub(super) fn made(&self, context: &Context) -> Result<(Approval, SessionId), Error> {
        humans_only::require(self.command)?;
        let paths = context.paths()?;
        let store = open_existing(&paths)?;
        let owner = engine::existing_owner(&store, "request", self.typed)?;
        let found = store.read(|tx| requests::find(tx, owner, self.typed))?;
        let remembers = matches!(self.verdict, Verdict::Session | Verdict::Always);
        if remembers && found.request.always.is_none() {
            return Err(Error::usage("this call cannot be allowed always, only once")
                .hint(format!("Allow it once: `mainstay approve {}`", found.request.id)));
        }
        let session = store.read(|tx| root(tx, found.request.session))?;
        let by = format!("`{}` ({})", self.command, ProcessIdentity::current());
        let sealer = proof::sealer(&paths, &store, owner)?;
        let mut effort = self.effort;
        loop {
            let given = Decider { by: &by, effort, sealer: sealer.as_ref() };
            let id = found.request.id;
            match store.write(|tx| requests::decide(tx, owner, id, &self.verdict, given))? {
                DecideOutcome::Done(approval) => return Ok((approval, session)),
                DecideOutcome::TooLate(approval) => return Err(too_late(&approval, session)),
                DecideOutcome::NotSure(approval, because) if typed_out(&approval, &because)? => {
                    effort = Effort::Word;
                }
                DecideOutcome::NotSure(approval, because) => {
                    return Err(not_sure(&approval, &because));
                }
            }
        }
    }
}

/// Tells what was decided, and goes on where that is wanted.
pub(super) fn report_decision(
    approval: &Approval,
    session: SessionId,
    words: &str,
    resume: bool,
    context: &Context,
) -> Result<Exit, Error> {
    if resume {
        if !context.json() {
            printing::say(words);
        }
        return resume::run(&ResumeArgs::of(session), context);
    }
    let next = context.paths()?.command(&format!("resume {session}"));
    let text = format!("{words}\nContinue with `{next}`.\n");
    context.output.answer(&approvals::data(approval), &text)?;
    Ok(Exit::Done)
}

/// Asks for the word on a terminal. False where there is none, or another word came.
fn typed_out(approval: &Approval, because: &str) -> Result<bool, Error> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    let request = &approval.request;
    let asked = printing::ask(&format!(
        "{}\nA plain yes is not enough: {because}.\nType {} to approve: ",
        wording::wants(request),
        Friction::WORD
    ));
    let mut line = String::new();
    asked.and_then(|()| io::stdin().lock().read_line(&mut line)).map_err(|error| {
        Error::failed(format!("could not read the terminal: {error}"))
            .hint(format!("Confirm with an option: `mainstay approve {} --sure`", request.id))
    })?;
    Ok(line.trim() == Friction::WORD)
}

fn not_sure(approval: &Approval, because: &str) -> Error {
    let request = &approval.request;
    Error::failed(format!(
        "not approved, a plain yes is not enough: {because}; {}",
        wording::wants(request)
    ))
    .hint(format!("If you mean it: `mainstay approve {} --sure`", request.id))
}

fn too_late(approval: &Approval, session: SessionId) -> Error {
    use requests::RequestStanding;
    let request = &approval.request;
    let when = match &approval.standing {
        RequestStanding::Allowed(decided) | RequestStanding::Denied(decided) => {
            format!(" at {}", wording::time(decided.at))
        }
        RequestStanding::Open | RequestStanding::Expired | RequestStanding::Lapsed => String::new(),
    };
    let error = Error {
        kind: Kind::Failed,
        message: format!(
            "could not decide request {}: {}{when}",
            request.id,
            approval.standing_text()
        ),
        hints: Vec::new(),
    };
    match &approval.standing {
        RequestStanding::Lapsed => error.hint("List what is waiting for you: `mainstay approvals`"),
        _ => error.hint(format!("Continue the turn: `mainstay resume {session}`")),
    }
}
