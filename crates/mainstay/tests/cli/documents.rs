//! Help, versions, completions and manual pages: what is printed without any store.

use std::io::Read;
use std::process::Stdio;

use super::home::{Home, steady};

fn check(name: &str, line: &str) {
    let home = Home::new();
    steady().bind(|| insta::assert_snapshot!(name, home.run(line)));
    assert_eq!(home.names(""), [""; 0], "help touches nothing");
}

#[test]
fn help_of_every_command() {
    check("help", "--help");
    check("help_short", "-h");
    check("help_nothing_typed", "");
    check("help_chat", "chat --help");
    check("help_run", "run --help");
    check("help_resume", "resume --help");
    check("help_sessions", "sessions --help");
    check("help_sessions_list", "sessions list --help");
    check("help_sessions_show", "sessions show --help");
    check("help_sessions_search", "sessions search --help");
    for command in ["fork", "compact", "uncompact", "rename", "export", "import", "delete", "prune"]
    {
        check(&format!("help_sessions_{command}"), &format!("sessions {command} --help"));
    }
    check("help_undo", "undo --help");
    check("help_context", "context --help");
    check("help_approvals", "approvals --help");
    check("help_approve", "approve --help");
    check("help_deny", "deny --help");
    check("help_answer", "answer --help");
    check("help_skills", "skills --help");
    for command in ["list", "add", "proposals", "approve", "trash"] {
        check(&format!("help_skills_{command}"), &format!("skills {command} --help"));
    }
    check("help_audit", "audit --help");
    check("help_cost", "cost --help");
    check("help_models", "models --help");
    check("help_config", "config --help");
    check("help_config_get", "config get --help");
    check("help_config_set", "config set --help");
    check("help_config_key", "config key --help");
    check("help_profiles", "profiles --help");
    check("help_demo", "demo --help");
    check("help_doctor", "doctor --help");
    check("help_backup", "backup --help");
    check("help_restore", "restore --help");
    check("help_store", "store --help");
    check("help_store_info", "store info --help");
    check("help_store_check", "store check --help");
    check("help_store_copy", "store copy --help");
    check("help_completions", "completions --help");
    check("help_man", "man --help");
}

#[test]
fn what_cannot_be_understood_is_refused() {
    check("usage_unknown_command", "restart");
    check("usage_unknown_option", "doctor --json --fast");
    check("usage_no_file", "backup");
}

#[test]
fn the_version_is_one_line() {
    let ran = Home::new().run("--version").well();
    assert_eq!(ran.stdout, format!("mainstay {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = home.run(&format!("completions {shell}")).well();
        for word in ["doctor", "restore", "completions", "copy", "--store"] {
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(ran.stdout.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let home = Home::new();
    let page = home.run("man").well().stdout;
    assert!(page.contains(".TH mainstay 1"), "{page}");
    for words in ["mainstay\\-doctor(1)", "Exit codes", "MAINSTAY_HOME"] {
        assert!(page.contains(words), "no {words} in {page}");
    }

    std::fs::create_dir(home.path("pages")).unwrap();
    home.run("man --dir pages").well();
    assert_eq!(
        home.names("pages"),
        [
            "mainstay-answer.1",
            "mainstay-approvals-forget.1",
            "mainstay-approvals-rules.1",
            "mainstay-approvals.1",
            "mainstay-approve.1",
            "mainstay-audit.1",
            "mainstay-backup.1",
            "mainstay-budget-clear.1",
            "mainstay-budget.1",
            "mainstay-chat.1",
            "mainstay-completions.1",
            "mainstay-config-get.1",
            "mainstay-config-init.1",
            "mainstay-config-key-list.1",
            "mainstay-config-key-remove.1",
            "mainstay-config-key-set.1",
            "mainstay-config-key.1",
            "mainstay-config-path.1",
            "mainstay-config-set.1",
            "mainstay-config-unset.1",
            "mainstay-config.1",
            "mainstay-context.1",
            "mainstay-cost.1",
            "mainstay-demo.1",
            "mainstay-deny.1",
            "mainstay-doctor.1",
            "mainstay-man.1",
            "mainstay-memory-add.1",
            "mainstay-memory-edit.1",
            "mainstay-memory-export.1",
            "mainstay-memory-feedback.1",
            "mainstay-memory-forget.1",
            "mainstay-memory-import.1",
            "mainstay-memory-list.1",
            "mainstay-memory-notes.1",
            "mainstay-memory-providers.1",
            "mainstay-memory-search.1",
            "mainstay-memory.1",
            "mainstay-models.1",
            "mainstay-profiles-list.1",
            "mainstay-profiles-show.1",
            "mainstay-profiles-use.1",
            "mainstay-profiles.1",
            "mainstay-restore.1",
            "mainstay-resume.1",
            "mainstay-run.1",
            "mainstay-sessions-compact.1",
            "mainstay-sessions-delete.1",
            "mainstay-sessions-export.1",
            "mainstay-sessions-fork.1",
            "mainstay-sessions-import.1",
            "mainstay-sessions-list.1",
            "mainstay-sessions-prune.1",
            "mainstay-sessions-rename.1",
            "mainstay-sessions-search.1",
            "mainstay-sessions-show.1",
            "mainstay-sessions-uncompact.1",
            "mainstay-sessions.1",
            "mainstay-skills-add.1",
            "mainstay-skills-approve.1",
            "mainstay-skills-list.1",
            "mainstay-skills-proposals.1",
            "mainstay-skills-reject.1",
            "mainstay-skills-remove.1",
            "mainstay-skills-restore.1",
            "mainstay-skills-show.1",
            "mainstay-skills-trash.1",
            "mainstay-skills.1",
            "mainstay-store-check.1",
            "mainstay-store-compact.1",
            "mainstay-store-copy.1",
            "mainstay-store-info.1",
            "mainstay-store.1",
            "mainstay-undo.1",
            "mainstay.1",
        ]
    );
    let copy = std::fs::read_to_string(home.path("pages/mainstay-store-copy.1")).unwrap();
    assert!(copy.contains(".TH mainstay-store-copy 1") && copy.contains("\\-\\-to"), "{copy}");
    home.run("man --dir nowhere").refused(1, "could not write");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let home = Home::with_store();
    for line in ["store info", "--help", "completions zsh", "doctor"] {
        let mut child = home
            .command(line.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let home = Home::with_store();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = home.command(["store", "info"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: could not write the answer"), "{said}");
}
