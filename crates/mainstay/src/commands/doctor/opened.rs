//! A store that could be opened.

use mainstay_store::{Depth, Info, Store};

use super::finding::Finding;
use super::{clock, leases, remedy};
use crate::paths::{Paths, server_address};
use crate::wording;

/// A write-ahead log over this cannot start over: a read holds it.
const LONG_LOG: u64 = 64 << 20;

/// Free room in a store that is worth a word, if it is a quarter of it.
const MUCH_ROOM: u64 = 16 << 20;

/// Looks at everything an open store can tell.
pub(super) fn examine(store: &Store, paths: &Paths, now: i64) -> Vec<Finding> {
    let info = match store.info() {
        Ok(info) => info,
        Err(error) => return vec![remedy::problem("store", &error, paths)],
    };
    let mut findings = vec![
        Finding::ok("store", format!("{} opens fine", info.place)),
        Finding::ok("engine", engine(&info)),
        Finding::ok("schema", schema(&info)),
    ];
    findings.extend(journal(&info, paths));
    findings.extend(log(&info, paths));
    findings.extend(free_room(&info, paths));
    findings.extend(syncs(&info, paths));
    findings.push(content(store, paths));
    findings.extend(leases::stuck(store, paths));
    findings.push(clock::sanity(now, Some(&info)));
    findings
}

fn engine(info: &Info) -> String {
    match info.engine {
        "sqlite" => format!("SQLite {}", info.engine_version),
        _ => format!("PostgreSQL {}", info.engine_version),
    }
}

fn schema(info: &Info) -> String {
    let versions: Vec<String> =
        info.schema.iter().map(|(component, version)| format!("{component} {version}")).collect();
    versions.join(", ")
}

fn journal(info: &Info, paths: &Paths) -> Option<Finding> {
    match info.journal? {
        "wal" => Some(Finding::ok("journal", "write-ahead log")),
        _ => Some(Finding::warning(
            "journal",
            "rollback mode: readers and writers wait for each other",
            paths.command("store copy --to PATH-ON-A-LOCAL-DISK"),
        )),
    }
}

fn log(info: &Info, paths: &Paths) -> Option<Finding> {
    let bytes = info.wal_bytes.filter(|_| info.journal == Some("wal"))?;
    let size = wording::size(bytes);
    if bytes <= LONG_LOG {
        return Some(Finding::ok("log", format!("the write-ahead log has {size}")));
    }
    let processes: Vec<&str> =
        info.other_users.iter().filter_map(|user| user.strip_prefix("process ")).collect();
    let next = if processes.is_empty() {
        paths.command("store info")
    } else {
        format!("ps -o pid,etime,args -p {}", processes.join(","))
    };
    let message = format!("the write-ahead log has {size}: some process never stops reading");
    Some(Finding::warning("log", message, next))
}

/// Room inside the file that compacting would give back. It does no harm, so it is no problem.
fn free_room(info: &Info, paths: &Paths) -> Option<Finding> {
    let free = info.free_bytes.filter(|free| *free > MUCH_ROOM && *free > info.bytes / 4)?;
    Some(Finding::ok(
        "room",
        format!(
            "{} of the {} of the store are free; `{}` gives them back",
            wording::size(free),
            wording::size(info.bytes),
            paths.command("store compact")
        ),
    ))
}

/// A server that does not sync loses commits in a power cut.
fn syncs(info: &Info, paths: &Paths) -> Option<Finding> {
    if info.server_syncs? {
        return Some(Finding::ok("sync", "the server syncs its log (fsync = on)"));
    }
    let address = wording::word(&server_address(&paths.store).unwrap_or_default());
    Some(Finding::problem(
        "sync",
        "the server does not sync its log (fsync = off): a power cut loses what was saved",
        format!("psql {address} -c 'ALTER SYSTEM SET fsync = on' -c 'SELECT pg_reload_conf()'"),
    ))
}

fn content(store: &Store, paths: &Paths) -> Finding {
    match store.check(Depth::Quick) {
        Ok(problems) => match problems.first() {
            None => Finding::ok("content", "the quick check found no problems"),
            Some(first) => {
                Finding::problem("content", wording::line(first), paths.command("store check"))
            }
        },
        Err(error) => remedy::problem("content", &error, paths),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::finding::Status;
    use super::*;
    use crate::paths::Globals;

    /// A store with which all is well.
    pub(in super::super) fn info() -> Info {
        Info {
            engine: "sqlite",
            engine_version: "3.51.3".to_owned(),
            place: "/h/store.db".to_owned(),
            id: "1".to_owned(),
            created_at: 0,
            schema: vec![("store".to_owned(), 2)],
            journal: Some("wal"),
            bytes: 1,
            free_bytes: Some(0),
            wal_bytes: Some(0),
            file_system: None,
            file: None,
            other_users: Vec::new(),
            tables: Vec::new(),
            newest_at: None,
            server_time: None,
            server_syncs: None,
        }
    }

    fn paths(store: &str) -> Paths {
        let (home, store) = (Some("/h".into()), Some(store.into()));
        let globals = Globals { home, store, ..Globals::default() };
        Paths::resolve(&globals).unwrap()
    }

    #[test]
    fn a_rollback_journal_warns_and_a_server_has_none() {
        let paths = paths("/h/x.db");
        let judge = |journal| journal_of(journal, &paths).map(|finding| finding.status);
        assert_eq!(judge(Some("wal")), Some(Status::Ok));
        assert_eq!(judge(Some("rollback")), Some(Status::Warning));
        assert_eq!(judge(None), None);
    }

    fn journal_of(mode: Option<&'static str>, paths: &Paths) -> Option<Finding> {
        journal(&Info { journal: mode, ..info() }, paths)
    }

    #[test]
    fn a_long_log_names_who_may_hold_it() {
        let paths = paths("/h/x.db");
        let long = Info { wal_bytes: Some(LONG_LOG + 1), ..info() };
        let finding = log(&long, &paths).unwrap();
        assert_eq!(finding.status, Status::Warning);
        assert!(finding.next.unwrap().ends_with("store info"));
        let users = vec!["process 7".to_owned(), "process 8".to_owned()];
        let finding = log(&Info { other_users: users, ..long }, &paths).unwrap();
        assert_eq!(finding.next.unwrap(), "ps -o pid,etime,args -p 7,8");
        let short = Info { wal_bytes: Some(LONG_LOG), ..info() };
        assert_eq!(log(&short, &paths).unwrap().status, Status::Ok);
    }

    #[test]
    fn free_room_is_told_where_there_is_much() {
        let paths = paths("/h/x.db");
        let room =
            |free, bytes| free_room(&Info { free_bytes: Some(free), bytes, ..info() }, &paths);
        assert!(room(MUCH_ROOM, MUCH_ROOM).is_none());
        assert!(room(MUCH_ROOM * 2, MUCH_ROOM * 8).is_none());
        let found = room(MUCH_ROOM * 2, MUCH_ROOM * 3).unwrap();
        assert_eq!(found.status, Status::Ok);
        assert!(found.message.contains("store compact` gives them back"), "{}", found.message);
    }

    #[test]
    fn a_server_that_does_not_sync_is_a_problem() {
        let paths = paths("postgres://me:secret@host/db");
        assert!(syncs(&info(), &paths).is_none());
        let careless = Info { server_syncs: Some(false), ..info() };
        let finding = syncs(&careless, &paths).unwrap();
        assert_eq!(finding.status, Status::Problem);
        let next = finding.next.unwrap();
        assert!(next.starts_with("psql postgres://me@host/db -c"), "{next}");
    }
}
