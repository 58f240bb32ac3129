//! Whether the tables of a file are those that our steps make, and nothing acts on them.
//!
//! A file can come from anywhere. A trigger in it, or a default in a table that is spelled differently,
//! would decide what our own statements do: approve every request, for example.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::create::versions;
use crate::migrations::CACHE;
use crate::schema::Schema;
use crate::tx::Dialect;

/// What an object is, and what it is called.
type Name = (String, String);

/// An object of a database.
#[derive(PartialEq, Eq)]
struct Object {
    table: String,
    sql: String,
}

/// A sentence for each object that is not as our steps make it.
pub(super) fn foreign(connection: &Connection, schema: &Schema) -> rusqlite::Result<Vec<String>> {
    let ours = made_by_steps(schema, &versions(connection)?)?;
    let there = objects(connection)?;
    let mut problems = Vec::new();
    for ((kind, name), object) in &there {
        let is_ours = ours.get(&(kind.clone(), name.clone()));
        let of_our_table = ours.contains_key(&("table".to_owned(), object.table.clone()));
        match is_ours {
            Some(same) if same == object => {}
            Some(_) => problems.push(format!("the {kind} {name:?} is not as Mainstay makes it")),
            None if acts(kind) || of_our_table => {
                problems.push(format!("the {kind} {name:?} was not made by Mainstay"));
            }
            // A cache, or the table of another program.
            None => {}
        }
    }
    let missing = ours.keys().filter(|name| !there.contains_key(*name));
    problems.extend(missing.map(|(kind, name)| format!("the {kind} {name:?} is missing")));
    Ok(problems)
}

/// Whether an object does something by being there.
fn acts(kind: &str) -> bool {
    !matches!(kind, "table" | "index")
}

/// The objects of a store of these versions.
fn made_by_steps(
    schema: &Schema,
    found: &[(String, i64)],
) -> rusqlite::Result<BTreeMap<Name, Object>> {
    let blank = Connection::open_in_memory()?;
    for step in schema.until(found) {
        blank.execute_batch(&step.sql(Dialect::Sqlite))?;
    }
    objects(&blank)
}

/// All objects but the engine's own and the tables of caches, which are made while the store is used.
fn objects(connection: &Connection) -> rusqlite::Result<BTreeMap<Name, Object>> {
    let mut statement = connection.prepare(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
         WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let rows = statement.query_map([], |row| {
        let name: Name = (row.get(0)?, row.get(1)?);
        Ok((name, Object { table: row.get(2)?, sql: row.get(3)? }))
    })?;
    let is_cache =
        |(name, object): &(Name, Object)| object.table.starts_with(CACHE) && !acts(&name.0);
    rows.filter(|row| !row.as_ref().is_ok_and(is_cache)).collect()
}
