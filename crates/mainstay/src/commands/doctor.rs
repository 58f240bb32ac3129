//! `mainstay doctor`

use clap::Args;
use clap::builder::styling::AnsiColor;
use mainstay_store::{Error as StoreError, FileSystem, wall_millis};
use mainstay_tools::keeper;
use mainstay_tools::sandbox::{ProcessWay, Support};
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::leftovers;
use crate::output::Output;
use crate::paths::Paths;
use crate::progress::Progress;
use crate::wording;

mod clock;
mod configuration;
mod finding;
mod leases;
mod memory;
mod opened;
mod place;
mod processes;
mod remedy;
mod sandbox;

use finding::{Finding, Status};

/// Check the installation: home, disk, store, leases, clock, model
///
/// Runs the checks of every start and some more, and creates nothing. It also reports what the
/// kernel can do for the sandbox, and whether external memory providers answer. Every problem comes
/// with the one command to run next. The exit code is 0 only if everything is fine.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {}

pub(crate) fn run(_args: &DoctorArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let progress = Progress::begin("checking", None);

    let findings = examine(&paths, context.output);
    drop(progress);

    let well = findings.iter().all(|finding| finding.status == Status::Ok);
    let data = json!({
        "ok": well,
        "version": env!("CARGO_PKG_VERSION"),
        "home": paths.home,
        "store": paths.store.to_string(),
        "findings": findings,
    });
    context.output.answer(&data, &as_text(&findings, context.output))?;
    Ok(if well { Exit::Done } else { Exit::Failed })
}

fn examine(paths: &Paths, output: Output) -> Vec<Finding> {
    let mut findings = vec![place::home(&paths.home)];
    if let Some(file) = paths.file() {
        findings.extend(place::permissions(file));
        let near = place::nearest(file);
        match FileSystem::of(near) {
            Ok(system) => {
                findings.push(place::file_system(&system, near, paths));
                findings.push(place::space(&system, near));
            }
            Err(error) => findings.push(remedy::problem("disk", &error, paths)),
        }
    }
    let now = wall_millis();
    match open_existing(paths) {
        Ok(store) => findings.extend(opened::examine(&store, paths, now)),
        Err(StoreError::Absent { place }) => {
            findings.push(Finding::ok(
                "store",
                format!("no store at {place} yet; the first command that writes creates it"),
            ));
            findings.push(clock::sanity(now, None));
        }
        Err(error) => {
            findings.push(remedy::problem("store", &error, paths));
            findings.push(clock::sanity(now, None));
        }
    }
    let way = ProcessWay::of_kernel();
    findings.push(sandbox::support(Support::of_kernel(), way));
    let survey = keeper::survey(&leftovers::spool(paths));
    findings.extend(processes::kept(&survey, way, paths));
    findings.extend(configuration::examine(paths, output));
    findings.extend(memory::examine(paths, output));
    findings.push(platform());
    findings
}

/// What the operating system cannot promise is said plainly.
fn platform() -> Finding {
    if cfg!(target_os = "linux") {
        return Finding::ok("platform", "Linux: every guarantee holds");
    }
    Finding::warning(
        "platform",
        format!(
            "on {}, a dead process keeps its lease until it expires, network file systems are not \
             detected, and other users of the store are not named",
            std::env::consts::OS
        ),
        "uname -a",
    )
}

fn as_text(findings: &[Finding], output: Output) -> String {
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.status {
            Status::Ok => ("ok", AnsiColor::Green),
            Status::Warning => ("warning", AnsiColor::Yellow),
            Status::Problem => ("problem", AnsiColor::Red),
        };
        let pad = " ".repeat(9 - word.len());
        let word = output.coloured(word, colour);
        text.push_str(&format!("{word}{pad}{}: {}\n", finding.check, finding.message));
        if let Some(next) = &finding.next {
            text.push_str(&format!("         next: {next}\n"));
        }
    }
    text.push_str(&summary(findings));
    text
}

fn summary(findings: &[Finding]) -> String {
    let number = |status| findings.iter().filter(|finding| finding.status == status).count();
    let words = |status, thing| match u64::try_from(number(status)).unwrap_or(u64::MAX) {
        0 => None,
        number => Some(wording::count(number, thing)),
    };
    let found: Vec<String> = [words(Status::Problem, "problem"), words(Status::Warning, "warning")]
        .into_iter()
        .flatten()
        .collect();
    if found.is_empty() {
        "Everything is fine.\n".to_owned()
    } else {
        format!("{}.\n", found.join(", "))
    }
}
