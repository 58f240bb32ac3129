//! Where the keeper starts commands: threads that are inside a sandbox.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::landlock::Abi;
use super::layers::{Inner, Outer, Tcp, tcp};
use super::network::{Separation, separate};
use super::{Network, Sandbox, Specification, Support, capabilities};
use crate::keeper::{Ready, leave_child_signals_to_others};

/// Few sandboxes are in use at once; the one that was used longest ago makes room.
const MOST: usize = 16;
/// A thread that starts commands needs little.
const STACK: usize = 256 << 10;

/// The chambers of a keeper, one for each sandbox that its jobs asked for.
#[derive(Default)]
pub(crate) struct Chambers {
    /// The last one used is the last.
    open: Vec<Chamber>,
}

impl Chambers {
    /// Starts a command inside a sandbox.
    pub(crate) fn spawn(&mut self, wanted: &Specification, ready: Ready) -> io::Result<i32> {
        if Abi::of_kernel().0 == 0 {
            return match wanted.read()?.refusal(Support::of_kernel()) {
                Some(words) => Err(io::Error::other(words)),
                None => ready.spawn(None),
            };
        }
        self.order(wanted, ready)?.wait()
    }

    /// Has a command started inside a sandbox, without waiting until it is. Nothing where no thread
    /// could wait for it. As long as it is not there, nothing else can be started in its sandbox.
    pub(crate) fn begin(
        &mut self,
        wanted: &Specification,
        ready: Ready,
    ) -> io::Result<Option<Spawning>> {
        match Abi::of_kernel() {
            Abi(0) => Ok(None),
            _ => self.order(wanted, ready).map(Some),
        }
    }

    fn order(&mut self, wanted: &Specification, ready: Ready) -> io::Result<Spawning> {
        let place = self.open.iter().position(|chamber| chamber.wanted == *wanted);
        let mut chamber = match place.map(|place| self.open.remove(place)) {
            Some(chamber) if !chamber.outer.is_stale() => chamber,
            _ => Chamber::open(wanted)?,
        };
        if self.open.len() >= MOST {
            self.open.remove(0);
        }
        let spawning = chamber.order(ready);
        self.open.push(chamber);
        spawning
    }
}

/// A command that is being started.
pub(crate) struct Spawning(Receiver<io::Result<i32>>);

impl Spawning {
    /// Its number, when it has become its program.
    pub(crate) fn wait(self) -> io::Result<i32> {
        self.0.recv().map_err(|_| lost())?
    }
}

/// A thread with the outer layer, and one that it started with the inner layer too, which starts the
/// commands. So all commands are of one outer domain, also when the inner layer was made anew.
struct Chamber {
    wanted: Specification,
    sandbox: Sandbox,
    outer: Arc<Outer>,
    renew: Sender<Renewal>,
    current: Option<(Arc<Inner>, Sender<Order>)>,
}

/// A new inner layer, who sends to it, and who is told that it is on.
struct Renewal {
    inner: Arc<Inner>,
    orders: Receiver<Order>,
    on: Sender<io::Result<()>>,
}

/// A command to start, and who waits for its number.
struct Order {
    ready: Ready,
    child: Sender<io::Result<i32>>,
}

impl Chamber {
    fn open(wanted: &Specification) -> io::Result<Self> {
        let sandbox = wanted.read()?;
        let (renew, renewals) = channel();
        let (on, is_on) = channel();
        let inside = sandbox.clone();
        thread("sandbox").spawn(move || {
            // Neither here nor in the threads that this one starts.
            leave_child_signals_to_others();
            match enter(&inside) {
                Ok((outer, separation)) => {
                    let _ = on.send(Ok(outer));
                    serve(&renewals, &separation);
                }
                Err(error) => drop(on.send(Err(error))),
            }
        })?;
        let outer = is_on.recv().map_err(|_| lost())??;
        Ok(Self { wanted: wanted.clone(), sandbox, outer, renew, current: None })
    }

    fn order(&mut self, ready: Ready) -> io::Result<Spawning> {
        let current = self.current.take().filter(|(inner, _)| !inner.is_stale());
        let (inner, orders) = match current {
            Some(current) => current,
            None => self.renewed()?,
        };
        let (child, spawned) = channel();
        orders.send(Order { ready, child }).map_err(|_| lost())?;
        self.current = Some((inner, orders));
        Ok(Spawning(spawned))
    }

    fn renewed(&self) -> io::Result<(Arc<Inner>, Sender<Order>)> {
        let inner = Arc::new(Inner::new(&self.sandbox, Abi::of_kernel())?);
        let (orders, taken) = channel();
        let (on, is_on) = channel();
        let renewal = Renewal { inner: inner.clone(), orders: taken, on };
        self.renew.send(renewal).map_err(|_| lost())?;
        is_on.recv().map_err(|_| lost())??;
        Ok((inner, orders))
    }
}

fn lost() -> io::Error {
    io::Error::other("the sandbox broke off")
}

fn thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK)
}

/// Puts this thread into the outer layer.
fn enter(sandbox: &Sandbox) -> io::Result<(Arc<Outer>, Separation)> {
    let separation = match sandbox.network {
        Network::Open => Separation::None,
        Network::Closed => separate(),
    };
    let abi = Abi::of_kernel();
    let tcp = tcp(sandbox, separation.is_some());
    if tcp == Tcp::Closed
        && let Some(words) = sandbox.refusal(Support::of_kernel())
    {
        return Err(io::Error::other(words));
    }
    let outer = Outer::new(sandbox, abi, tcp, None)?;
    capabilities::reduce()?;
    outer.put_on()?;
    Ok((Arc::new(outer), separation))
}

/// Starts a thread for each inner layer; one ends when nobody sends to it any more.
fn serve(renewals: &Receiver<Renewal>, separation: &Separation) {
    for Renewal { inner, orders, on } in renewals {
        let separation = separation.clone();
        let failed = on.clone();
        let started = thread("sandbox-start").spawn(move || {
            let put_on = inner.put_on();
            let is_on = put_on.is_ok();
            let _ = on.send(put_on);
            if !is_on {
                return;
            }
            for Order { ready, child } in orders {
                let _ = child.send(ready.spawn(separation.entrance()));
            }
        });
        if let Err(error) = started {
            let _ = failed.send(Err(error));
        }
    }
}
