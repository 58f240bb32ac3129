//! `mainstay approve`, and what it shares with `mainstay deny`

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

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
use crate::{engine, person, wording};

/// Let a call run that waits for your decision
///
/// The yes is for this one call as it was asked, and is used once.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// The request (the start of its id is enough); see `mainstay approvals`
    id: String,

    /// Say yes also to the like from now on; `mainstay approvals` shows to what
    #[arg(long)]
    always: bool,

    /// Say that it is meant, where a plain yes is not enough
    #[arg(long)]
    sure: bool,

    /// Go on with the turn at once
    #[arg(long)]
    resume: bool,
}

pub(crate) fn run(args: &ApproveArgs, context: &Context) -> Result<Exit, Error> {
    let verdict = if args.always { Verdict::Always } else { Verdict::Once };
    let effort = if args.sure { Effort::Word } else { Effort::Key };
    let decision = Decision { typed: &args.id, verdict, effort, command: "mainstay approve" };
    let (approval, session) = decision.made(context)?;
    let request = &approval.request;
    let how = match (&decision.verdict, &request.always) {
        (Verdict::Always, Some(always)) => format!("now and always: {}", wording::line(always)),
        _ => "once".to_owned(),
    };
    let words =
        format!("Approved, {how}: {} wants {}.", request.tool, wording::line(&request.action));
    told(&approval, session, &words, args.resume, context)
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
        person::only(self.command)?;
        let settings = context.settings()?;
        let store = open_existing(&settings.store)?;
        let owner = engine::existing_owner(&store, "request", self.typed)?;
        let found = store.read(|tx| requests::find(tx, owner, self.typed))?;
        if self.verdict == Verdict::Always && found.request.always.is_none() {
            return Err(Error::usage("there is no always for this: it is asked about each time")
                .hint(format!("Say yes to this one: `mainstay approve {}`", found.request.id)));
        }
        let session = store.read(|tx| root(tx, found.request.session))?;
        let by = format!("`{}` ({})", self.command, ProcessIdentity::current());
        let mut effort = self.effort;
        loop {
            let given = Decider { by: &by, effort };
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
pub(super) fn told(
    approval: &Approval,
    session: SessionId,
    words: &str,
    resume: bool,
    context: &Context,
) -> Result<Exit, Error> {
    if resume {
        if !context.json() {
            // With standard error gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "{words}");
        }
        return resume::run(&ResumeArgs::of(session), context);
    }
    let next = context.settings()?.command(&format!("resume {session}"));
    let text = format!("{words}\nGo on with `{next}`.\n");
    context.output.answer(&approvals::data(approval), &text)?;
    Ok(Exit::Done)
}

/// Asks for the word on a terminal. False where there is none, or another word came.
fn typed_out(approval: &Approval, because: &str) -> Result<bool, Error> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    let request = &approval.request;
    let mut said = io::stderr().lock();
    let asked = writeln!(said, "{} wants {}", request.tool, request.action)
        .and_then(|()| writeln!(said, "A plain yes is not enough: {because}."))
        .and_then(|()| write!(said, "Type {} to approve: ", Friction::WORD))
        .and_then(|()| said.flush());
    drop(said);
    let mut line = String::new();
    asked.and_then(|()| io::stdin().lock().read_line(&mut line)).map_err(|error| {
        Error::failed(format!("the terminal cannot be read: {error}"))
            .hint(format!("Say it with an option: `mainstay approve {} --sure`", request.id))
    })?;
    Ok(line.trim() == Friction::WORD)
}

fn not_sure(approval: &Approval, because: &str) -> Error {
    let request = &approval.request;
    Error::failed(format!(
        "not approved, because a plain yes is not enough: {because}; {} wants {}",
        request.tool, request.action
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
            "request {} cannot be decided: {}{when}",
            request.id,
            approval.standing_text()
        ),
        hints: Vec::new(),
    };
    match &approval.standing {
        RequestStanding::Lapsed => error.hint("See what waits for you: `mainstay approvals`"),
        _ => error.hint(format!("Go on with the turn: `mainstay resume {session}`")),
    }
}
