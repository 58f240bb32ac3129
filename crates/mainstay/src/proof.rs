//! The secret that proves that a person decided.
//!
//! It lies in the home, which no command of an agent sees where the sandbox is on. In a store on a server
//! whoever has its password decides, and that lies in the home as well; the homes of several machines
//! may share such a store, so nothing is asked of them beyond it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use mainstay_agent::approvals::rules;
use mainstay_agent::approvals::seal::Sealer;
use mainstay_store::fsatomic::{Draft, temporary_name};
use mainstay_store::{Location, OwnerId, Store, fsatomic, random_secret};

use crate::error::Error;
use crate::paths::Paths;

/// The file in the home.
const FILE: &str = "decisions.key";

/// What proves the decisions in a store. It is made where there is none yet.
pub(crate) fn sealer(
    paths: &Paths,
    store: &Store,
    owner: OwnerId,
) -> Result<Option<Sealer>, Error> {
    if matches!(paths.store, Location::Postgres { .. }) {
        return Ok(None);
    }
    let file = paths.home.join(FILE);
    if let Some(key) = read(&file)? {
        return Ok(Some(Sealer::new(key)));
    }
    let key = random_secret().map_err(|error| unusable(&file, &error))?;
    let made = Sealer::new(key);
    // What was said before there was a secret goes on to hold. The file comes last: whoever is killed in
    // between begins again.
    store.write(|tx| rules::seal_all(tx, owner, &made))?;
    match publish(&file, &key) {
        Ok(()) => Ok(Some(made)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let Some(key) = read(&file)? else { return Err(unusable(&file, &error)) };
            let theirs = Sealer::new(key);
            store.write(|tx| rules::seal_all(tx, owner, &theirs))?;
            Ok(Some(theirs))
        }
        Err(error) => Err(unusable(&file, &error)),
    }
}

fn read(file: &Path) -> Result<Option<[u8; 32]>, Error> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(file, &error)),
    };
    match <[u8; 32]>::try_from(bytes) {
        Ok(key) => Ok(Some(key)),
        Err(_) => Err(Error::configuration(format!("{} is damaged", file.display())).hint(
            "Remove it; a new one is made, and what was approved and not used is asked again.",
        )),
    }
}

/// Puts the whole file in its place, unless one is there. It has no other name before, so that a kill
/// leaves nothing.
fn publish(file: &Path, key: &[u8; 32]) -> io::Result<()> {
    let directory = File::open(file.parent().unwrap_or(Path::new("/")))?;
    let name = OsStr::new(FILE);
    let mut draft = Draft::begin(directory.as_fd(), &temporary_name(name, "write"))?;
    draft.finish(key, fsatomic::PRIVATE_FILE)?;
    draft.place(name)?;
    directory.sync_all()
}

fn unusable(file: &Path, error: &io::Error) -> Error {
    Error::configuration(format!("could not use {}: {error}", file.display())).hint(
        "It holds the secret that proves your decisions. Make the home readable and writable.",
    )
}
