//! From a command to the engine: the store, the agent, signals, and what is told of a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_agent::memory::Provider;
use mainstay_agent::memory::external::External;
use mainstay_agent::{Agent, Opened, TurnEnding, TurnReport};
use mainstay_journal::session::Session;
use mainstay_journal::turn::Outcome;
use mainstay_journal::{SessionId, session};
use mainstay_llm::Candidate;
use mainstay_message::Content;
use mainstay_store::{Acquired, Holder, OwnerId, Store, fsatomic, refuse_without_descriptors};
use mainstay_tools::keeper::Launch;
use mainstay_tools::{EditSlots, Keeper};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Overrides, agent_settings, memory_providers, mode};
use crate::confinement;
use crate::context::{Context, options};
use crate::error::{Error, Kind};
use crate::exit::Exit;
use crate::first_run;
use crate::interrupt;
use crate::leftovers;
use crate::output::Output;
use crate::paths::Paths;
use crate::proof;

/// Whose sessions the command line works on.
const OWNER: &str = "local";

/// A store with its home, made if need be.
pub(crate) fn open_store(paths: &Paths) -> Result<(Store, OwnerId), Error> {
    make_home(paths)?;
    let store = Store::open(&paths.store, options(paths))?;
    let owner = match store.read(|tx| tx.find_owner(OWNER))? {
        Some(owner) => owner,
        None => store.write(|tx| tx.owner(OWNER))?,
    };
    Ok((store, owner))
}

/// Makes the home, if need be.
pub(crate) fn make_home(paths: &Paths) -> Result<(), Error> {
    fsatomic::private_directory(&paths.home).map_err(|error| {
        Error::configuration(format!("could not create {}: {error}", paths.home.display()))
            .hint("Pass another directory with --home DIR.")
    })
}

/// What a user's words are to a model: where they call for a skill, it goes along.
pub(crate) fn message_content(
    agent: &Agent,
    workspace: &Path,
    text: String,
    output: Output,
) -> Result<Vec<Content>, Error> {
    let told = match agent.invoked(workspace, &text) {
        None => None,
        Some(Err(what)) => {
            return Err(Error::failed(what).hint("List the skills: `mainstay skills list`"));
        }
        Some(Ok(invoked)) => {
            let skill = &invoked.skill;
            output.note(format!("skill {} from {}", skill.front.name, skill.path.display()));
            Some(invoked.told)
        }
    };
    Ok([Some(text), told].into_iter().flatten().map(Content::Text).collect())
}

/// The owner of the sessions in a store that exists. Returns `None` if it has no sessions yet.
pub(crate) fn find_owner(store: &Store) -> Result<Option<OwnerId>, Error> {
    Ok(store.read(|tx| tx.find_owner(OWNER))?)
}

/// The same where something of the owner's is looked for: without an owner there is none.
pub(crate) fn existing_owner(store: &Store, what: &str, typed: &str) -> Result<OwnerId, Error> {
    find_owner(store)?.ok_or_else(|| {
        mainstay_store::Error::UnknownId { what: what.to_owned(), typed: typed.to_owned() }.into()
    })
}

/// The session that was named.
pub(crate) fn named(store: &Store, typed: &str) -> Result<Session, Error> {
    let owner = existing_owner(store, "session", typed)?;
    Ok(store.read(|tx| session::find(tx, owner, typed))?)
}

/// An agent for a workspace.
pub(crate) fn agent(
    context: &Context,
    store: Store,
    owner: OwnerId,
    workspace: &Path,
    mut over: Overrides,
) -> Result<Agent, Error> {
    let paths = context.paths()?;
    let load = || Config::load_with(&paths, &over.profile, Some(workspace), context.output);
    let mut config = load()?;
    let is_named = over.model.is_some() || !over.models.is_empty();
    if !is_named && first_run::ensure_model(context, &paths, &store, owner, &config)? {
        config = load()?;
    }
    over.forbidden = forbidden(&paths);
    let keeper = keeper(&paths, &config)?;
    let mut agent_settings = agent_settings(&config, &over)?;
    agent_settings.edit_slots = edit_slots(&paths);
    agent_settings.sealer = proof::sealer(&paths, &store, owner)?;
    agent_settings.memory.providers = memory_providers(&config, &keeper)?
        .into_iter()
        .map(|provider| -> Arc<dyn Provider> { Arc::new(provider) })
        .collect();
    if let Some(words) = mode::warning(&config, &over, agent_settings.choices.mode) {
        context.output.warning(words);
    }
    if let Some(words) = confinement::sandbox_warning(&agent_settings, workspace) {
        context.output.warning(words);
    }
    Ok(Agent::new(store, owner, keeper, agent_settings))
}

/// A keeper for the processes of a home, which is started when it is needed.
pub(crate) fn keeper(paths: &Paths, config: &Config) -> Result<Keeper, Error> {
    Ok(Keeper::new(Launch {
        program: PathBuf::from("/proc/self/exe"),
        arguments: vec![KEEPER.into()],
        spool: leftovers::spool(paths),
        grace: config.keeper_grace()?,
    }))
}

/// Who has memories besides the store, as the configuration says.
pub(crate) fn memory_providers(config: &Config, keeper: &Keeper) -> Result<Vec<External>, Error> {
    let described = memory_providers::descriptions(config)?;
    Ok(described.into_iter().map(|one| External::new(one, keeper)).collect())
}

/// Settings for a turn of a process that has an agent already.
pub(crate) fn turn_settings(
    context: &Context,
    workspace: &Path,
    mut over: Overrides,
) -> Result<mainstay_agent::Settings, Error> {
    let paths = context.paths()?;
    let output = context.output.quiet();
    let config = Config::load_with(&paths, &over.profile, Some(workspace), output)?;
    over.forbidden = forbidden(&paths);
    let settings = agent_settings(&config, &over)?;
    Ok(mainstay_agent::Settings { edit_slots: edit_slots(&paths), ..settings })
}

/// The models that a workspace asks, the first one first.
pub(crate) fn chain(
    context: &Context,
    workspace: &Path,
    over: &Overrides,
) -> Result<Vec<Arc<Candidate>>, Error> {
    let paths = context.paths()?;
    let config = Config::load(&paths, Some(workspace), context.output.quiet())?;
    Ok(agent_settings(&config, over)?.chain)
}

/// The names of the models that the configuration names.
pub(crate) fn model_names(context: &Context, workspace: &Path) -> Result<Vec<String>, Error> {
    let paths = context.paths()?;
    let config = Config::load(&paths, Some(workspace), context.output.quiet())?;
    Ok(config.model_names())
}

/// The word that makes this program a keeper.
pub(crate) const KEEPER: &str = "keeper";
/// The word that makes this program a reader of documents.
pub(crate) const READER: &str = "reader";

/// The locks by which the processes of a home change a file one after the other.
fn edit_slots(paths: &Paths) -> EditSlots {
    EditSlots::in_directory(paths.home.join("edits"))
}

/// What no tool opens: the home, and the store with its side files.
fn forbidden(paths: &Paths) -> Vec<PathBuf> {
    let mut forbidden = vec![paths.home.clone()];
    if let Some(file) = paths.file() {
        for ending in ["", "-wal", "-shm", "-journal", ".side"] {
            let mut name = file.as_os_str().to_owned();
            name.push(ending);
            forbidden.push(name.into());
        }
    }
    forbidden
}

/// Takes a session up; one that another process has is an error that says who.
pub(crate) fn open(
    agent: &Agent,
    id: SessionId,
) -> Result<Box<mainstay_agent::OpenSession>, Error> {
    match agent.open(id)? {
        Opened::Got(session) => Ok(session),
        Opened::Held(holder) => Err(held(id, &holder)),
    }
}

/// Who has a session, and what to do.
pub(crate) fn held(id: SessionId, holder: &Holder) -> Error {
    Error {
        kind: Kind::InUse,
        message: format!("session {id} is in use by {}", holder.process),
        hints: vec![format!(
            "Wait for it, and take over if it dies: `mainstay resume {id} --wait`"
        )],
    }
}

/// Claims an input's key while it is worked on, so that two who send it at once make one turn.
pub(crate) fn claim_key(store: &Store, key: &str) -> Result<mainstay_store::Lease, Error> {
    let name: String =
        key.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    let ttl = std::time::Duration::from_secs(30);
    match store.try_acquire(&format!("input/{name}"), ttl)? {
        Acquired::Got(lease) => Ok(lease),
        Acquired::Held(holder) => Err(Error {
            kind: Kind::InUse,
            message: format!("the input with the key {key} is in use by {}", holder.process),
            hints: vec![
                "Wait until it is done; the same command then prints its answer.".to_owned(),
            ],
        }),
    }
}

/// Runs something asynchronous to its end. The first Ctrl-C (or SIGTERM, SIGHUP) cancels it, a second
/// one ends the process at once.
pub(crate) fn block_on<T>(work: impl AsyncFnOnce(CancellationToken) -> T) -> Result<T, Error> {
    let runtime = refuse_without_descriptors()
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build())
        .map_err(|error| Error::failed(format!("could not start the runtime: {error}")))?;
    let cancel = CancellationToken::new();
    interrupt::cancel_at_signal(&cancel)
        .map_err(|error| Error::failed(format!("could not listen for signals: {error}")))?;
    let done = Ok(runtime.block_on(work(cancel)));
    interrupt::cancel_no_more();
    // What blocks a thread elsewhere (a resolver, a command for a key) does not hold the end up.
    runtime.shutdown_background();
    done
}

/// How the program ends after a turn.
pub(crate) fn exit(ended: &TurnReport) -> Exit {
    match &ended.ending {
        TurnEnding::Parked { .. } => Exit::Parked,
        TurnEnding::Over(Outcome::Answered, _) => Exit::Done,
        TurnEnding::Over(Outcome::Cancelled, _) => Exit::Interrupted,
        TurnEnding::Over(Outcome::Failed | Outcome::Stuck | Outcome::Interrupted, _) => {
            Exit::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_journal::turn::{ParkReason, Parked};

    use super::*;

    #[test]
    fn a_turn_ends_the_program_with_the_code_of_its_outcome() {
        let code = |ending| {
            let (answer, usage) = (String::new(), mainstay_message::Usage::default());
            exit(&TurnReport { ending, answer, usage, cost: 0 }).code()
        };
        let over = |outcome| code(TurnEnding::Over(outcome, None));
        assert_eq!(over(Outcome::Answered), 0);
        assert_eq!(over(Outcome::Failed), 1);
        assert_eq!(over(Outcome::Stuck), 1);
        assert_eq!(over(Outcome::Interrupted), 1);
        assert_eq!(over(Outcome::Cancelled), 130);
        let parked = Parked { reason: ParkReason::Approval, text: String::new() };
        assert_eq!(code(TurnEnding::Parked(parked)), 3);
    }
}
