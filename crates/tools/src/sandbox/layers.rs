//! The two layers of a sandbox, made ready and put on a thread.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::landlock::{Abi, Ruleset};
use super::spread::{Split, Spread};
use super::{Network, Sandbox};

/// About writing, other processes, and the network where it is closed in no better way.
pub(super) struct Outer {
    ruleset: Ruleset,
    split: Vec<Split>,
}

/// About reading.
pub(super) struct Inner {
    ruleset: Ruleset,
    split: Vec<Split>,
}

/// How the network is to be closed by landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tcp {
    Open,
    Closed,
}

impl Outer {
    /// `also` is written too, whatever is below it.
    pub(super) fn new(
        sandbox: &Sandbox,
        abi: Abi,
        tcp: Tcp,
        also: Option<&Path>,
    ) -> io::Result<Self> {
        let network = match tcp {
            Tcp::Open => 0,
            Tcp::Closed => abi.tcp(),
        };
        let ruleset = Ruleset::new(abi.writing(), network, abi.scopes())?;
        let mut spread = Spread::default();
        for path in &sandbox.write {
            spread.add(path, &sandbox.hide);
        }
        for path in spread.open.iter().map(PathBuf::as_path).chain(also) {
            ruleset.allow(path, abi.writable())?;
        }
        Ok(Self { ruleset, split: spread.split })
    }

    pub(super) fn is_stale(&self) -> bool {
        self.split.iter().any(Split::is_stale)
    }

    pub(super) fn put_on(&self) -> io::Result<()> {
        self.ruleset.restrict_self()
    }
}

impl Inner {
    pub(super) fn new(sandbox: &Sandbox, abi: Abi) -> io::Result<Self> {
        let ruleset = Ruleset::new(abi.reading() | abi.refer(), 0, 0)?;
        let mut spread = Spread::default();
        spread.add(Path::new("/"), &sandbox.hide);
        for path in spread.open.iter().chain(&sandbox.show) {
            ruleset.allow(path, abi.reading())?;
        }
        // Moving is the outer layer's to forbid, and nothing becomes readable by it.
        ruleset.allow(Path::new("/"), abi.refer())?;
        Ok(Self { ruleset, split: spread.split })
    }

    /// Lets `/proc` be read also where it is that of an enclosure, unless something in it is hidden.
    pub(super) fn show_processes(&self, sandbox: &Sandbox, shown: &OwnedFd) -> io::Result<()> {
        if sandbox.hide.iter().any(|hidden| hidden.starts_with("/proc")) {
            return Ok(());
        }
        self.ruleset.allow_place(shown, Abi::of_kernel().reading())
    }

    pub(super) fn is_stale(&self) -> bool {
        self.split.iter().any(Split::is_stale)
    }

    pub(super) fn put_on(&self) -> io::Result<()> {
        self.ruleset.restrict_self()
    }
}

/// Whether landlock is to close the network, where no namespace does.
pub(super) fn tcp(sandbox: &Sandbox, separate: bool) -> Tcp {
    match sandbox.network {
        Network::Closed if !separate => Tcp::Closed,
        _ => Tcp::Open,
    }
}
