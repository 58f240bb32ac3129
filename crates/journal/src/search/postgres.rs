//! The index on PostgreSQL: `tsvector` for words, `pg_trgm` for pieces of names where it is at hand.
//!
//! The vectors are put together here, not by the server: its parser takes paths and addresses for
//! one word, and what it does depends on its settings.

use std::collections::BTreeMap;

use mainstay_store::{OwnerId, ReadTx, WriteTx, params};

use super::engine::{Candidate, Document, Engine, LOOKED_THROUGH, STATE_TABLES, Statement, Wanted};
use super::query::Term;
use crate::Result;

/// The highest place of a word that a vector holds, and the most places of one.
const LAST_PLACE: usize = 16_383;
const PLACES: usize = 255;

const TABLES: &[(&str, &str)] = &[
    (
        "cache_search_owners",
        "CREATE TABLE cache_search_owners (
            owner TEXT COLLATE \"C\" PRIMARY KEY, seen BIGINT NOT NULL, full_at BIGINT NOT NULL)",
    ),
    (
        "cache_search_sessions",
        "CREATE TABLE cache_search_sessions (
            number BIGINT PRIMARY KEY, session TEXT COLLATE \"C\" NOT NULL UNIQUE,
            owner TEXT COLLATE \"C\" NOT NULL, through BIGINT NOT NULL)",
    ),
    (
        "cache_search_documents",
        "CREATE TABLE cache_search_documents (
            id BIGINT PRIMARY KEY, session BIGINT NOT NULL, seq BIGINT NOT NULL,
            who BIGINT NOT NULL, at BIGINT NOT NULL, words tsvector NOT NULL,
            fragments TEXT COLLATE \"C\" NOT NULL, UNIQUE (session, seq))",
    ),
    (
        "cache_search_spans",
        "CREATE TABLE cache_search_spans (
            span BIGINT PRIMARY KEY, first_at BIGINT NOT NULL, last_at BIGINT NOT NULL)",
    ),
];

pub(super) struct Postgres;

impl Engine for Postgres {
    fn is_present(&self, tx: &mut ReadTx<'_>) -> Result<bool> {
        let there: Vec<String> = tx.query(
            "SELECT relname FROM pg_catalog.pg_class
             WHERE relnamespace = current_schema()::regnamespace
                 AND relname LIKE 'cache_search_%'",
            params![],
            |row| row.get(0),
        )?;
        let names = TABLES.iter().map(|(name, _)| *name);
        let mut names = names.chain(STATE_TABLES).chain([WORDS_INDEX]);
        Ok(names.all(|name| there.iter().any(|there| there == name)))
    }

    fn take_turn(&self, tx: &mut WriteTx<'_>) -> Result<bool> {
        Ok(tx.query_one(
            "SELECT pg_try_advisory_xact_lock(hashtext('mainstay search ' || current_schema()))",
            params![],
            |row| row.get(0),
        )?)
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        TABLES
    }

    fn make_indexes(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        tx.execute(
            &format!("CREATE INDEX {WORDS_INDEX} ON cache_search_documents USING gin (words)"),
            params![],
        )?;
        if let Some(schema) = trigrams_at(tx)? {
            tx.execute(
                &format!(
                    "CREATE INDEX {FRAGMENTS_INDEX} ON cache_search_documents
                     USING gin (fragments \"{}\".gin_trgm_ops)",
                    schema.replace('"', "\"\"")
                ),
                params![],
            )?;
        }
        Ok(())
    }

    fn insert(&self, tx: &mut WriteTx<'_>, document: &Document<'_>) -> Result<()> {
        let Document { id, owner: _, session, seq, who, at, tokens, fragments } = document;
        tx.execute(
            "INSERT INTO cache_search_documents (id, session, seq, who, at, words, fragments)
             VALUES (?1, ?2, ?3, ?4, ?5, CAST(CAST(?6 AS TEXT) AS tsvector), ?7)",
            params![*id, *session, *seq, who.number(), *at, vector(tokens), *fragments],
        )?;
        Ok(())
    }

    fn remove(&self, tx: &mut WriteTx<'_>, number: i64) -> Result<()> {
        tx.execute("DELETE FROM cache_search_documents WHERE session = ?1", params![number])?;
        Ok(())
    }

    fn matches(&self, tx: &mut ReadTx<'_>, wanted: &Wanted<'_>) -> Result<Vec<Candidate>> {
        // A word that is everywhere is found among the newest entries at once, and its index would
        // lead to half of all; one that is rare is not, and its index leads to few.
        let last = tx.query_opt(
            "SELECT id FROM cache_search_documents ORDER BY id DESC LIMIT 1",
            params![],
            |row| row.get::<i64>(0),
        )?;
        let Some(last) = last else { return Ok(Vec::new()) };
        let (low, high) = (wanted.bounds.0, wanted.bounds.1.min(last));
        let window = if wanted.oldest_first {
            (low, high.min(low.max(0).saturating_add(LOOKED_THROUGH)))
        } else {
            (low.max(high.saturating_sub(LOOKED_THROUGH)), high)
        };
        let near = among(tx, wanted, window)?;
        let enough = i64::try_from(near.len()).is_ok_and(|near| near >= wanted.most);
        if enough || window == (low, high) {
            return Ok(near);
        }
        among(tx, wanted, (low, high))
    }

    fn count(&self, tx: &mut ReadTx<'_>, owner: OwnerId, term: &Term, most: i64) -> Result<i64> {
        let mut statement = Statement::default();
        let expression = statement.bind(expression(&[term], &[]).as_str());
        let owner = statement.bind(owner);
        let most = statement.bind(most);
        statement.sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM cache_search_documents d
                 JOIN cache_search_sessions i ON i.number = d.session
             WHERE d.words @@ CAST(CAST({expression} AS TEXT) AS tsquery) AND i.owner = {owner}
             LIMIT {most}) f"
        );
        statement.number(tx)
    }

    fn shortcoming(&self, tx: &mut ReadTx<'_>) -> Result<Option<String>> {
        if has_fragments_index(tx)? {
            return Ok(None);
        }
        Ok(Some(format!(
            "The database server has no pg_trgm, so pieces of names are looked for in the newest \
             {LOOKED_THROUGH} entries only. Whole words are found everywhere. \
             `CREATE EXTENSION pg_trgm`, run by an administrator of the database, and `mainstay \
             sessions search --rebuild` change that."
        )))
    }
}

const WORDS_INDEX: &str = "cache_search_documents_words";
const FRAGMENTS_INDEX: &str = "cache_search_documents_fragments";

/// Asks for the extension; a server that refuses goes on without it.
pub(super) fn ask_for_trigrams(store: &mainstay_store::Store) {
    let ask = "CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public";
    // Refused where the user has no right to it or the server does not have it; the index says so.
    let _ = store.write(|tx| tx.execute(ask, params![]));
}

/// The schema that has the extension's operators.
fn trigrams_at(tx: &mut ReadTx<'_>) -> Result<Option<String>> {
    Ok(tx.query_opt(
        "SELECT CAST(n.nspname AS TEXT) FROM pg_catalog.pg_extension e
         JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'",
        params![],
        |row| row.get(0),
    )?)
}

fn has_fragments_index(tx: &mut ReadTx<'_>) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT 1 FROM pg_catalog.pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relname = ?1",
        params![FRAGMENTS_INDEX],
        |row| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

/// The matches among the documents of a range.
fn among(tx: &mut ReadTx<'_>, wanted: &Wanted<'_>, range: (i64, i64)) -> Result<Vec<Candidate>> {
    let Wanted { owner, filter, terms, without, fragments, oldest_first, most, .. } = wanted;
    let scanned = !fragments.is_empty() && !has_fragments_index(tx)?;
    let mut statement = Statement::default();
    let mut matching = Vec::new();
    if !terms.is_empty() || !without.is_empty() {
        let words = statement.bind(expression(terms, without).as_str());
        matching.push(format!("words @@ CAST(CAST({words} AS TEXT) AS tsquery)"));
    }
    for fragment in *fragments {
        let pattern: String = fragment
            .chars()
            .flat_map(|character| {
                let escape = matches!(character, '%' | '_' | '\\').then_some('\\');
                escape.into_iter().chain([character])
            })
            .collect();
        let pattern = statement.bind(format!("%{pattern}%").as_str());
        matching.push(format!("fragments LIKE {pattern}"));
    }
    let (first, last) = (statement.bind(range.0), statement.bind(range.1));
    matching.push(format!("id BETWEEN {first} AND {last}"));
    let order = if *oldest_first { "ASC" } else { "DESC" };
    let matching = matching.join(" AND ");
    // The server must not go through all documents in their order, hoping for matches; without an
    // index for the pieces it has to, through so many.
    let source = if scanned {
        format!(
            "SELECT id FROM (SELECT id, words, fragments FROM cache_search_documents
             WHERE id BETWEEN {first} AND {last} ORDER BY id {order} LIMIT {LOOKED_THROUGH}) n
             WHERE {matching}"
        )
    } else {
        format!("SELECT id FROM cache_search_documents WHERE {matching}")
    };
    statement.sql = format!(
        "WITH f AS MATERIALIZED ({source})
         SELECT d.id, i.session, d.seq, d.at, e.body
         FROM f JOIN cache_search_documents d ON d.id = f.id
         JOIN cache_search_sessions i ON i.number = d.session
         JOIN sessions s ON s.id = i.session
         JOIN entries e ON e.session = i.session AND e.seq = d.seq"
    );
    statement.filter(*owner, filter);
    let most = statement.bind(*most);
    statement.sql.push_str(&format!(" ORDER BY d.id {order} LIMIT {most}"));
    statement.candidates(tx)
}

/// A question in the server's language.
fn expression(terms: &[&Term], without: &[Term]) -> String {
    let quoted = |term: &Term| {
        let mut tokens: Vec<String> = term.tokens.iter().map(|token| lexeme(token)).collect();
        if term.prefix
            && let Some(last) = tokens.last_mut()
        {
            last.push_str(":*");
        }
        format!("({})", tokens.join(" <-> "))
    };
    let all = terms.iter().map(|term| quoted(term));
    let none = without.iter().map(|term| format!("!{}", quoted(term)));
    all.chain(none).collect::<Vec<_>>().join(" & ")
}

/// Tokens as a vector, each with the places where it stands.
fn vector(tokens: &str) -> String {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, token) in tokens.split_whitespace().enumerate() {
        let of_token = places.entry(token).or_default();
        if of_token.len() < PLACES {
            of_token.push((place + 1).min(LAST_PLACE));
        }
    }
    let mut out = String::with_capacity(tokens.len() * 2);
    for (token, mut of_token) in places {
        of_token.dedup();
        let numbers: Vec<String> = of_token.iter().map(usize::to_string).collect();
        out.push_str(&format!("{}:{} ", lexeme(token), numbers.join(",")));
    }
    out
}

/// A token in quotes. Tokens are letters and digits; still, what could end the quotes is doubled.
fn lexeme(token: &str) -> String {
    format!("'{}'", token.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_holds_each_token_once_with_its_places() {
        assert_eq!(vector("a b a "), "'a':1,3 'b':2 ");
        let long = "x ".repeat(20_000);
        assert!(vector(&long).len() < 2_000);
    }
}
