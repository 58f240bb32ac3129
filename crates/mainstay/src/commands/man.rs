//! `mainstay man`

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainstay_store::fsatomic;
use serde_json::json;

use crate::cli;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Manual pages are for everybody to read.
const PUBLIC_FILE: u32 = 0o644;

/// Print the manual page, or write the pages of all commands to a directory
///
/// To read it right away: mainstay man | man -l -
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write one page per command to this directory, which must exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, context: &Context) -> Result<Exit, Error> {
    let mut pages = Vec::new();
    let mut command = cli::command();
    command.build();
    collect(&command, "mainstay", &mut pages)
        .map_err(|error| Error::failed(format!("could not make the manual: {error}")))?;
    let Some(directory) = &args.dir else {
        let first = pages.into_iter().next().map(|(_, page)| page).unwrap_or_default();
        context.output.document(&first)?;
        return Ok(Exit::Done);
    };
    for (name, page) in &pages {
        write(directory, name, page)?;
    }
    let files: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let number = u64::try_from(files.len()).unwrap_or(u64::MAX);
    let text =
        format!("Wrote {} to {}.\n", wording::count(number, "manual page"), directory.display());
    context.output.answer(&json!({ "directory": directory, "files": files }), &text)?;
    Ok(Exit::Done)
}

/// The page of a command, then those of the commands below it.
fn collect(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().name(name.to_owned())).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for below in command.get_subcommands() {
        collect(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}

fn write(directory: &Path, name: &str, page: &[u8]) -> Result<(), Error> {
    let path = directory.join(name);
    fsatomic::write(&path, page, PUBLIC_FILE).map_err(|error| {
        Error::failed(format!("could not write {}: {error}", path.display()))
            .hint(format!("Check the directory: ls -ld {}", wording::path(directory)))
    })
}
