//! Links that are exchanged while a command, or the making of a view, looks at them.

use std::fs;
use std::path::Path;

use mainstay_tools::sandbox::Sandbox;

use crate::is_held;
use crate::scene::{Scene, sandbox, users};

/// Exchanges a directory and a link to the user's, for ever.
const EXCHANGE: &str = "
import ctypes, os
libc = ctypes.CDLL(None)
os.chdir('@WORK@')
if not os.path.lexists('later'): os.makedirs('later/.git'); os.symlink('@HOME@', 'other')
def exchange(): libc.renameat2(-100, b'later', -100, b'other', 2)
";

/// So many views are made, by all users together.
const ROUNDS: usize = 1000;

const RACES: &[(&str, &str)] = &[
    ("written", "open('later/.bashrc', 'w').write('evil')"),
    ("appended", "open('later/.profile', 'a').write('evil')"),
    ("made", "open('later/new', 'x').close(); os.unlink('later/new')"),
    ("read", "print(open('later/.ssh/id').read())"),
    ("mode", "os.chmod('later/.bashrc', 0o777)"),
    ("times", "os.utime('later/.bashrc', (1, 1))"),
    ("linked", "os.link('later/plain', 'hard'); os.unlink('hard')"),
    ("moved", "os.rename('later/plain', 'taken')"),
    ("removed", "os.unlink('later/plain')"),
];

#[test]
fn slow_a_link_that_is_exchanged_a_thousand_times_leads_no_command_outside() {
    if !is_held() {
        return;
    }
    for user in users() {
        let mut scene = Scene::new(user);
        let before = scene.outside();
        for (name, action) in RACES {
            let told = scene.run_text(&format!(
                "python3 - <<'END'\n{EXCHANGE}
if not os.fork():
    while os.getppid() != 1: exchange()
    os._exit(0)
for _ in range(1000):
    try:
        {action}
    except OSError: pass
END"
            ));
            assert!(told.contains("exit code 0"), "{user:?}: {name}: {told}");
            assert!(!told.contains("SECRET-"), "{user:?}: {name}: {told}");
            assert_eq!(before, scene.outside(), "{user:?}: {name}: {told}");
        }
    }
}

/// The place that is to be kept is not there at first, so that commands can make it and exchange it. What
/// takes long and is not about files is left out.
fn with_a_place_that_comes_later(root: &Path) -> Sandbox {
    let Sandbox { write, mut keep, .. } = sandbox(root);
    keep.push(root.join("work/later/.git"));
    Sandbox { write, keep, hide: vec![root.join("spool")], ..Sandbox::default() }
}

#[test]
fn slow_a_link_that_is_exchanged_while_a_view_is_made_leads_nowhere() {
    if !is_held() {
        return;
    }
    for user in users() {
        let mut scene = Scene::with(user, |root| Some(with_a_place_that_comes_later(root)));
        let exchange = format!(
            "python3 - >/dev/null 2>&1 <<'END' &\n{EXCHANGE}\nimport time\nwhile True: exchange(); time.sleep(0.0001)\nEND\n"
        );
        scene.run_text(&exchange);
        let config = scene.at("work/.git/config");
        let text = fs::read(&config).unwrap();
        for round in 0..ROUNDS / users().len() {
            // As git does it outside: another file in the place of the one that is kept.
            let next = config.with_extension("next");
            fs::write(&next, &text).unwrap();
            fs::rename(&next, &config).unwrap();
            let told = scene.run_text("chmod 777 @HOME@/.bashrc; echo evil >> @WORK@/.git/config");
            assert!(told.contains("Read-only file system"), "{user:?}, {round}: {told}");
        }
        assert_eq!(fs::read(&config).unwrap(), text);
        let home = scene.at("home/.bashrc");
        assert_eq!(fs::read_to_string(home).unwrap(), "# begins\n", "{user:?}");
    }
}
