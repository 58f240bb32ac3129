//! Where the keeper starts commands: threads that are inside a sandbox.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::enclosure::Enclosure;
use super::filter::Filter;
use super::kept::{self, Kept};
use super::landlock::Abi;
use super::layers::{Inner, Outer, Tcp, tcp};
use super::network::{Separation, separate};
use super::view::View;
use super::{Network, Sandbox, Specification, Support, capabilities};
use crate::keeper::{Entrance, Number, Ready, leave_child_signals_to_others};

/// Few sandboxes are in use at once; the one that was used longest ago makes room.
const MOST: usize = 16;
/// A process that is not its program after so long is looked after, so many times before it is killed.
const SLOW: Duration = Duration::from_millis(100);
const STUCK: u32 = 100;
/// How often one that is being killed is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long, and how many times, a thread that is at a command is waited for.
const MOMENT: Duration = Duration::from_micros(100);
const MOMENTS: u32 = 50;
/// A thread that starts commands needs little.
const STACK: usize = 256 << 10;

/// The chambers of a keeper, one for each sandbox that its jobs asked for.
pub(crate) struct Chambers {
    /// The last one used is the last.
    open: Vec<Chamber>,
    /// What all of them are in. Absent until the first is opened, and where there is none to be had.
    enclosure: Option<Arc<Enclosure>>,
    /// Whether one may be had.
    is_enclosable: bool,
    /// Where the end of an orphan in it is told.
    ends: RawFd,
}

impl Chambers {
    /// None are open. Whenever an orphan of one of their commands has ended, a byte is written to
    /// `ends`, which stays open as long as this.
    pub(crate) fn new(ends: RawFd) -> Self {
        Self { open: Vec::new(), enclosure: None, is_enclosable: true, ends }
    }

    /// The process that orphans of commands fall to, besides this one. It is none of theirs.
    pub(crate) fn adopter(&self) -> Option<i32> {
        self.enclosure.as_ref().map(|enclosure| enclosure.first())
    }

    /// A child of this process ended. With the first process of an enclosure all in it are dead, and
    /// nothing can be started in it.
    pub(crate) fn reaped(&mut self, pid: i32) {
        if self.adopter() == Some(pid) {
            self.enclosure = None;
            self.open.clear();
        }
    }

    /// What commands are in, where the kernel gives it. To be called by the first thread, which lasts as
    /// long as the process does.
    fn enclosure(&mut self) -> Option<Arc<Enclosure>> {
        if self.enclosure.is_none() && self.is_enclosable {
            self.enclosure = Enclosure::make(self.ends).ok().map(Arc::new);
            self.is_enclosable = self.enclosure.is_some();
        }
        self.enclosure.clone()
    }

    /// Starts a command inside a sandbox.
    pub(crate) fn spawn(&mut self, wanted: &Specification, ready: Ready) -> io::Result<i32> {
        if Abi::of_kernel().0 == 0 {
            return match wanted.read()?.refusal(Support::of_kernel()) {
                Some(words) => Err(io::Error::other(words)),
                None => ready.spawn(Entrance::default()),
            };
        }
        self.order(wanted, ready)?.wait()
    }

    /// Has a command started inside a sandbox, without waiting until it is. Returns `None` if no thread
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
        let known = place.map(|place| self.open.remove(place));
        let mut chamber = match known.and_then(Chamber::unless_stale) {
            Some(chamber) => chamber,
            None => Chamber::open(wanted, self.enclosure())?,
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
pub(crate) struct Spawning {
    answer: Receiver<io::Result<i32>>,
    number: Number,
}

impl Spawning {
    /// Its number, as soon as there is one.
    pub(crate) fn number(&self) -> Option<i32> {
        self.number.get()
    }

    /// Its number, when it has become its program. Another command of the sandbox may stop it on the
    /// way: it is woken, and killed if that does not help.
    pub(crate) fn wait(&self) -> io::Result<i32> {
        for look in 0.. {
            match self.answer.recv_timeout(SLOW) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if look < STUCK => self.signal(Signal::CONT),
                Err(RecvTimeoutError::Timeout) => self.signal(Signal::KILL),
            }
        }
        Err(lost())
    }

    /// What became of it, when its process is gone.
    pub(crate) fn outcome(&self) -> io::Result<i32> {
        self.answer.recv().map_err(|_| lost())?
    }

    /// Kills it, also where it was stopped. Its place is free when this returns.
    pub(crate) fn give_up(&self) {
        loop {
            self.signal(Signal::KILL);
            match self.answer.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// It was not reaped, so its number is nobody else's.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.number().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// A thread with the outer layer, and one that it started with the inner layer too, which starts the
/// commands. So all commands are of one outer domain, also when the inner layer was made anew.
struct Chamber {
    wanted: Specification,
    sandbox: Sandbox,
    outer: Arc<Outer>,
    renew: Sender<Renewal>,
    current: Option<Inside>,
    enclosure: Option<Arc<Enclosure>>,
    kept: Kept,
}

/// A thread that starts commands.
struct Inside {
    inner: Arc<Inner>,
    orders: Sender<Order>,
    /// Whether it is at one.
    busy: Arc<AtomicBool>,
}

impl Inside {
    /// Whether it can start a command now. One that was just begun has a moment to become its program.
    fn is_free(&self) -> bool {
        for _ in 0..MOMENTS {
            if !self.busy.load(Ordering::Acquire) {
                return true;
            }
            thread::sleep(MOMENT);
        }
        false
    }
}

/// A new inner layer, who sends to it, and who is told that it is on.
struct Renewal {
    inner: Arc<Inner>,
    orders: Receiver<Order>,
    busy: Arc<AtomicBool>,
    on: Sender<io::Result<()>>,
}

/// A command to start, and who waits for its number.
struct Order {
    ready: Ready,
    child: Sender<io::Result<i32>>,
}

impl Chamber {
    fn open(wanted: &Specification, enclosure: Option<Arc<Enclosure>>) -> io::Result<Self> {
        let sandbox = wanted.read()?;
        if enclosure.is_some() {
            kept::make_missing(&sandbox);
        }
        let kept = Kept::of(&sandbox);
        let (renew, renewals) = channel();
        let (on, is_on) = channel();
        let (inside, around) = (sandbox.clone(), enclosure.clone());
        thread("sandbox").spawn(move || {
            // Neither here nor in the threads that this one starts.
            leave_child_signals_to_others();
            match enter(&inside, around.as_deref()) {
                Ok((outer, separation, view)) => {
                    let _ = on.send(Ok(outer));
                    serve(&renewals, &separation, around.as_ref(), view.as_ref());
                }
                Err(error) => drop(on.send(Err(error))),
            }
        })?;
        let outer = is_on.recv().map_err(|_| lost())??;
        Ok(Self { wanted: wanted.clone(), sandbox, outer, renew, current: None, enclosure, kept })
    }

    /// It, if what it was made from is the same still.
    fn unless_stale(mut self) -> Option<Self> {
        let is_stale = self.outer.is_stale() || self.kept.is_stale();
        (!is_stale).then_some(self)
    }

    fn order(&mut self, ready: Ready) -> io::Result<Spawning> {
        let current = self.current.take().filter(|inside| !inside.inner.is_stale());
        // One that cannot go on is left to its command; what follows does not wait for that.
        let inside = match current.filter(Inside::is_free) {
            Some(inside) => inside,
            None => self.renewed()?,
        };
        let ((child, answer), number) = (channel(), ready.number());
        inside.busy.store(true, Ordering::Release);
        inside.orders.send(Order { ready, child }).map_err(|_| lost())?;
        self.current = Some(inside);
        Ok(Spawning { answer, number })
    }

    fn renewed(&self) -> io::Result<Inside> {
        let inner = Inner::new(&self.sandbox, Abi::of_kernel())?;
        if let Some(enclosure) = &self.enclosure {
            inner.show(&self.sandbox, "/proc", enclosure.shown())?;
            if let Some(devices) = enclosure.devices() {
                inner.show(&self.sandbox, "/dev", devices)?;
            }
        }
        let inner = Arc::new(inner);
        let (orders, taken) = channel();
        let (on, is_on) = channel();
        let busy = Arc::new(AtomicBool::new(false));
        let renewal = Renewal { inner: inner.clone(), orders: taken, busy: busy.clone(), on };
        self.renew.send(renewal).map_err(|_| lost())?;
        is_on.recv().map_err(|_| lost())??;
        Ok(Inside { inner, orders, busy })
    }
}

fn lost() -> io::Error {
    io::Error::other("the sandbox thread ended unexpectedly")
}

fn thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK)
}

/// What the commands of a sandbox are started with.
type Entered = (Arc<Outer>, Separation, Option<Arc<View>>);

/// Puts this thread into the outer layer, and makes what needs privileges that the layer takes away.
fn enter(sandbox: &Sandbox, enclosure: Option<&Enclosure>) -> io::Result<Entered> {
    let view = match enclosure {
        Some(enclosure) => View::make(sandbox, enclosure)?,
        None => None,
    };
    let separation = match sandbox.network {
        Network::Open => Separation::None,
        Network::Closed => separate(enclosure),
    };
    let abi = Abi::of_kernel();
    let tcp = tcp(sandbox, separation.is_some());
    if tcp == Tcp::Closed
        && let Some(words) = sandbox.refusal(Support::of_kernel())
    {
        return Err(io::Error::other(words));
    }
    let devices = enclosure.and_then(Enclosure::devices);
    let outer = Outer::new(sandbox, abi, tcp, None, devices)?;
    outer.put_on()?;
    Ok((Arc::new(outer), separation, view.map(Arc::new)))
}

/// Starts a thread for each inner layer; one ends when nobody sends to it any more.
fn serve(
    renewals: &Receiver<Renewal>,
    separation: &Separation,
    enclosure: Option<&Arc<Enclosure>>,
    view: Option<&Arc<View>>,
) {
    let filter = Arc::new(Filter::new());
    for Renewal { inner, orders, busy, on } in renewals {
        let (separation, filter) = (separation.clone(), filter.clone());
        let (enclosure, view) = (enclosure.cloned(), view.cloned());
        let failed = on.clone();
        let started = thread("sandbox-start").spawn(move || {
            // Joining needs what is taken away after, and no thread can be started by who has joined.
            let view = view.as_deref();
            let joined = enclosure.as_ref().map_or(Ok(()), |enclosure| enclosure.join(view));
            let put_on = joined
                .and_then(|()| capabilities::reduce())
                .and_then(|()| inner.put_on())
                .and_then(|()| filter.put_on());
            let is_on = put_on.is_ok();
            let _ = on.send(put_on);
            if !is_on {
                return;
            }
            let (user, network) = separation.to_enter();
            let entrance = Entrance {
                user,
                network,
                doors: enclosure.as_ref().and_then(|enclosure| enclosure.doors(view)),
                is_enclosed: enclosure.is_some(),
            };
            for Order { ready, child } in orders {
                let spawned = ready.spawn(entrance);
                busy.store(false, Ordering::Release);
                let _ = child.send(spawned);
            }
        });
        if let Err(error) = started {
            let _ = failed.send(Err(error));
        }
    }
}
