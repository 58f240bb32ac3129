//! Somebody exchanges a skill, or the trash, for a link while skills are changed: nothing elsewhere is
//! changed or read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use mainstay_testkit::process::example;
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::Sweep;

const TEXT: &str = "---\nname: one\ndescription: x\n---\n";

fn prepare(root: &Path) {
    for (folder, words) in [
        ("skills/one", "old"),
        ("skills/.trash/two.01ARZ3NDEKTSV4RRFFQ69G5FAV", "gone"),
        ("source/one", "new"),
        ("outside", "CANARY"),
    ] {
        fs::create_dir_all(root.join(folder)).unwrap();
        fs::write(root.join(folder).join("SKILL.md"), format!("{TEXT}{words}\n")).unwrap();
    }
    symlink("../outside", root.join("skills/.link")).unwrap();
}

#[test]
fn slow_a_link_that_comes_at_any_system_call_of_a_change_of_skills_leads_nowhere() {
    for name in ["one", ".trash"] {
        for sweep in
            [Sweep::of(Mode::Exchange), Sweep::of(Mode::Blink), Sweep::of(Mode::Exchange).forever()]
        {
            let pair = ["skills/.link".to_owned(), format!("skills/{name}")];
            let swept = sweep.only(&Kind::ALL).pair(&pair[0], &pair[1]).run(
                |root| {
                    prepare(root);
                    let mut command = Command::new(example("shelfwork"));
                    command.arg(root.canonicalize().unwrap());
                    command
                },
                |outcome| {
                    let [stdout, stderr] = [&outcome.stdout, &outcome.stderr]
                        .map(|bytes| String::from_utf8_lossy(bytes));
                    assert!(outcome.status.success(), "{stderr}");
                    let bytes: Vec<String> = b"CANARY".iter().map(u8::to_string).collect();
                    assert!(!stdout.contains(&bytes.join(", ")), "it was read: {stdout}");
                    let outside = outcome.directory.join("outside");
                    let text = fs::read_to_string(outside.join("SKILL.md")).unwrap();
                    assert_eq!(text, format!("{TEXT}CANARY\n"));
                    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
                },
            );
            println!("{name}: {swept:?}");
        }
    }
}
