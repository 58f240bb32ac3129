//! A person decides about a proposal. A yes is a row before files are written, the files are put in
//! place by one rename, and then the row says so; whoever comes after a crash finishes it.

use mainstay_store::{Id, OwnerId, Store};

use super::proposal::{self, Proposal, State, Which};
use super::{Locked, Shelf, Tree, Trouble};

/// The skill as it is and as the proposal would make it.
pub fn preview(shelf: &Shelf, proposal: &Proposal) -> crate::Result<(Tree, Tree)> {
    let now = shelf.read(&proposal.name)?;
    if now.as_ref().map(Tree::hash) != proposal.base {
        return Err(Trouble::Changed(proposal.name.clone()).into());
    }
    let now = now.unwrap_or_default();
    let after = whole(shelf, proposal, &now)?;
    Ok((now, after))
}

/// The skill as a proposal makes it, which must be what the proposal was made for.
fn whole(shelf: &Shelf, proposal: &Proposal, base: &Tree) -> Result<Tree, Trouble> {
    let after = proposal.applied(base);
    if after.hash() == proposal.result {
        return Ok(after);
    }
    let what = format!("proposal {} is damaged", proposal.id);
    Err(Trouble::Invalid { path: shelf.folder(&proposal.name), what })
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
        State::Approved => return Ok(found),
        State::Rejected => return Err(decided(&found)),
        State::Waiting => {
            preview(shelf, &found)?;
            let steps = (State::Waiting, State::Approving);
            if !store.write(|tx| proposal::turn(tx, id, steps, Some(by)))? {
                return Err(decided(&store.read(|tx| proposal::get(tx, owner, id))?));
            }
        }
        State::Approving => {}
    }
    finish(store, shelf, &locked, &found)?;
    store.read(|tx| proposal::get(tx, owner, id))
}

/// Rejects a proposal. To reject it again does nothing.
pub fn reject(store: &Store, owner: OwnerId, id: Id, by: &str) -> crate::Result<Proposal> {
    let steps = (State::Waiting, State::Rejected);
    let found = store.write(|tx| {
        proposal::get(tx, owner, id)?;
        proposal::turn(tx, id, steps, Some(by))?;
        proposal::get(tx, owner, id)
    })?;
    if found.state == State::Rejected { Ok(found) } else { Err(decided(&found)) }
}

/// Finishes what a crash interrupted; answers what it finished.
pub fn settle(store: &Store, owner: OwnerId, shelf: &Shelf) -> crate::Result<Vec<Proposal>> {
    let open = store.read(|tx| proposal::list(tx, owner, Which::Approving))?;
    if open.is_empty() {
        return Ok(open);
    }
    let locked = shelf.lock()?;
    let mut finished = Vec::new();
    for proposal in store.read(|tx| proposal::list(tx, owner, Which::Approving))? {
        match finish(store, shelf, &locked, &proposal) {
            Ok(()) => finished.push(proposal),
            // It waits again, and whoever approves it learns why that cannot be.
            Err(crate::Error::Skills(Trouble::Changed(_))) => {}
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
    let hash = now.as_ref().map(Tree::hash);
    if hash.as_deref() != Some(proposal.result.as_str()) {
        let put = if hash == proposal.base {
            whole(shelf, proposal, &now.unwrap_or_default())
                .and_then(|after| locked.put(&proposal.name, &after, hash.as_deref()))
        } else {
            Err(Trouble::Changed(proposal.name.clone()))
        };
        if let Err(trouble) = put {
            let steps = (State::Approving, State::Waiting);
            store.write(|tx| proposal::turn(tx, proposal.id, steps, None))?;
            return Err(trouble.into());
        }
    }
    store.write(|tx| proposal::applied(tx, proposal.id))
}

fn decided(proposal: &Proposal) -> crate::Error {
    Trouble::Decided { id: proposal.id, state: proposal.state.as_str() }.into()
}

#[cfg(test)]
mod tests {
    use mainstay_journal::SessionId;

    use super::super::proposal::{Change, find, list, propose};
    use super::*;
    use crate::test_store::TestStore;

    struct Scene {
        directory: tempfile::TempDir,
        store: Store,
        owner: OwnerId,
    }

    fn text(words: &str) -> String {
        format!("---\nname: one\ndescription: x\n---\n{words}\n")
    }

    impl Scene {
        fn new() -> Self {
            let TestStore { directory, store, owner } = TestStore::on_sqlite();
            Self { directory, store, owner }
        }

        fn shelf(&self) -> Shelf {
            Shelf::at(self.directory.path().join("skills"))
        }

        fn propose(&self, words: &str) -> Id {
            let base = self.shelf().read("one").unwrap();
            let files = vec![Change { path: "SKILL.md".to_owned(), content: Some(text(words)) }];
            let mut proposal = Proposal {
                id: Id::new(),
                session: SessionId::new(),
                name: "one".to_owned(),
                reason: String::new(),
                base: base.as_ref().map(Tree::hash),
                result: String::new(),
                files,
                origin: None,
                state: State::Waiting,
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

        fn state(&self, id: Id) -> State {
            self.store.read(|tx| proposal::get(tx, self.owner, id)).unwrap().state
        }

        fn body(&self) -> Option<String> {
            let tree = self.shelf().read("one").unwrap()?;
            Some(String::from_utf8(tree.files["SKILL.md"].bytes.clone()).unwrap())
        }
    }

    #[test]
    fn nothing_is_there_before_the_yes_and_the_yes_holds_once() {
        let scene = Scene::new();
        let first = scene.propose("first");
        assert_eq!(scene.body(), None);
        assert_eq!(scene.approve(first).unwrap().state, State::Approved);
        assert_eq!(scene.body(), Some(text("first")));
        let again = scene.approve(first).unwrap();
        assert_eq!(again.decided_by.as_deref(), Some("me"));
        let second = scene.propose("second");
        scene.approve(second).unwrap();
        assert_eq!(scene.body(), Some(text("second")));
        assert_eq!(scene.shelf().trash().unwrap().len(), 1, "the one before can be had back");
        assert!(matches!(
            reject(&scene.store, scene.owner, second, "me"),
            Err(crate::Error::Skills(Trouble::Decided { .. }))
        ));
    }

    #[test]
    fn a_skill_that_was_changed_meanwhile_is_left_alone() {
        let scene = Scene::new();
        let first = scene.propose("first");
        let other = scene.propose("other");
        scene.approve(first).unwrap();
        let refused = scene.approve(other).unwrap_err();
        assert!(refused.to_string().contains("was changed since"), "{refused}");
        assert_eq!((scene.state(other), scene.body()), (State::Waiting, Some(text("first"))));
        assert_eq!(reject(&scene.store, scene.owner, other, "me").unwrap().state, State::Rejected);
        reject(&scene.store, scene.owner, other, "me").unwrap();
        assert!(scene.approve(other).is_err());
    }

    #[test]
    fn an_interrupted_yes_is_finished_wherever_it_stopped() {
        let steps = (State::Waiting, State::Approving);
        for written in [false, true] {
            let scene = Scene::new();
            scene.approve(scene.propose("old")).unwrap();
            let id = scene.propose("new");
            scene.store.write(|tx| proposal::turn(tx, id, steps, Some("me"))).unwrap();
            assert!(reject(&scene.store, scene.owner, id, "me").is_err(), "it is being written");
            if written {
                let found = scene.store.read(|tx| proposal::get(tx, scene.owner, id)).unwrap();
                let (now, after) = preview(&scene.shelf(), &found).unwrap();
                scene.shelf().lock().unwrap().put("one", &after, Some(&now.hash())).unwrap();
            }
            let finished = settle(&scene.store, scene.owner, &scene.shelf()).unwrap();
            assert_eq!(finished.len(), 1);
            assert_eq!((scene.state(id), scene.body()), (State::Approved, Some(text("new"))));
            assert!(settle(&scene.store, scene.owner, &scene.shelf()).unwrap().is_empty());
        }
        let scene = Scene::new();
        let id = scene.propose("new");
        scene.store.write(|tx| proposal::turn(tx, id, steps, Some("me"))).unwrap();
        scene.approve(scene.propose("somebody else's")).unwrap();
        assert!(settle(&scene.store, scene.owner, &scene.shelf()).unwrap().is_empty());
        assert_eq!(scene.state(id), State::Waiting);
    }

    #[test]
    fn nobody_sees_or_decides_what_is_somebody_elses() {
        let scene = Scene::new();
        let id = scene.propose("first");
        let other = scene.store.write(|tx| tx.owner("other")).unwrap();
        let typed = id.to_string();
        assert!(scene.store.read(|tx| list(tx, other, Which::All)).unwrap().is_empty());
        assert_eq!(scene.store.read(|tx| list(tx, scene.owner, Which::All)).unwrap().len(), 1);
        assert!(scene.store.read(|tx| find(tx, other, &typed)).is_err());
        assert!(approve(&scene.store, other, &scene.shelf(), id, "other").is_err());
        assert!(reject(&scene.store, other, id, "other").is_err());
        assert_eq!((scene.state(id), scene.body()), (State::Waiting, None));
    }
}
