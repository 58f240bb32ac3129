//! The background processes that are known, also those whose keeper is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use mainstay_store::lock;

use crate::keeper::Ended;

/// The background processes of a session. Clones share them.
///
/// The journal has them as rows; whoever resumes a session [loads](Self::load) them, so that the
/// model hears of a process that ended while no agent ran.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    known: Arc<Mutex<BTreeMap<String, KnownProcess>>>,
}

/// A background process, as the journal knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownProcess {
    /// Its name, the id of the call that started it.
    pub name: String,
    /// The keeper that owns or owned it.
    pub keeper: String,
    /// What it runs.
    pub command: String,
    /// How it stands.
    pub state: ProcessState,
    /// All that this agent wrote to it. It is `None` if others may have written too, or if it is not
    /// known whether a text arrived.
    pub input: Option<String>,
}

/// How a background process stands, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs, or nobody has seen its end.
    Running,
    /// It ended like this.
    Ended(String),
    /// It ended like this, and that was taken note of.
    Acknowledged(String),
}

impl Processes {
    /// Adds what the journal knows.
    pub fn load(&self, processes: impl IntoIterator<Item = KnownProcess>) {
        let processes = processes.into_iter().map(|process| (process.name.clone(), process));
        self.known().extend(processes);
    }

    /// All that are known, by name.
    pub fn all(&self) -> Vec<KnownProcess> {
        self.known().values().cloned().collect()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<KnownProcess> {
        self.known().get(name).cloned()
    }

    /// Takes note of the end of a process; one that was acknowledged stays so.
    pub fn ended(&self, name: &str, ended: &Ended) {
        if let Some(process) = self.known().get_mut(name)
            && !matches!(process.state, ProcessState::Acknowledged(_))
        {
            process.state = ProcessState::Ended(ended.how.to_string());
        }
    }

    pub(crate) fn started(&self, name: &str, keeper: &str, command: &str) {
        self.known().entry(name.to_owned()).or_insert_with(|| KnownProcess {
            name: name.to_owned(),
            keeper: keeper.to_owned(),
            command: command.to_owned(),
            state: ProcessState::Running,
            input: Some(String::new()),
        });
    }

    /// Takes note of a text that is written to a process.
    pub(crate) fn wrote(&self, name: &str, text: &str) {
        if let Some(input) = self.known().get_mut(name).and_then(|known| known.input.as_mut()) {
            input.push_str(text);
        }
    }

    /// Takes note that nobody knows what a process was given.
    pub(crate) fn input_is_unknown(&self, name: &str) {
        if let Some(known) = self.known().get_mut(name) {
            known.input = None;
        }
    }

    pub(crate) fn acknowledge(&self, name: &str, how: String) {
        if let Some(process) = self.known().get_mut(name) {
            process.state = ProcessState::Acknowledged(how);
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, KnownProcess>> {
        lock(&self.known)
    }
}
