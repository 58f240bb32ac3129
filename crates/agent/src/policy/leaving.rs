//! What of a command line would leave the box that it runs in.

use std::path::{Path, PathBuf};

use mainstay_journal::turn::Mode;
use mainstay_tools::Grant;

use super::command::{Class, Classes, LineJudgement, Stage};
use super::place;

/// What of a command line counts when it is decided on, and what it is granted beyond the box if it runs.
pub(super) struct Leaving {
    /// The commands of the line, each with what counts of it.
    pub(super) stages: Vec<Stage>,
    /// What the line may do beyond the box if it runs.
    pub(super) grant: Grant,
}

impl Leaving {
    /// In a [boxed](Mode::is_boxed) mode the kernel decides what a command does. There only what a command
    /// is seen to need from outside the box counts, because that is granted with the yes; what nobody can
    /// read is granted nothing.
    pub(super) fn of(line: &LineJudgement, wants: &Grant, mode: Mode, workspace: &Path) -> Self {
        let asked_for: Vec<PathBuf> =
            wants.write.iter().filter_map(|path| place::real(&workspace.join(path))).collect();
        let mut wanted = Classes::READ;
        if !asked_for.is_empty() {
            wanted = wanted.with(Class::WriteOutside);
        }
        if wants.network {
            wanted = wanted.with(Class::Network);
        }
        let counted = |stage: &Stage| {
            let counts = |class: &Class| !mode.is_boxed() || leaves(stage, *class);
            let classes = stage.classes.iter().filter(counts);
            let classes = classes.fold(wanted, Classes::with);
            let mut stage = Stage { classes, ..stage.clone() };
            if let Some(prefix) = &mut stage.prefix {
                prefix.classes = classes;
            }
            stage
        };
        let stages: Vec<Stage> = line.stages.iter().map(counted).collect();
        // Where nobody is asked, nobody has said that the sandbox may be wider.
        let mut write = Vec::new();
        if mode != Mode::Yes {
            write = asked_for;
            let named = line.stages.iter().filter(|stage| !stage.is_unread());
            write.extend(named.flat_map(|stage| stage.outside.iter().cloned()));
            write.sort();
            write.dedup();
        }
        let reaches = stages.iter().any(|stage| stage.classes.has(Class::Network));
        Self { stages, grant: Grant { network: mode.is_boxed() && reaches, write } }
    }

    /// All that counts.
    pub(super) fn classes(&self) -> Classes {
        self.stages.iter().fold(Classes::READ, |classes, stage| classes.and(stage.classes))
    }
}

/// Whether what a command may do would leave the box, or is no matter for the kernel.
fn leaves(stage: &Stage, class: Class) -> bool {
    match class {
        Class::Network | Class::Destructive => !stage.is_unread(),
        // Without a place there is nothing to grant.
        Class::WriteOutside => !stage.is_unread() && !stage.outside.is_empty(),
        Class::Read | Class::WriteInside | Class::Execute | Class::Privilege | Class::Control => {
            true
        }
    }
}
