//! Which skills there are: names and descriptions, and what stands in the way of the others.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use mainstay_tools::beneath;
use serde::Serialize;

use super::front_matter::{self, Front};
use super::{Origin, Places};
use crate::session::prompt::from_the_root_down;

/// The file that makes a folder a skill.
pub(super) const FILE: &str = "SKILL.md";
/// Front matter must end within so many bytes of the file.
const FRONT: u64 = 16 << 10;
/// A larger `SKILL.md` is not read.
const LARGEST: u64 = 1 << 20;
/// So many folders of one directory are looked at.
const MOST: usize = 500;
/// Where projects keep skills, the later one holds.
const OF_WORKSPACES: [&str; 2] = [".claude/skills", ".agents/skills"];

/// A skill that can be used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Skill {
    /// What it says of itself.
    #[serde(flatten)]
    pub front: Front,
    /// Where it comes from.
    pub origin: Origin,
    /// Its folder, links followed.
    pub path: PathBuf,
    /// Its `SKILL.md`, links followed: they lead nowhere else when it is read.
    #[serde(skip)]
    pub(super) file: PathBuf,
}

/// A skill that another one of the same name stands before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shadowed {
    /// The one that is not used.
    pub skill: Skill,
    /// The folder of the one that is.
    pub by: PathBuf,
}

/// Something that was meant to be a skill and cannot be used, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The file or folder.
    pub file: PathBuf,
    /// What is wrong with it, in a clause.
    pub what: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

/// The skills of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FoundSkills {
    /// Those that hold, by name.
    pub skills: Vec<Skill>,
    /// Those that have the name of one that holds.
    pub shadowed: Vec<Shadowed>,
    /// What cannot be used, and why.
    pub warnings: Vec<Warning>,
}

impl FoundSkills {
    /// The skill of a name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.front.name == name)
    }

    fn warn(&mut self, file: &Path, what: impl Into<String>) {
        self.warnings.push(Warning { file: file.to_owned(), what: what.into() });
    }

    /// Takes a skill in. One that was found before under its name is in its shadow.
    fn add(&mut self, skill: Skill, rank: usize, ranks: &mut Vec<usize>) {
        let named = |other: &Skill| other.front.name == skill.front.name;
        let Some(place) = self.skills.iter().position(named) else {
            self.skills.push(skill);
            ranks.push(rank);
            return;
        };
        // One directory is often a link to the other.
        if self.skills[place].path == skill.path {
            return;
        }
        let by = skill.path.clone();
        if ranks[place] == rank {
            let what = format!("{} has the same name and takes precedence", by.display());
            let file = self.skills[place].path.join(FILE);
            self.warn(&file, what);
        }
        ranks[place] = rank;
        let before = std::mem::replace(&mut self.skills[place], skill);
        self.shadowed.push(Shadowed { skill: before, by: by.clone() });
        for shadowed in &mut self.shadowed {
            if shadowed.skill.front.name == self.skills[place].front.name {
                shadowed.by.clone_from(&by);
            }
        }
    }
}

/// Finds the skills that hold in a workspace. What is nearer to it holds: before the home's come the
/// paths that were given, before those what the project brings, from its root down.
///
/// Without any this is a few calls that find nothing. Of each skill the front matter is read.
pub fn find(places: &Places, workspace: &Path) -> FoundSkills {
    let mut found = FoundSkills::default();
    let mut ranks = Vec::new();
    if let Some(home) = &places.home {
        let at = SkillDirectory { origin: Origin::Home, rank: 0, within: None };
        at.look(home, &mut found, &mut ranks);
    }
    for path in &places.given {
        let at = SkillDirectory { origin: Origin::Given, rank: 1, within: None };
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            found.warn(path, "it does not exist; [skills] paths lists it");
        } else if path.join(FILE).exists() {
            at.take(path, path, &mut found, &mut ranks);
        } else {
            at.look(path, &mut found, &mut ranks);
        }
    }
    let levels = from_the_root_down(workspace);
    let root = levels.first().copied().unwrap_or(workspace);
    for (rank, directory) in (2..).zip(&levels) {
        for name in OF_WORKSPACES {
            let at = SkillDirectory { origin: Origin::Workspace, rank, within: Some(root) };
            at.look(&directory.join(name), &mut found, &mut ranks);
        }
    }
    found.skills.sort_by(|left, right| left.front.name.cmp(&right.front.name));
    found
}

/// A directory of skills.
#[derive(Clone, Copy)]
struct SkillDirectory<'a> {
    origin: Origin,
    /// Those of a higher rank hold before those of a lower one.
    rank: usize,
    /// What links must not lead out of. `None` stands for the directory itself.
    within: Option<&'a Path>,
}

impl SkillDirectory<'_> {
    /// Takes in all skills of a directory.
    fn look(&self, directory: &Path, found: &mut FoundSkills, ranks: &mut Vec<usize>) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return found.warn(directory, format!("it cannot be read: {error}")),
        };
        let mut folders: Vec<PathBuf> = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if entry.file_name().as_encoded_bytes().starts_with(b".") => {}
                Ok(entry) => folders.push(entry.path()),
                Err(error) => found.warn(directory, format!("it cannot be read: {error}")),
            }
        }
        folders.sort();
        if folders.len() > MOST {
            let what = format!("it has {} folders; only the first {MOST} are read", folders.len());
            found.warn(directory, what);
            folders.truncate(MOST);
        }
        for folder in &folders {
            self.take(folder, directory, found, ranks);
        }
    }

    /// Takes in the skill of a folder, or says why not.
    fn take(
        &self,
        folder: &Path,
        directory: &Path,
        found: &mut FoundSkills,
        ranks: &mut Vec<usize>,
    ) {
        let file = folder.join(FILE);
        match self.skill(folder, directory) {
            Ok(Some(skill)) => found.add(skill, self.rank, ranks),
            Ok(None) => {}
            Err(what) => found.warn(&file, what),
        }
    }

    /// The skill of a folder. Returns `None` if the path is not a folder.
    fn skill(&self, folder: &Path, directory: &Path) -> Result<Option<Skill>, String> {
        let unreadable = |error: io::Error| format!("it cannot be read: {error}");
        let looked = match fs::metadata(folder) {
            Ok(looked) => looked,
            Err(_) if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) => {
                return Err("its folder is a broken link".to_owned());
            }
            Err(error) => return Err(unreadable(error)),
        };
        if !looked.is_dir() {
            return Ok(None);
        }
        let within = self.within.unwrap_or(directory);
        let within = within.canonicalize().map_err(unreadable)?;
        let path = folder.canonicalize().map_err(unreadable)?;
        let file = match folder.join(FILE).canonicalize() {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err("it does not exist".to_owned());
            }
            Err(error) => return Err(unreadable(error)),
        };
        if !path.starts_with(&within) || !file.starts_with(&within) {
            return Err(match self.origin {
                Origin::Workspace => "it is a link to a place outside the project".to_owned(),
                Origin::Home | Origin::Given => format!(
                    "it is a link to a place outside {}; add that place to [skills] paths",
                    directory.display()
                ),
            });
        }
        let front = read_front(&file)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if front.name != name {
            return Err(format!("its name is {:?}, but its folder is {name:?}", front.name));
        }
        Ok(Some(Skill { front, origin: self.origin, path, file }))
    }
}

/// Reads as much of a `SKILL.md` as its front matter needs.
fn read_front(file: &Path) -> Result<Front, String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let opened = beneath::file(file).map_err(unreadable)?;
    let looked = opened.metadata().map_err(unreadable)?;
    if looked.len() > LARGEST {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(FRONT).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // A letter may be cut in two at the end of what was read.
        Err(error) if bytes.len() - error.valid_up_to() < 4 && bytes.len() as u64 == FRONT => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => {
            return Err(format!("it is not text: byte {} is not UTF-8", error.valid_up_to()));
        }
    };
    let cut = bytes.len() as u64 == FRONT && looked.len() > FRONT;
    match front_matter::split(text) {
        Ok((yaml, _)) => Front::read(yaml),
        Err(_) if cut && text.starts_with("---") => {
            Err("its front matter does not end within 16 KiB".to_owned())
        }
        Err(what) => Err(what),
    }
}

impl Skill {
    /// The instructions, whole.
    pub fn body(&self) -> Result<String, String> {
        let unreadable = |error: io::Error| error.to_string();
        let file = beneath::file(&self.file).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() > LARGEST {
            return Err("it is larger than 1 MiB".to_owned());
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let (_, body) = front_matter::split(&text)?;
        Ok(body.trim().to_owned())
    }

    /// The other files of its folder with their sizes, as paths below it, and whether there are more.
    pub fn files(&self) -> (Vec<(String, u64)>, bool) {
        const SHOWN: usize = 100;
        let mut files = Vec::new();
        let mut left = vec![self.path.clone()];
        while let Some(directory) = left.pop() {
            let entries = beneath::directory(&directory).and_then(beneath::entries);
            for (name, looked) in entries.unwrap_or_default() {
                let path = directory.join(&name);
                let hidden = name.as_encoded_bytes().starts_with(b".");
                let Ok(looked) = looked else { continue };
                if hidden || path == self.path.join(FILE) {
                    continue;
                }
                if looked.is_directory() && left.len() < SHOWN {
                    left.push(path);
                } else if looked.is_file() {
                    let inner = path.strip_prefix(&self.path).unwrap_or(&path);
                    files.push((inner.to_string_lossy().into_owned(), looked.size));
                }
                if files.len() > SHOWN {
                    files.sort();
                    files.truncate(SHOWN);
                    return (files, true);
                }
            }
        }
        files.sort();
        (files, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct SkillsFixture(tempfile::TempDir);

    impl SkillsFixture {
        fn new() -> Self {
            let scene = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(scene.path("repo/.git")).unwrap();
            fs::create_dir_all(scene.path("repo/a")).unwrap();
            scene
        }

        fn path(&self, inner: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(inner)
        }

        fn put(&self, folder: &str, name: &str, description: &str) {
            let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
            self.put_text(folder, &text);
        }

        fn put_text(&self, folder: &str, text: &str) {
            let folder = self.path(folder);
            fs::create_dir_all(&folder).unwrap();
            mainstay_store::fsatomic::write(&folder.join(FILE), text.as_bytes(), 0o644).unwrap();
        }

        fn found(&self) -> FoundSkills {
            let given = vec![self.path("given")].into_iter().filter(|path| path.exists()).collect();
            find(&Places { home: Some(self.path("home/skills")), given }, &self.path("repo/a"))
        }
    }

    fn names(found: &FoundSkills) -> Vec<(&str, Origin)> {
        found.skills.iter().map(|skill| (skill.front.name.as_str(), skill.origin)).collect()
    }

    #[test]
    fn without_skills_nothing_is_found_and_nothing_is_wrong() {
        assert_eq!(SkillsFixture::new().found(), FoundSkills::default());
    }

    #[test]
    fn what_is_nearer_holds_and_what_it_hides_is_known() {
        let scene = SkillsFixture::new();
        scene.put("home/skills/one", "one", "home");
        scene.put("home/skills/two", "two", "home");
        scene.put("given/two", "two", "given");
        scene.put("repo/.agents/skills/two", "two", "root");
        scene.put("repo/a/.claude/skills/two", "two", "near");
        scene.put("repo/.claude/skills/three", "three", "root");
        scene.put(".claude/skills/four", "four", "outside of the repository");
        let found = scene.found();
        let expected =
            [("one", Origin::Home), ("three", Origin::Workspace), ("two", Origin::Workspace)];
        assert_eq!(names(&found), expected);
        assert_eq!(found.get("two").unwrap().front.description, "near");
        let hidden: Vec<&str> =
            found.shadowed.iter().map(|it| it.skill.front.description.as_str()).collect();
        assert_eq!(hidden, ["home", "given", "root"]);
        let near = scene.path("repo/a/.claude/skills/two");
        assert!(found.shadowed.iter().all(|shadowed| shadowed.by == near), "{found:#?}");
        assert_eq!(found.warnings, []);
    }

    #[test]
    fn a_given_path_is_a_skill_or_holds_some() {
        let scene = SkillsFixture::new();
        scene.put("given", "given", "itself");
        assert_eq!(names(&scene.found()), [("given", Origin::Given)]);
        let gone = Places { home: None, given: vec![scene.path("nowhere")] };
        let found = find(&gone, &scene.path("repo"));
        assert!(found.warnings[0].to_string().contains("nowhere: it does not exist"), "{found:?}");
    }

    #[test]
    fn what_cannot_be_used_is_a_warning_with_its_file_and_never_the_end_of_the_rest() {
        let scene = SkillsFixture::new();
        scene.put("home/skills/good", "good", "fine");
        scene.put("home/skills/folder", "other", "a wrong name");
        scene.put_text("home/skills/bare", "no front matter");
        scene.put_text(
            "home/skills/endless",
            &format!("---\nname: endless\n#{}", "x".repeat(20_000)),
        );
        scene.put_text("home/skills/huge", &"x".repeat((1 << 20) + 1));
        fs::create_dir_all(scene.path("home/skills/empty")).unwrap();
        fs::create_dir_all(scene.path("home/skills/dir/SKILL.md")).unwrap();
        fs::create_dir_all(scene.path("home/skills/bytes")).unwrap();
        let bytes = scene.path("home/skills/bytes/SKILL.md");
        mainstay_store::fsatomic::write(&bytes, b"---\nname: \xff\n---\n", 0o644).unwrap();
        symlink("nowhere", scene.path("home/skills/dangling")).unwrap();
        scene.put("elsewhere/link", "link", "led away");
        symlink(scene.path("elsewhere/link"), scene.path("home/skills/link")).unwrap();
        scene.put("repo/.agents/skills/inner", "inner", "fine");
        symlink(scene.path("elsewhere/link"), scene.path("repo/.agents/skills/link")).unwrap();
        fs::create_dir_all(scene.path("repo/.agents/skills/file")).unwrap();
        symlink("/etc/passwd", scene.path("repo/.agents/skills/file/SKILL.md")).unwrap();
        mainstay_store::fsatomic::write(&scene.path("home/skills/README.md"), b"x", 0o644).unwrap();
        let found = scene.found();
        let expected = [("good", Origin::Home), ("inner", Origin::Workspace)];
        assert_eq!(names(&found), expected, "{found:#?}");
        let said: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
        let cases = [
            ("skills/folder/SKILL.md", "its name is \"other\", but its folder is \"folder\""),
            ("skills/bare/SKILL.md", "its first line is not ---"),
            ("skills/endless/SKILL.md", "does not end within 16 KiB"),
            ("skills/huge/SKILL.md", "larger than 1 MiB"),
            ("skills/empty/SKILL.md", "it does not exist"),
            ("skills/dir/SKILL.md", "not a regular file"),
            ("skills/bytes/SKILL.md", "not UTF-8"),
            ("skills/dangling/SKILL.md", "a broken link"),
            ("home/skills/link/SKILL.md", "add that place to [skills] paths"),
            ("repo/.agents/skills/link/SKILL.md", "outside the project"),
            ("repo/.agents/skills/file/SKILL.md", "outside the project"),
        ];
        for (file, what) in cases {
            let it = said.iter().any(|said| said.contains(file) && said.contains(what));
            assert!(it, "{file}: {what} is not in {said:#?}");
        }
        assert_eq!(said.len(), cases.len(), "{said:#?}");
    }

    #[test]
    fn one_name_twice_in_one_place_is_said_and_a_link_to_the_same_is_not() {
        let scene = SkillsFixture::new();
        scene.put("repo/.agents/skills/both", "both", "this one");
        fs::create_dir_all(scene.path("repo/.claude")).unwrap();
        symlink("../.agents/skills", scene.path("repo/.claude/skills")).unwrap();
        let found = scene.found();
        assert_eq!((found.skills.len(), found.warnings.len(), found.shadowed.len()), (1, 0, 0));
        fs::remove_file(scene.path("repo/.claude/skills")).unwrap();
        scene.put("repo/.claude/skills/both", "both", "that one");
        let found = scene.found();
        assert_eq!(found.get("both").unwrap().front.description, "this one");
        assert!(
            found.warnings[0].to_string().contains(".claude/skills/both/SKILL.md"),
            "{found:?}"
        );
    }

    #[test]
    fn a_skill_tells_its_body_and_its_files() {
        let scene = SkillsFixture::new();
        scene.put("home/skills/one", "one", "x");
        fs::create_dir_all(scene.path("home/skills/one/scripts")).unwrap();
        let script = scene.path("home/skills/one/scripts/run.sh");
        mainstay_store::fsatomic::write(&script, b"echo hi\n", 0o755).unwrap();
        let found = scene.found();
        let skill = found.get("one").unwrap();
        assert_eq!(skill.body().unwrap(), "Do it.");
        assert_eq!(skill.files(), (vec![("scripts/run.sh".to_owned(), 8)], false));
    }
}
