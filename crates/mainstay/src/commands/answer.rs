//! `mainstay answer`

use clap::Args;
use mainstay_agent::approvals::questions::{self, AnswerOutcome, Answerer, QuestionStanding};
use mainstay_journal::session::root;
use mainstay_store::ProcessIdentity;
use serde_json::json;

use super::resume::{self, ResumeArgs};
use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::printing;
use crate::redaction;
use crate::{engine, humans_only, proof};

/// Answer a question from the model
#[derive(Args, Debug)]
pub(crate) struct AnswerArgs {
    /// Question to answer (a prefix of its ID is enough); see `mainstay approvals`
    id: String,

    /// Answer, or the number of a choice
    #[arg(allow_hyphen_values = true)]
    text: String,

    /// Continue the turn right away
    #[arg(long)]
    resume: bool,
}

pub(crate) fn run(args: &AnswerArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay answer")?;
    if args.text.trim().is_empty() {
        return Err(Error::usage("the answer is empty").hint("Pass the answer as TEXT."));
    }
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let owner = engine::existing_owner(&store, "question", &args.id)?;
    let by = format!("`mainstay answer` ({})", ProcessIdentity::current());
    let text = redaction::typed(&args.text, context)?;
    let sealer = proof::sealer(&paths, &store, owner)?;
    let given = Answerer { by: &by, sealer: sealer.as_ref() };
    let (came, session) = store.write(|tx| {
        let found = questions::find(tx, owner, &args.id)?;
        let session = root(tx, found.question.session)?;
        let came = questions::answer(tx, owner, found.question.id, &text, given)?;
        Ok::<_, mainstay_agent::Error>((came, session))
    })?;
    drop(store);
    let asked = match came {
        AnswerOutcome::Done(asked) => asked,
        AnswerOutcome::TooLate(asked) => {
            let question = &asked.question;
            let message =
                format!("could not answer question {}: {}", question.id, asked.standing_text());
            return Err(Error::failed(message)
                .hint(format!("Continue the turn: `mainstay resume {session}`")));
        }
    };
    let answer = match &asked.standing {
        QuestionStanding::Answered { answer, .. } => answer.as_str(),
        QuestionStanding::Open | QuestionStanding::Lapsed => text.as_str(),
    };
    if args.resume {
        if !context.json() {
            printing::say(&format!("Answered: {answer}"));
        }
        return resume::run(&ResumeArgs::of(session), context);
    }
    let next = paths.command(&format!("resume {session}"));
    let data =
        json!({ "id": asked.question.id, "session": asked.question.session, "answer": answer });
    context.output.answer(&data, &format!("Answered: {answer}\nContinue with `{next}`.\n"))?;
    Ok(Exit::Done)
}
