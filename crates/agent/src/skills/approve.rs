//! A person decides about a proposal. A yes is a row before files are written, the files are put in
//! place by one rename, and then the row says so; whoever comes after a crash finishes it.

use mainstay_store::{Id, OwnerId, Store};

use super::proposal::{self, Proposal, ProposalFilter, ProposalState};
use super::{Locked, Shelf, SkillError, SkillFiles};

/// The skill as it is and as the proposal would make it.
pub fn preview(shelf: &Shelf, proposal: &Proposal) -> crate::Result<(SkillFiles, SkillFiles)> {
    let now = shelf.read(&proposal.name)?;
    if now.as_ref().map(SkillFiles::hash) != proposal.base {
        return Err(SkillError::Changed(proposal.name.clone()).into());
    }
    let now = now.unwrap_or_default();
    let after = whole(shelf, proposal, &now)?;
    Ok((now, after))
}

/// The skill as a proposal makes it. Fails if its hash is not the one in the proposal.
fn whole(shelf: &Shelf, proposal: &Proposal, base: &SkillFiles) -> Result<SkillFiles, SkillError> {
    let after = proposal.applied(base);
    if after.hash() == proposal.result {
        return Ok(after);
    }
    let what = format!("proposal {} is damaged", proposal.id);
    Err(SkillError::Invalid { path: shelf.folder(&proposal.name), what })
}

/// Approves a proposal: when this returns, the skill is what it says. To approve it again does
/// nothing.
pub fn approve(
    store: &Store,
    owner: OwnerId,
    shelf: &Shelf,
    id: Id,
    by: &str,
) -> crate::Result<Proposal> {
    let locked = shelf.lock()?;
    let found = store.read(|tx| proposal::get(tx, owner, id))?;
    match found.state {
        ProposalState::Approved => return Ok(found),
        ProposalState::Rejected => return Err(decided(&found)),
        ProposalState::Waiting => {
            preview(shelf, &found)?;
            if !store.write(|tx| {
                proposal::change_state(
                    tx,
                    id,
                    ProposalState::Waiting,
                    ProposalState::Approving,
                    Some(by),
                )
            })? {
                return Err(decided(&store.read(|tx| proposal::get(tx, owner, id))?));
            }
        }
        ProposalState::Approving => {}
    }
    finish(store, shelf, &locked, &found)?;
    store.read(|tx| proposal::get(tx, owner, id))
}

/// Rejects a proposal. To reject it again does nothing.
pub fn reject(store: &Store, owner: OwnerId, id: Id, by: &str) -> crate::Result<Proposal> {
    let found = store.write(|tx| {
        proposal::get(tx, owner, id)?;
        proposal::change_state(tx, id, ProposalState::Waiting, ProposalState::Rejected, Some(by))?;
        proposal::get(tx, owner, id)
    })?;
    if found.state == ProposalState::Rejected { Ok(found) } else { Err(decided(&found)) }
}

/// Finishes approvals that a crash interrupted. Returns those it finished.
pub fn settle(store: &Store, owner: OwnerId, shelf: &Shelf) -> crate::Result<Vec<Proposal>> {
    let open = store.read(|tx| proposal::list(tx, owner, ProposalFilter::Approving))?;
    if open.is_empty() {
        return Ok(open);
    }
    let locked = shelf.lock()?;
    let mut finished = Vec::new();
    for proposal in store.read(|tx| proposal::list(tx, owner, ProposalFilter::Approving))? {
        match finish(store, shelf, &locked, &proposal) {
            Ok(()) => finished.push(proposal),
            // It waits again, and whoever approves it learns why that cannot be.
            Err(crate::Error::Skills(SkillError::Changed(_))) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(finished)
}

/// Puts the files of an approved proposal in place, unless they are there.
fn finish(
    store: &Store,
    shelf: &Shelf,
    locked: &Locked<'_>,
    proposal: &Proposal,
) -> crate::Result<()> {
    let now = shelf.read(&proposal.name)?;
    let hash = now.as_ref().map(SkillFiles::hash);
    if hash.as_deref() != Some(proposal.result.as_str()) {
        let put = if hash == proposal.base {
            whole(shelf, proposal, &now.unwrap_or_default())
                .and_then(|after| locked.put(&proposal.name, &after, hash.as_deref()))
        } else {
            Err(SkillError::Changed(proposal.name.clone()))
        };
        if let Err(trouble) = put {
            let (from, to) = (ProposalState::Approving, ProposalState::Waiting);
            store.write(|tx| proposal::change_state(tx, proposal.id, from, to, None))?;
            return Err(trouble.into());
        }
    }
    store.write(|tx| proposal::note_applied(tx, proposal.id))
}

fn decided(proposal: &Proposal) -> crate::Error {
    SkillError::Decided { id: proposal.id, state: proposal.state.as_str() }.into()
}

#[cfg(test)]
mod tests {
    use mainstay_journal::SessionId;

    use super::super::proposal::{FileChange, find, list, propose};
    use super::*;
    use crate::test_store::TestStore;

    struct ProposalFixture {
        _directory: tempfile::TempDir,
        /// In memory where that can be: a race is not to wait for a disk.
        place: tempfile::TempDir,
        store: Store,
        owner: OwnerId,
    }

    fn text(words: &str) -> String {
        format!("---\nname: one\ndescription: x\n---\n{words}\n")
    }

    impl ProposalFixture {
        fn new() -> Self {
            let TestStore { directory, store, owner } = TestStore::on_sqlite();
            let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            Self { _directory: directory, place, store, owner }
        }

        fn shelf(&self) -> Shelf {
            Shelf::at(self.place.path().join("skills"))
        }

        fn propose(&self, words: &str) -> Id {
            let base = self.shelf().read("one").unwrap();
            let files =
                vec![FileChange { path: "SKILL.md".to_owned(), content: Some(text(words)) }];
            let mut proposal = Proposal {
                id: Id::new(),
                session: SessionId::new(),
                name: "one".to_owned(),
                reason: String::new(),
                base: base.as_ref().map(SkillFiles::hash),
                result: String::new(),
                files,
                origin: None,
                state: ProposalState::Waiting,
                proposed_at: 0,
                decided_by: None,
                decided_at: None,
            };
            proposal.result = proposal.applied(&base.unwrap_or_default()).hash();
            for _ in 0..2 {
                self.store.write(|tx| propose(tx, self.owner, &proposal)).unwrap();
            }
            proposal.id
        }

        fn approve(&self, id: Id) -> crate::Result<Proposal> {
            approve(&self.store, self.owner, &self.shelf(), id, "me")
        }

        fn state(&self, id: Id) -> ProposalState {
            self.store.read(|tx| proposal::get(tx, self.owner, id)).unwrap().state
        }

        fn body(&self) -> Option<String> {
            let tree = self.shelf().read("one").unwrap()?;
            Some(String::from_utf8(tree.files["SKILL.md"].bytes.clone()).unwrap())
        }
    }

    #[test]
    fn nothing_is_there_before_the_yes_and_the_yes_holds_once() {
        let scene = ProposalFixture::new();
        let first = scene.propose("first");
        assert_eq!(scene.body(), None);
        assert_eq!(scene.approve(first).unwrap().state, ProposalState::Approved);
        assert_eq!(scene.body(), Some(text("first")));
        let again = scene.approve(first).unwrap();
        assert_eq!(again.decided_by.as_deref(), Some("me"));
        let second = scene.propose("second");
        scene.approve(second).unwrap();
        assert_eq!(scene.body(), Some(text("second")));
        assert_eq!(scene.shelf().trash().unwrap().len(), 1, "the one before can be had back");
        assert!(matches!(
            reject(&scene.store, scene.owner, second, "me"),
            Err(crate::Error::Skills(SkillError::Decided { .. }))
        ));
    }

    /// Approves many proposals, each while a name of the shelf is exchanged for a link all the time.
    fn race(exchanged: &str, rounds: usize) {
        use std::sync::atomic::{AtomicBool, Ordering};

        use mainstay_store::fsatomic;

        let scene = ProposalFixture::new();
        let root = scene.place.path();
        let outside = root.join("outside");
        std::fs::create_dir(&outside).unwrap();
        let canary = text("CANARY");
        fsatomic::write(&outside.join("SKILL.md"), canary.as_bytes(), 0o644).unwrap();
        let (mut approved, mut refused) = (0, 0);
        for round in 0..rounds {
            scene.approve(scene.propose("old")).unwrap();
            if exchanged == ".trash" {
                // Something has to be in it.
                scene.approve(scene.propose("older")).unwrap();
            }
            let id = scene.propose(&format!("new {round}"));
            let [one, link] = [exchanged, ".link"].map(|name| root.join("skills").join(name));
            std::os::unix::fs::symlink("../outside", &link).unwrap();
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        // A name may be gone for good: it is in the trash then.
                        let _ = fsatomic::exchange(&one, &link);
                    }
                });
                let read = scene.shelf().read("one").ok().flatten().unwrap_or_default();
                match scene.approve(id) {
                    Ok(_) => approved += 1,
                    Err(_) => refused += 1,
                }
                stop.store(true, Ordering::Relaxed);
                assert!(read.files.values().all(|file| file.bytes != canary.as_bytes()));
            });
            assert_eq!(std::fs::read_to_string(outside.join("SKILL.md")).unwrap(), canary);
            assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
            std::fs::remove_dir_all(root.join("skills")).unwrap();
        }
        println!("{exchanged}: {approved} approved, {refused} refused");
    }

    #[test]
    fn slow_heavy_a_skill_that_is_exchanged_for_a_link_all_the_time_leads_nowhere() {
        race("one", 1_000);
    }

    #[test]
    fn slow_heavy_a_trash_that_is_exchanged_for_a_link_all_the_time_leads_nowhere() {
        race(".trash", 200);
    }

    #[test]
    fn a_skill_that_was_changed_meanwhile_is_left_alone() {
        let scene = ProposalFixture::new();
        let first = scene.propose("first");
        let other = scene.propose("other");
        scene.approve(first).unwrap();
        let refused = scene.approve(other).unwrap_err();
        assert!(refused.to_string().contains("has changed since"), "{refused}");
        assert_eq!(
            (scene.state(other), scene.body()),
            (ProposalState::Waiting, Some(text("first")))
        );
        assert_eq!(
            reject(&scene.store, scene.owner, other, "me").unwrap().state,
            ProposalState::Rejected
        );
        reject(&scene.store, scene.owner, other, "me").unwrap();
        assert!(scene.approve(other).is_err());
    }

    #[test]
    fn an_interrupted_yes_is_finished_wherever_it_stopped() {
        let (from, to) = (ProposalState::Waiting, ProposalState::Approving);
        for written in [false, true] {
            let scene = ProposalFixture::new();
            scene.approve(scene.propose("old")).unwrap();
            let id = scene.propose("new");
            scene.store.write(|tx| proposal::change_state(tx, id, from, to, Some("me"))).unwrap();
            assert!(reject(&scene.store, scene.owner, id, "me").is_err(), "it is being written");
            if written {
                let found = scene.store.read(|tx| proposal::get(tx, scene.owner, id)).unwrap();
                let (now, after) = preview(&scene.shelf(), &found).unwrap();
                scene.shelf().lock().unwrap().put("one", &after, Some(&now.hash())).unwrap();
            }
            let finished = settle(&scene.store, scene.owner, &scene.shelf()).unwrap();
            assert_eq!(finished.len(), 1);
            assert_eq!(
                (scene.state(id), scene.body()),
                (ProposalState::Approved, Some(text("new")))
            );
            assert!(settle(&scene.store, scene.owner, &scene.shelf()).unwrap().is_empty());
        }
        let scene = ProposalFixture::new();
        let id = scene.propose("new");
        scene.store.write(|tx| proposal::change_state(tx, id, from, to, Some("me"))).unwrap();
        scene.approve(scene.propose("somebody else's")).unwrap();
        assert!(settle(&scene.store, scene.owner, &scene.shelf()).unwrap().is_empty());
        assert_eq!(scene.state(id), ProposalState::Waiting);
    }

    #[test]
    fn nobody_sees_or_decides_what_is_somebody_elses() {
        let scene = ProposalFixture::new();
        let id = scene.propose("first");
        let other = scene.store.write(|tx| tx.owner("other")).unwrap();
        let typed = id.to_string();
        assert!(scene.store.read(|tx| list(tx, other, ProposalFilter::All)).unwrap().is_empty());
        assert_eq!(
            scene.store.read(|tx| list(tx, scene.owner, ProposalFilter::All)).unwrap().len(),
            1
        );
        assert!(scene.store.read(|tx| find(tx, other, &typed)).is_err());
        assert!(approve(&scene.store, other, &scene.shelf(), id, "other").is_err());
        assert!(reject(&scene.store, other, id, "other").is_err());
        assert_eq!((scene.state(id), scene.body()), (ProposalState::Waiting, None));
    }
}
