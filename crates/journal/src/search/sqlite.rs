//! The index on SQLite: FTS5 for words, FTS5's trigrams for pieces of names.
//!
//! Both tables are without content: what is shown is read from the entries.

use mainstay_store::{OwnerId, ReadTx, WriteTx, params};

use super::engine::{Candidate, Document, Engine, LOOKED_THROUGH, STATE_TABLES, Statement, Wanted};
use super::query::Term;
use crate::Result;

/// Trigrams of a piece of a name that are looked for; the entry's text decides anyway.
const TRIGRAMS: usize = 24;

const TABLES: &[(&str, &str)] = &[
    (
        "cache_search_owners",
        "CREATE TABLE cache_search_owners (
            owner TEXT PRIMARY KEY, seen INTEGER NOT NULL, full_at INTEGER NOT NULL) STRICT",
    ),
    (
        "cache_search_sessions",
        "CREATE TABLE cache_search_sessions (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, owner TEXT NOT NULL,
            through INTEGER NOT NULL) STRICT",
    ),
    (
        "cache_search_documents",
        "CREATE TABLE cache_search_documents (
            id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
            who INTEGER NOT NULL, at INTEGER NOT NULL, UNIQUE (session, seq)) STRICT",
    ),
    (
        "cache_search_spans",
        "CREATE TABLE cache_search_spans (
            span INTEGER PRIMARY KEY, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL) STRICT",
    ),
    (
        "cache_search_words",
        "CREATE VIRTUAL TABLE cache_search_words USING fts5(
            owner, words, content='', contentless_delete=1,
            tokenize=\"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\")",
    ),
    (
        "cache_search_fragments",
        "CREATE VIRTUAL TABLE cache_search_fragments USING fts5(
            fragments, content='', contentless_delete=1, detail=none, tokenize='trigram')",
    ),
];

pub(super) struct Sqlite;

impl Engine for Sqlite {
    fn is_present(&self, tx: &mut ReadTx<'_>) -> Result<bool> {
        let there: Vec<String> = tx.query(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'cache_search_%'",
            params![],
            |row| row.get(0),
        )?;
        let mut names = TABLES.iter().map(|(name, _)| *name).chain(STATE_TABLES);
        Ok(names.all(|name| there.iter().any(|there| there == name)))
    }

    fn take_turn(&self, _: &mut WriteTx<'_>) -> Result<bool> {
        // Whoever writes is alone.
        Ok(true)
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        TABLES
    }

    fn insert(&self, tx: &mut WriteTx<'_>, document: &Document<'_>) -> Result<()> {
        let Document { id, owner, session, seq, who, at, tokens, fragments } = document;
        tx.execute(
            "INSERT INTO cache_search_documents (id, session, seq, who, at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![*id, *session, *seq, who.number(), *at],
        )?;
        tx.execute(
            "INSERT INTO cache_search_words (rowid, owner, words) VALUES (?1, ?2, ?3)",
            params![*id, *owner, *tokens],
        )?;
        if !fragments.is_empty() {
            tx.execute(
                "INSERT INTO cache_search_fragments (rowid, fragments) VALUES (?1, ?2)",
                params![*id, *fragments],
            )?;
        }
        Ok(())
    }

    fn remove(&self, tx: &mut WriteTx<'_>, number: i64) -> Result<()> {
        let of_session = "(SELECT id FROM cache_search_documents WHERE session = ?1)";
        for table in ["cache_search_words", "cache_search_fragments"] {
            tx.execute(
                &format!("DELETE FROM {table} WHERE rowid IN {of_session}"),
                params![number],
            )?;
        }
        tx.execute("DELETE FROM cache_search_documents WHERE session = ?1", params![number])?;
        Ok(())
    }

    fn matches(&self, tx: &mut ReadTx<'_>, wanted: &Wanted<'_>) -> Result<Vec<Candidate>> {
        let Wanted { owner, filter, terms, without, fragments, bounds, oldest_first, most } =
            wanted;
        let mut statement = Statement::default();
        let (words, mut also) = (expression(*owner, terms, without), String::new());
        let (table, expression) = if fragments.is_empty() {
            ("cache_search_words", words)
        } else {
            let words = statement.bind(words.as_str());
            also = format!(
                " AND EXISTS (SELECT 1 FROM cache_search_words
                              WHERE cache_search_words MATCH {words} AND rowid = d.id)"
            );
            ("cache_search_fragments", trigrams(fragments))
        };
        let expression = statement.bind(expression.as_str());
        let (first, last) = (statement.bind(bounds.0), statement.bind(bounds.1));
        let order = if *oldest_first { "ASC" } else { "DESC" };
        // The inner query runs as far as rows are taken from it, in its order; CROSS says to begin
        // with it.
        statement.sql = format!(
            "SELECT d.id, i.session, d.seq, d.at, e.body
             FROM (SELECT rowid AS id FROM {table} WHERE {table} MATCH {expression}
                       AND rowid BETWEEN {first} AND {last}
                   ORDER BY rowid {order} LIMIT {LOOKED_THROUGH}) f
             CROSS JOIN cache_search_documents d ON d.id = f.id
             CROSS JOIN cache_search_sessions i ON i.number = d.session
             CROSS JOIN sessions s ON s.id = i.session
             CROSS JOIN entries e ON e.session = i.session AND e.seq = d.seq"
        );
        statement.filter(*owner, filter);
        let most = statement.bind(*most);
        statement.sql.push_str(&format!("{also} LIMIT {most}"));
        statement.candidates(tx)
    }

    fn count(&self, tx: &mut ReadTx<'_>, owner: OwnerId, term: &Term, most: i64) -> Result<i64> {
        let mut statement = Statement::default();
        let expression = statement.bind(expression(owner, &[term], &[]).as_str());
        let most = statement.bind(most);
        statement.sql = format!(
            "SELECT count(*) FROM (SELECT rowid FROM cache_search_words
             WHERE cache_search_words MATCH {expression} ORDER BY rowid DESC LIMIT {most})"
        );
        statement.number(tx)
    }

    fn shortcoming(&self, _: &mut ReadTx<'_>) -> Result<Option<String>> {
        Ok(None)
    }
}

/// A question in FTS5's language. Tokens are letters and digits; still, each is quoted.
fn expression(owner: OwnerId, terms: &[&Term], without: &[Term]) -> String {
    let quoted = |term: &Term| {
        let star = if term.prefix { " *" } else { "" };
        format!("\"{}\"{star}", term.tokens.join(" ").replace('"', ""))
    };
    let mut expression = format!("owner : \"{owner}\"");
    if !terms.is_empty() {
        let all: Vec<String> = terms.iter().map(|term| quoted(term)).collect();
        expression = format!("words : ({}) AND {expression}", all.join(" AND "));
    }
    if !without.is_empty() {
        let none: Vec<String> = without.iter().map(quoted).collect();
        expression = format!("({expression}) NOT words : ({})", none.join(" OR "));
    }
    expression
}

/// Pieces of names in FTS5's language: every three neighbours of each.
fn trigrams(fragments: &[&str]) -> String {
    let mut all = Vec::new();
    for fragment in fragments {
        let characters: Vec<char> = fragment.chars().collect();
        for three in characters.windows(3) {
            let three: String = three.iter().collect();
            let quoted = format!("\"{}\"", three.replace('"', "\"\""));
            if all.len() < TRIGRAMS && !all.contains(&quoted) {
                all.push(quoted);
            }
        }
    }
    all.join(" AND ")
}
