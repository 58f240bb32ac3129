//! What is chosen for a turn. It is typed, and written with the turn. When another process takes the
//! turn up, it holds over the configuration of now, and what is typed now holds over it.

use std::path::Path;

use clap::Args;
use mainstay_agent::budget::dollars;
use mainstay_agent::{Agent, Event};
use mainstay_journal::SessionId;
use mainstay_journal::turn::{Mode, Turn, TurnChoices};
use mainstay_store::{OwnerId, Store};

use crate::config::{self, Config, Overrides, ProfileChoice};
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::humans_only;

/// What a turn may use, chosen on the command line.
#[derive(Args, Debug, Default)]
pub(crate) struct Choices {
    /// Use this model, PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// What to do without asking: plan, auto, ask or yes
    #[arg(long, value_name = "MODE", value_parser = mode_named)]
    mode: Option<Mode>,

    /// Approve everything that the policy would ask about; the same as --mode yes
    #[arg(long, short, conflicts_with = "mode")]
    yes: bool,

    /// Spend at most this much on the turn, in dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<f64>,
}

impl Choices {
    /// Nobody says yes to everything on a person's behalf.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.mode() {
            Some(Mode::Yes) => humans_only::require("--yes"),
            Some(Mode::Plan | Mode::Ask | Mode::Auto) | None => Ok(()),
        }
    }

    fn mode(&self) -> Option<Mode> {
        if self.yes { Some(Mode::Yes) } else { self.mode }
    }

    /// What they put over the configuration.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            model: self.model.clone(),
            budget: self.budget,
            mode: self.mode(),
            ..Overrides::default()
        }
    }
}

fn mode_named(name: &str) -> Result<Mode, String> {
    Mode::named(name).ok_or_else(|| "write plan, auto, ask or yes".to_owned())
}

/// An agent for one turn.
pub(crate) struct TurnAgent {
    pub(crate) agent: Agent,
    pub(crate) changes: Changes,
}

/// An agent for a turn that is taken up. Without a turn, or for one of a version that recorded no
/// choices, it is what the configuration and the command line say.
pub(crate) fn agent(
    context: &Context,
    store: &Store,
    owner: OwnerId,
    workspace: &Path,
    typed: Overrides,
    turn: Option<&Turn>,
) -> Result<TurnAgent, Error> {
    let kept = turn.and_then(kept);
    let over = match kept {
        None => typed,
        Some((session, kept)) => overrides(context, workspace, session, kept, &typed)?,
    };
    let agent = engine::agent(context, store.clone(), owner, workspace, over)?;
    let changes = Changes::between(kept.map(|(_, kept)| kept), agent.choices());
    Ok(TurnAgent { agent, changes })
}

/// The same for a process that has an agent already, whose keeper it shares. Returns `None` if the
/// turn has no choices of its own.
pub(crate) fn agent_beside(
    context: &Context,
    agent: &Agent,
    workspace: &Path,
    typed: &Overrides,
    turn: &Turn,
) -> Result<Option<TurnAgent>, Error> {
    let Some((session, kept)) = kept(turn) else { return Ok(None) };
    let over = overrides(context, workspace, session, kept, typed)?;
    let agent = agent.with_settings(engine::turn_settings(context, workspace, over)?);
    let changes = Changes::between(Some(kept), agent.choices());
    Ok(Some(TurnAgent { agent, changes }))
}

/// Whether an agent that was made for `before` suits the turn as it is now. Another process may have
/// worked on the session in between.
pub(crate) fn suits(before: Option<&Turn>, now: &Turn) -> bool {
    before.is_some_and(|before| before.id == now.id && before.choices == now.choices)
}

/// The choices of a turn. Returns `None` if a version of the program began it that recorded none.
fn kept(turn: &Turn) -> Option<(SessionId, &TurnChoices)> {
    let kept = turn.choices.as_ref().filter(|kept| !kept.models.is_empty())?;
    Some((turn.session, kept))
}

/// What a turn's choices and the command line put over the configuration. What the turn was begun with
/// and is gone is an error that says how to go on; a fallback that is gone is left out.
fn overrides(
    context: &Context,
    workspace: &Path,
    session: SessionId,
    kept: &TurnChoices,
    typed: &Overrides,
) -> Result<Overrides, Error> {
    if kept.mode == Mode::Yes && typed.mode.is_none() {
        // An agent's command must not get by a resume what it cannot ask for.
        humans_only::require("--yes")?;
    }
    let mut over = merged(kept, typed, context.typed_profile());
    let paths = context.paths()?;
    if let ProfileChoice::OfTurn(Some(name)) = &over.profile {
        let (profiles, _) = config::profiles(&paths.home)?;
        if !profiles.contains_key(name) {
            return Err(profile_is_gone(session, name, profiles.is_empty()));
        }
    }
    let quiet = context.output.quiet();
    let config = Config::load_with(&paths, &over.profile, Some(workspace), quiet)?;
    let first = over.models.first().filter(|first| Some(*first) != typed.model.as_ref());
    if let Some(first) = first
        && !config.knows_provider_of(first)
    {
        return Err(model_is_gone(session, first));
    }
    let first = over.models.first().cloned();
    over.models.retain(|name| Some(name) == first.as_ref() || config.knows_provider_of(name));
    Ok(over)
}

/// What is typed, over what was chosen for a turn. A typed model replaces the first one and keeps the
/// fallbacks, as it does with those of the configuration.
fn merged(kept: &TurnChoices, typed: &Overrides, typed_profile: Option<&str>) -> Overrides {
    let first = typed.model.as_ref().or(kept.models.first());
    let fallbacks = kept.models.iter().skip(1).filter(|name| Some(*name) != first);
    #[expect(clippy::cast_precision_loss, reason = "amounts are below 1e15")]
    let kept_budget = kept.budget.map(|micros| micros as f64 / 1e6);
    Overrides {
        model: typed.model.clone(),
        models: first.into_iter().chain(fallbacks).cloned().collect(),
        profile: match typed_profile {
            Some(_) => ProfileChoice::Configured,
            None => ProfileChoice::OfTurn(kept.profile.clone()),
        },
        budget: typed.budget.or(kept_budget),
        mode: typed.mode.or(Some(kept.mode)),
        summaries: typed.summaries.clone(),
        forbidden: typed.forbidden.clone(),
    }
}

fn model_is_gone(session: SessionId, name: &str) -> Error {
    let message = format!("this turn was started with {name}, which is no longer configured");
    Error::configuration(message)
        .hint(format!("Choose another: `mainstay resume {session} --model PROVIDER/MODEL`"))
}

fn profile_is_gone(session: SessionId, name: &str, there_are_none: bool) -> Error {
    let message =
        format!("this turn was started with the profile {name:?}, which is no longer configured");
    let error = Error::configuration(message);
    if there_are_none {
        let again = format!("mainstay config set profiles.{name}.model PROVIDER/MODEL");
        return error.hint(format!("Make it again: `{again}`"));
    }
    error
        .hint(format!("Choose another: `mainstay resume {session} --profile NAME`"))
        .hint("See which there are: `mainstay profiles`")
}

/// What is chosen otherwise now than when the turn was begun, in sentences.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<String>);

impl Changes {
    fn between(kept: Option<&TurnChoices>, now: &TurnChoices) -> Self {
        Self(kept.map(|kept| changes(kept, now)).unwrap_or_default())
    }

    /// What to say at an event: everything, once the turn is taken up and its choices are written.
    pub(crate) fn at(&mut self, event: &Event) -> Vec<Event> {
        if !matches!(event, Event::Turn { resumed: true, .. }) {
            return Vec::new();
        }
        let notice = |message| Event::Notice { about: "choices", message, void: false };
        std::mem::take(&mut self.0).into_iter().map(notice).collect()
    }
}

fn changes(kept: &TurnChoices, now: &TurnChoices) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(was), Some(is)) = (kept.models.first(), now.models.first())
        && was != is
    {
        said.push(format!("now using {is} for this turn (was {was})"));
    }
    let gone = kept.models.iter().skip(1).filter(|name| !now.models.contains(name));
    said.extend(gone.map(|name| {
        format!("going on without the fallback {name}, which is no longer configured")
    }));
    if kept.profile != now.profile {
        let was = kept.profile.as_deref().unwrap_or("none");
        said.push(match &now.profile {
            Some(is) => format!("now using profile {is} for this turn (was {was})"),
            None => format!("now using no profile for this turn (was {was})"),
        });
    }
    if kept.budget != now.budget {
        let amount = |budget: Option<i64>| budget.map_or("as configured".to_owned(), dollars);
        let (is, was) = (amount(now.budget), amount(kept.budget));
        said.push(format!("the budget of this turn is now {is} (was {was})"));
    }
    if kept.mode != now.mode {
        said.push(format!("now in mode {} for this turn (was {})", now.mode, kept.mode));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(models: &[&str]) -> Vec<String> {
        models.iter().map(|&name| name.to_owned()).collect()
    }

    fn kept() -> TurnChoices {
        TurnChoices {
            models: names(&["far/big", "near/small", "near/tiny"]),
            profile: Some("careful".to_owned()),
            budget: Some(2_500_000),
            mode: Mode::Ask,
        }
    }

    fn typed_model(model: &str) -> Overrides {
        Overrides { model: Some(model.to_owned()), ..Overrides::default() }
    }

    #[test]
    fn nothing_typed_keeps_everything() {
        let over = merged(&kept(), &Overrides::default(), None);
        assert_eq!(over.models, kept().models);
        assert_eq!(over.profile, ProfileChoice::OfTurn(Some("careful".to_owned())));
        assert_eq!((over.budget, over.mode, over.model), (Some(2.5), Some(Mode::Ask), None));
    }

    #[test]
    fn a_turn_without_a_profile_is_not_given_that_of_config_toml() {
        let kept = TurnChoices { profile: None, ..kept() };
        let over = merged(&kept, &Overrides::default(), None);
        assert_eq!(over.profile, ProfileChoice::OfTurn(None));
    }

    #[test]
    fn what_is_typed_changes_that_one_choice_and_keeps_the_others() {
        let models = |over: &Overrides| over.models.clone();
        let over = merged(&kept(), &typed_model("my/own"), None);
        assert_eq!(models(&over), ["my/own", "near/small", "near/tiny"]);
        assert_eq!(over.budget, Some(2.5));
        // A fallback that is made the first is not asked twice.
        let over = merged(&kept(), &typed_model("near/tiny"), None);
        assert_eq!(models(&over), ["near/tiny", "near/small"]);

        let over = merged(&kept(), &Overrides::default(), Some("bold"));
        assert_eq!(over.profile, ProfileChoice::Configured);
        assert_eq!(models(&over), kept().models);

        let typed = Overrides { budget: Some(7.0), ..Overrides::default() };
        let over = merged(&kept(), &typed, None);
        assert_eq!((over.budget, models(&over)), (Some(7.0), kept().models));

        let typed = Overrides { mode: Some(Mode::Plan), ..Overrides::default() };
        let over = merged(&kept(), &typed, None);
        assert_eq!((over.mode, over.budget), (Some(Mode::Plan), Some(2.5)));
    }

    #[test]
    fn a_turn_that_was_told_yes_keeps_it() {
        let kept = TurnChoices { mode: Mode::Yes, ..kept() };
        assert_eq!(merged(&kept, &Overrides::default(), None).mode, Some(Mode::Yes));
    }

    #[test]
    fn every_change_is_said_once_and_nothing_else() {
        assert_eq!(changes(&kept(), &kept()), Vec::<String>::new());
        let now = TurnChoices {
            models: names(&["my/own", "near/small"]),
            profile: None,
            budget: None,
            mode: Mode::Yes,
        };
        assert_eq!(
            changes(&kept(), &now),
            [
                "now using my/own for this turn (was far/big)",
                "going on without the fallback near/tiny, which is no longer configured",
                "now using no profile for this turn (was careful)",
                "the budget of this turn is now as configured (was $2.50)",
                "now in mode yes for this turn (was ask)",
            ]
        );
        let mut all = Changes::between(Some(&kept()), &now);
        let turn = |resumed| Event::Turn { id: String::new(), number: 1, resumed };
        assert_eq!(all.at(&turn(false)).len(), 0);
        assert_eq!(all.at(&turn(true)).len(), 5);
        assert_eq!(all.at(&turn(true)).len(), 0);
    }
}
