//! The two layers of a sandbox, made ready and put on a thread.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::landlock::{Abi, Ruleset};
use super::spread::{Split, Spread};
use super::{Network, Sandbox};

const DEVICES: &str = "/dev";

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
    /// `also` is written too, whatever is below it. Where there are `devices`, they are what `/dev` means.
    pub(super) fn new(
        sandbox: &Sandbox,
        abi: Abi,
        tcp: Tcp,
        also: Option<&Path>,
        devices: Option<&OwnedFd>,
    ) -> io::Result<Self> {
        let network = match tcp {
            Tcp::Open => 0,
            Tcp::Closed => abi.tcp(),
        };
        let ruleset = Ruleset::new(abi.writing(), network, abi.scopes())?;
        let mut spread = Spread::default();
        for path in &sandbox.write {
            // What is excepted does not count within itself, where something may be written again.
            let closed: Vec<PathBuf> = (sandbox.except.iter())
                .filter(|place| !path.starts_with(place) && place.starts_with(path))
                .chain(&sandbox.hide)
                .cloned()
                .collect();
            spread.add(path, &closed);
        }
        for path in spread.open.iter().map(PathBuf::as_path).chain(also) {
            ruleset.allow(path, abi.writable())?;
        }
        if let Some(devices) = devices {
            for name in sandbox.write.iter().filter_map(|path| path.strip_prefix(DEVICES).ok()) {
                ruleset.allow_below(devices, name, abi.writable())?;
            }
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

    /// Lets a place be read also where it is that of an enclosure, unless something in it is hidden.
    pub(super) fn show(&self, sandbox: &Sandbox, name: &str, place: &OwnedFd) -> io::Result<()> {
        if sandbox.hide.iter().any(|hidden| hidden.starts_with(name)) {
            return Ok(());
        }
        self.ruleset.allow_place(place, Abi::of_kernel().reading())
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
