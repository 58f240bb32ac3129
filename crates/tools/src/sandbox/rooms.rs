//! Where the file tools work: threads of the agent's process that are inside a sandbox.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use mainstay_store::lock;

use super::landlock::Abi;
use super::layers::{Inner, Outer, Tcp};
use super::{Sandbox, Specification, Support, capabilities};
use crate::Grant;

/// So many calls look at files at once.
const MOST: usize = 4;

/// Something to do inside.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The sandbox of a workplace, if it has one, and the threads in it. Clones share them.
#[derive(Clone, Default)]
pub struct Confinement {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    sandbox: Sandbox,
    specification: Specification,
    floor: Mutex<Option<Floor>>,
}

/// The threads that are inside, with the layers they have on.
struct Floor {
    outer: Arc<Outer>,
    inner: Arc<Inner>,
    queue: Sender<Work>,
    taken: Arc<Mutex<Receiver<Work>>>,
    threads: usize,
    /// How many of the threads have nothing to do.
    idle: Arc<Mutex<usize>>,
}

/// Where some work is done.
pub(crate) enum Room {
    /// On any thread: there is no sandbox.
    Open,
    /// Inside, with the rest.
    Inside(Confinement),
    /// Inside, by itself, where this directory may be written too.
    Alone(Confinement, PathBuf),
}

impl Confinement {
    /// Confined to a sandbox.
    pub fn to(sandbox: Sandbox) -> Self {
        let specification = Specification::from(&sandbox);
        Self { shared: Some(Arc::new(Shared { sandbox, specification, floor: Mutex::default() })) }
    }

    /// The sandbox as a job is given it, widened by what its call may do beyond it.
    pub(crate) fn specification(&self, grant: &Grant) -> Option<Specification> {
        let shared = self.shared.as_deref()?;
        if grant.is_none() {
            return Some(shared.specification.clone());
        }
        Some(Specification::from(&shared.sandbox.with(grant)))
    }

    /// The sandbox. Returns `None` if there is none.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.shared.as_deref().map(|shared| &shared.sandbox)
    }

    /// Where to look at files.
    pub(crate) fn room(&self) -> Room {
        match self.sandbox() {
            Some(sandbox) if Abi::of_kernel().0 > 0 || sandbox.required => {
                Room::Inside(self.clone())
            }
            _ => Room::Open,
        }
    }

    /// Where to change a file that the policy lets the call change. Its path is real. What is hidden
    /// stays so.
    pub(crate) fn room_for(&self, path: &Path) -> Room {
        match (self.room(), self.sandbox()) {
            (Room::Inside(inside), Some(sandbox))
                if !sandbox.writes(path) && !sandbox.hides(path) =>
            {
                match path.ancestors().skip(1).find(|directory| directory.is_dir()) {
                    Some(directory) => Room::Alone(inside, directory.to_owned()),
                    None => Room::Inside(inside),
                }
            }
            (room, _) => room,
        }
    }

    /// Has work done inside. An error says why it is not.
    pub(crate) fn send(&self, work: Work) -> io::Result<()> {
        let Some(shared) = &self.shared else {
            work();
            return Ok(());
        };
        refuse(&shared.sandbox)?;
        let mut floor = lock(&shared.floor);
        let current = floor.take().filter(|floor| !floor.is_stale());
        let current = match current {
            Some(current) => floor.insert(current),
            None => floor.insert(Floor::open(&shared.sandbox)?),
        };
        current.send(work)
    }

    /// Has work done inside by a thread of its own, which may write to a directory more.
    pub(crate) fn send_alone(&self, directory: &Path, work: Work) -> io::Result<()> {
        let Some(shared) = &self.shared else {
            work();
            return Ok(());
        };
        refuse(&shared.sandbox)?;
        let abi = Abi::of_kernel();
        let outer = Outer::new(&shared.sandbox, abi, Tcp::Open, Some(directory), None)?;
        let inner = Inner::new(&shared.sandbox, abi)?;
        begin(Arc::new(outer), Arc::new(inner), work)
    }
}

fn refuse(sandbox: &Sandbox) -> io::Result<()> {
    if Abi::of_kernel().0 > 0 {
        return Ok(());
    }
    let words = sandbox.refusal(Support::of_kernel());
    words.map_or(Ok(()), |words| Err(io::Error::other(words)))
}

impl Floor {
    fn open(sandbox: &Sandbox) -> io::Result<Self> {
        let abi = Abi::of_kernel();
        let (queue, taken) = channel();
        Ok(Self {
            outer: Arc::new(Outer::new(sandbox, abi, Tcp::Open, None, None)?),
            inner: Arc::new(Inner::new(sandbox, abi)?),
            queue,
            taken: Arc::new(Mutex::new(taken)),
            threads: 0,
            idle: Arc::default(),
        })
    }

    fn is_stale(&self) -> bool {
        self.outer.is_stale() || self.inner.is_stale()
    }

    fn send(&mut self, work: Work) -> io::Result<()> {
        let mut idle = lock(&self.idle);
        if *idle == 0 && self.threads < MOST {
            let taken = self.taken.clone();
            let counted = self.idle.clone();
            let serve: Work = Box::new(move || serve(work, &taken, &counted));
            begin(self.outer.clone(), self.inner.clone(), serve)?;
            self.threads += 1;
            return Ok(());
        }
        *idle = idle.saturating_sub(1);
        self.queue.send(work).map_err(|_| io::Error::other("the sandbox thread ended unexpectedly"))
    }
}

/// Does the first work, then what else comes, until nobody sends any more.
fn serve(first: Work, taken: &Mutex<Receiver<Work>>, idle: &Mutex<usize>) {
    first();
    loop {
        *lock(idle) += 1;
        let Ok(work) = lock(taken).recv() else { return };
        work();
    }
}

/// Starts a thread that puts the layers on and then works. Without them it does nothing, and whoever
/// waits for the work learns that it was dropped.
fn begin(outer: Arc<Outer>, inner: Arc<Inner>, work: Work) -> io::Result<()> {
    thread::Builder::new().name("file-tools".to_owned()).spawn(move || {
        let on = capabilities::reduce().and_then(|()| outer.put_on()).and_then(|()| inner.put_on());
        match on {
            Ok(()) => work(),
            Err(error) => {
                tracing::error!(%error, "Could not enter the sandbox for file tools. Nothing was done.");
            }
        }
    })?;
    Ok(())
}
