//! The schema: numbered, forward-only migrations, one list a component.
//!
//! Each crate that keeps tables brings a [`Component`]; the store's own is always the first. The
//! version of a component is how many of its migrations have run, kept in `schema_versions` and
//! checked inside every write, so that a program that is older than the store stops writing at once.

use crate::tx::Dialect;
use crate::{Error, Result};

/// The tables of one crate, as the list of steps that built them.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// A short name, unique in the store.
    pub name: &'static str,
    /// All steps, oldest first. Steps are only ever appended.
    pub migrations: &'static [Migration],
}

/// One step. It runs in one transaction and is additive where possible.
#[derive(Clone, Copy, Debug)]
pub enum Migration {
    /// The same text for both engines: SQLite's types and words, translated for PostgreSQL
    /// (`INTEGER`, `REAL`, `TEXT`, `BLOB`, and `STRICT` or `STRICT, WITHOUT ROWID` at the end of a
    /// table).
    Both(&'static str),
    /// For what the engines do differently, such as full-text search.
    Each {
        /// Runs first, on both engines.
        both: &'static str,
        /// Runs after it on SQLite.
        sqlite: &'static str,
        /// Runs after it on PostgreSQL.
        postgres: &'static str,
    },
}

/// The components a program knows.
#[derive(Clone, Debug)]
pub struct Schema {
    components: Vec<Component>,
}

impl Schema {
    /// The store's own tables and those of `components`, which may use them.
    pub fn new(components: &[Component]) -> Self {
        let mut all = vec![crate::migrations::STORE];
        all.extend_from_slice(components);
        Self { components: all }
    }

    /// Compares what a store holds with what this program knows; answers the steps still to run
    /// as (component, version after the step, step).
    pub(crate) fn pending(
        &self,
        found: &[(String, i64)],
    ) -> Result<Vec<(&'static str, i64, Migration)>> {
        let mut pending = Vec::new();
        for component in &self.components {
            let supported = component.version();
            let version = found
                .iter()
                .find(|(name, _)| name == component.name)
                .map_or(0, |(_, version)| *version);
            if version > supported {
                return Err(Error::Newer {
                    component: component.name.to_owned(),
                    found: version,
                    supported,
                });
            }
            let steps =
                (1..).zip(component.migrations).skip_while(|(number, _)| *number <= version);
            pending.extend(steps.map(|(number, step)| (component.name, number, *step)));
        }
        Ok(pending)
    }

    /// The steps that a store of these versions has behind it, in an order in which they can run.
    pub(crate) fn until(&self, found: &[(String, i64)]) -> Vec<Migration> {
        let steps = self.components.iter().flat_map(|component| {
            let version = found.iter().find(|(name, _)| name == component.name);
            let version = version.map_or(0, |(_, version)| usize::try_from(*version).unwrap_or(0));
            component.migrations.iter().take(version).copied()
        });
        steps.collect()
    }

    /// Refuses a write when the schema is not the one this program was made for.
    pub(crate) fn check(&self, found: &[(String, i64)]) -> Result<()> {
        match self.pending(found)?.first() {
            None => Ok(()),
            Some((component, version, _)) => Err(Error::Statement(format!(
                "the store went back to an older schema (before {component} {version}) while it \
                 was open; start this program again"
            ))),
        }
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Component {
    /// The version that this program knows.
    pub fn version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }
}

impl Migration {
    pub(crate) fn sql(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Migration::Both(sql), Dialect::Sqlite) => (*sql).to_owned(),
            (Migration::Both(sql), Dialect::Postgres) => for_postgres(sql),
            (Migration::Each { both, sqlite, .. }, Dialect::Sqlite) => format!("{both}\n{sqlite}"),
            (Migration::Each { both, postgres, .. }, Dialect::Postgres) => {
                format!("{}\n{postgres}", for_postgres(both))
            }
        }
    }
}

/// Translates table definitions word by word. Text is compared byte by byte on both engines.
fn for_postgres(sql: &str) -> String {
    let sql = sql.replace("STRICT, WITHOUT ROWID", "STRICT");
    let mut translated = String::with_capacity(sql.len() * 2);
    let mut rest = sql.as_str();
    while let Some(start) = rest.find(|character: char| character.is_ascii_uppercase()) {
        let (before, from) = rest.split_at(start);
        let end = from
            .find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
            .unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        translated.push_str(before);
        let inside_a_name = before.ends_with(|character: char| {
            character.is_ascii_alphanumeric() || character == '_' || character == '\''
        });
        translated.push_str(match word {
            _ if inside_a_name => word,
            "INTEGER" => "BIGINT",
            "REAL" => "DOUBLE PRECISION",
            "TEXT" => "TEXT COLLATE \"C\"",
            "BLOB" => "BYTEA",
            "STRICT" => "",
            word => word,
        });
        rest = after;
    }
    translated.push_str(rest);
    translated
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Component =
        Component { name: "two", migrations: &[Migration::Both("A"), Migration::Both("B")] };

    #[test]
    fn table_definitions_become_those_of_postgres() {
        let sql = "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL, c BLOB, d REAL) STRICT;";
        assert_eq!(
            for_postgres(sql),
            "CREATE TABLE t (a TEXT COLLATE \"C\" PRIMARY KEY, b BIGINT NOT NULL, c BYTEA, \
             d DOUBLE PRECISION) ;"
        );
        assert_eq!(for_postgres("(a INTEGER) STRICT, WITHOUT ROWID;"), "(a BIGINT) ;");
    }

    #[test]
    fn only_missing_steps_are_pending() {
        let schema = Schema { components: vec![TWO] };
        let pending = schema.pending(&[("two".to_owned(), 1)]).unwrap();
        assert_eq!(pending.len(), 1);
        assert_eq!((pending[0].0, pending[0].1), ("two", 2));
        assert!(schema.pending(&[("two".to_owned(), 2)]).unwrap().is_empty());
        assert_eq!(schema.pending(&[]).unwrap().len(), 2);
    }

    #[test]
    fn a_newer_store_and_an_older_one_are_both_refused_in_words() {
        let schema = Schema { components: vec![TWO] };
        let newer = schema.check(&[("two".to_owned(), 3)]).unwrap_err().to_string();
        assert!(newer.contains("newer version (two 3; this program writes up to 2)"), "{newer}");
        let older = schema.check(&[("two".to_owned(), 1)]).unwrap_err().to_string();
        assert!(older.contains("older schema"), "{older}");
    }

    #[test]
    fn components_of_other_programs_are_left_alone() {
        let schema = Schema { components: vec![TWO] };
        schema.check(&[("two".to_owned(), 2), ("board".to_owned(), 9)]).unwrap();
    }
}
