//! Snapshots and sweeps on both engines, without a turn around them.
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mainstay_journal::{CallId, SessionId, TurnId, TurnRef, session, turn};
use mainstay_store::{Store, params};
use mainstay_tools::keeper::Launch;
use mainstay_tools::snapshot::{Limits, State};
use mainstay_tools::{Action, Keeper, Workplace};

use super::changes::segments;
use super::taking::{Change, Snapshots};
use super::{Kept, forget, objects, sweep};
use crate::policy::Act;
use crate::test_store::TestStore;
use crate::{Error, Result};

/// A session with its workspace.
struct Place {
    store: Store,
    directory: tempfile::TempDir,
    workplace: Arc<Workplace>,
    session: SessionId,
    snapshots: Snapshots,
}

impl Place {
    fn new(TestStore { directory, store, owner }: TestStore) -> Self {
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: directory.path().join("keepers"),
            grace: Duration::ZERO,
        });
        let work = directory.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let workplace = Arc::new(Workplace::new(work, keeper));
        let session = SessionId::new();
        store
            .write(|tx| -> Result<()> {
                let new = session::New {
                    owner,
                    workspace: "/w",
                    prompt: "p",
                    title: "t",
                    begun_by: None,
                };
                Ok(session::create(tx, session, &new)?)
            })
            .unwrap();
        let snapshots = Snapshots::fresh();
        Self { store, directory, workplace, session, snapshots }
    }

    fn work(&self) -> std::path::PathBuf {
        self.directory.path().join("work")
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn begin(&self) -> TurnId {
        let turn = TurnId::new();
        let key = turn.to_string();
        self.store
            .write(|tx| turn::begin(tx, turn, self.session, &key).map_err(Error::from))
            .unwrap();
        turn
    }

    async fn before(&mut self) {
        let Self { store, workplace, session, snapshots, .. } = self;
        let act = Act::new(Action::Execute("make".to_owned()), &workplace.workspace);
        let change = Change {
            store,
            session: *session,
            call: CallId::new(),
            act: &act,
            hooked: false,
            workplace,
            limits: &Limits::default(),
        };
        let told = snapshots.before(change).await.unwrap();
        assert_eq!(told, None);
    }

    /// Writes what is to be written.
    fn write(&mut self, turn: TurnId) -> Result<()> {
        let Some(pending) = self.snapshots.pending() else { return Ok(()) };
        let place = TurnRef { session: self.session, turn };
        self.store.write(|tx| pending.write(tx, place))?;
        self.snapshots.written(&pending);
        Ok(())
    }

    /// A turn that does `change` to the workspace.
    async fn turn(&mut self, change: impl FnOnce(&Path)) {
        let turn = self.begin();
        self.before().await;
        self.write(turn).unwrap();
        change(&self.work());
        self.snapshots
            .after(&self.store, self.session, &self.workplace, &Limits::default())
            .unwrap();
        self.write(turn).unwrap();
    }

    /// The names of what each turn changed.
    fn changes(&self) -> Vec<Vec<String>> {
        let segments = self.store.read(|tx| segments(tx, self.session)).unwrap();
        let names = |segment: &super::changes::Segment| {
            let changes = self.store.read(|tx| segment.changes(tx)).unwrap();
            changes.iter().map(|change| change.path.rsplit('/').next().unwrap().into()).collect()
        };
        segments.iter().map(names).collect()
    }

    fn objects(&self) -> i64 {
        let sql = "SELECT COUNT(*) FROM snapshot_objects";
        self.store.read(|tx| tx.query_one(sql, params![], |row| row.get(0))).unwrap()
    }
}

fn on_both() -> [Place; 2] {
    [TestStore::on_sqlite(), TestStore::on_postgres()].map(Place::new)
}

#[tokio::test]
async fn what_turns_changed_is_told_and_swept_away_when_it_is_old() {
    for mut place in on_both() {
        place.put("deep/a", "one");
        place.put("b", "same");
        // The times of files that were just written prove nothing and are not listed: with them the
        // listings of the next look would differ.
        let settle = || std::thread::sleep(Duration::from_millis(60));
        settle();
        let change = |work: &Path| {
            std::fs::write(work.join("deep/a"), "two").unwrap();
            settle();
        };
        place.turn(change).await;
        place.turn(|work| std::fs::remove_file(work.join("deep/a")).unwrap()).await;
        place.turn(|_| ()).await;
        assert_eq!(place.changes(), [vec!["a"], vec!["a"], vec![]]);

        let kept = sweep(&place.store, &Kept::default()).unwrap();
        assert_eq!((kept.turns, kept.objects), (0, 0), "everything is needed");
        let swept = sweep(&place.store, &Kept { turns: 2, ..Kept::default() }).unwrap();
        assert_eq!(swept.turns, 1);
        // What the first turn found: the file, and the listings above it.
        assert_eq!(swept.objects, 3, "{swept:?}");
        assert_eq!(place.changes(), [vec!["a"], vec![]]);

        place.store.write(|tx| forget(tx, place.session)).unwrap();
        sweep(&place.store, &Kept::default()).unwrap();
        assert_eq!(place.objects(), 0);
    }
}

#[tokio::test]
async fn who_believes_in_objects_that_were_swept_away_saves_them_again() {
    for mut place in on_both() {
        place.put("a", "one");
        place.put("b", "two");
        // The times of files that were just written prove nothing, and they would be read anyway.
        std::thread::sleep(Duration::from_millis(60));
        place.turn(|_| ()).await;
        let turn = place.begin();
        place.before().await;
        place.store.write(|tx| forget(tx, place.session)).unwrap();
        let swept = sweep(&place.store, &Kept::default()).unwrap();
        assert_eq!(swept.objects, 3);

        assert!(matches!(place.write(turn), Err(Error::SnapshotsSwept)));
        place.snapshots.doubt();
        place.before().await;
        place.write(turn).unwrap();
        let segments = place.store.read(|tx| segments(tx, place.session)).unwrap();
        let changes = place.store.read(|tx| segments[0].changes(tx)).unwrap();
        assert_eq!(changes.len(), 2, "both may have changed: nobody looked afterwards");
        for change in changes {
            assert!(matches!(change.before, State::File { .. }));
            for object in change.before.objects() {
                place.store.read(|tx| objects::get(tx, object)).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn more_than_a_transaction_carries_is_kept_in_several() {
    let mut place = Place::new(TestStore::on_sqlite());
    for number in 0..12 {
        place.put(&format!("big{number}"), &format!("{number}").repeat(1 << 20));
    }
    place.turn(|work| std::fs::remove_file(work.join("big7")).unwrap()).await;
    assert_eq!(place.changes(), [["big7"]]);
    assert_eq!(place.objects(), 14);
}
