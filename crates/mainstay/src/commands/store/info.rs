//! `mainstay store info`

use clap::Args;
use mainstay_store::Info;
use serde_json::Value;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::object;
use crate::progress::Progress;
use crate::wording;

/// Show where the store is, what it holds and who has it open
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {}

pub(crate) fn run(_args: &InfoArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let progress = Progress::begin("reading", None);

    let info = open_existing(&paths)?.info()?;
    drop(progress);

    context.output.answer(&as_data(&info)?, &as_text(&info))?;
    Ok(Exit::Done)
}

/// The facts with objects where there are names.
fn as_data(info: &Info) -> Result<Value, Error> {
    let mut data = serde_json::to_value(info)
        .map_err(|error| Error::failed(format!("could not write the answer as JSON: {error}")))?;
    data["schema"] = object(&info.schema).into();
    data["tables"] = object(&info.tables).into();
    Ok(data)
}

fn as_text(info: &Info) -> String {
    let mut lines = vec![
        ("store", info.place.clone()),
        ("id", info.id.clone()),
        ("engine", engine(info)),
        ("created", wording::time(info.created_at)),
    ];
    if let Some(newest) = info.newest_at {
        lines.push(("newest", wording::time(newest)));
    }
    let schema: Vec<String> =
        info.schema.iter().map(|(component, version)| format!("{component} {version}")).collect();
    lines.push(("schema", schema.join(", ")));
    let mut size = wording::size(info.bytes);
    if let Some(log) = info.wal_bytes.filter(|_| info.journal == Some("wal")) {
        size.push_str(&format!(", and {} of write-ahead log", wording::size(log)));
    }
    lines.push(("size", size));
    if let Some(disk) = &info.file_system {
        lines.push(("disk", format!("{}, {} free", disk.kind, wording::size(disk.free_bytes))));
    }
    let users = if info.other_users.is_empty() {
        "no other process".to_owned()
    } else {
        info.other_users.join(", ")
    };
    lines.push(("open by", users));

    let mut text = String::new();
    for (name, value) in lines {
        text.push_str(&format!("{name:<9}{value}\n"));
    }
    text.push_str("rows\n");
    let widest = info.tables.iter().map(|(table, _)| table.len()).max().unwrap_or(0);
    for (table, rows) in &info.tables {
        text.push_str(&format!("  {table:<widest$}  {rows}\n"));
    }
    text
}

fn engine(info: &Info) -> String {
    let name = match info.engine {
        "sqlite" => "SQLite",
        "postgres" => "PostgreSQL",
        other => other,
    };
    match info.journal {
        Some(journal) => format!("{name} {}, journal mode {journal}", info.engine_version),
        None => format!("{name} {}", info.engine_version),
    }
}
