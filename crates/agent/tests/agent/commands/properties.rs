//! Properties of the classification. `fuzz/fuzz_targets/command.rs` holds the same ones.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_agent::policy::command::{Class, LineJudgement, judge};
use proptest::prelude::*;

use super::table;

/// Pieces that lines are made of.
const PIECES: [&str; 96] = [
    "ls", "cat", "rm", "-rf", "/", "git", "push", "--force", "status", "sudo", "mainstay", "sh",
    "-c", "bash", "eval", "env", "xargs", "find", "-exec", "{}", "\\;", "+", "-delete", "echo",
    "curl", "x", "X=rm", "$X", "${X:-rm}", "\"$@\"", "$(", "`", ")", "(", "((", "))", "{", "}",
    "[[", "]]", "[", "]", "if", "then", "else", "fi", "for", "in", "do", "done", "while", "case",
    "esac", "function", "f()", ";", ";;", "&", "&&", "||", "|", "|&", "\n", "<<EOF", "<<'EOF'",
    "EOF", "<<<", ">", ">>", "<", "<(", "&>", "2>&1", "'", "\"", "\\", "$'", "\\'", "#", "!", "*",
    "?", "~", "../", "src/", "=", ",", "..", "$((", "$[", "${", ":-", "time", "timeout", "5", "\t",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z./-]{1,6}",
    ];
    let glue = proptest::sample::select(vec![" ", " ", " ", ""]);
    proptest::collection::vec((piece, glue), 0..16).prop_map(|parts| {
        parts.into_iter().flat_map(|(piece, glue)| [piece, glue.to_owned()]).collect()
    })
}

/// Lines of the table, and ones that nobody would write.
fn lines() -> impl Strategy<Value = String> {
    let known: Vec<String> = table::lines().into_iter().map(|(_, line)| line).collect();
    prop_oneof![pieces(), proptest::sample::select(known)]
}

/// A line as one word of another.
fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

/// The line as a word that a verb runs.
fn handed_over(line: &str) -> Vec<String> {
    let quoted = quoted(line);
    vec![
        format!("sh -c {quoted}"),
        format!("env LC_ALL=C bash -c {quoted}"),
        format!("timeout 5 sh -c {quoted}"),
        format!("ls | xargs sh -c {quoted}"),
        format!("eval {quoted}"),
    ]
}

/// The line within others. One that is not whole may end such a wrapping itself.
fn enclosed(line: &str) -> Vec<String> {
    vec![
        format!("( {line}\n)"),
        format!("{{ {line}\n}}"),
        format!("echo $( {line}\n)"),
        format!("echo \"$( {line}\n)\""),
        format!("true | ( {line}\n)"),
        format!("( {line}\n) | cat"),
        format!("if true; then {line}\nfi"),
        format!("f() {{ {line}\n}}"),
    ]
}

fn at(line: &str, workspace: &Path) -> LineJudgement {
    let begun = Instant::now();
    let judged = judge(line, workspace);
    assert!(begun.elapsed() < Duration::from_secs(10), "it took too long: {line:?}");
    assert!(!judged.stages.is_empty());
    judged
}

/// Whether a text goes on in what follows it.
fn is_open(line: &str) -> bool {
    line.contains("<<") || line.contains('#') || line.ends_with('\\')
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn wrapping_never_makes_a_line_more_harmless(line in lines()) {
        let workspace = table::workspace();
        let alone = at(&line, workspace.path());
        let mut wrappings = handed_over(&line);
        // In a test, one shell sees a here-document that takes in the wrapping where the other sees none.
        // A backslash at the end joins the line with what comes after it.
        let swallows = line.contains("<<") && line.contains("[[") || line.ends_with('\\');
        if alone.unclear.is_none() && !alone.only_bash && !swallows {
            wrappings.extend(enclosed(&line));
        }
        for wrapped in wrappings {
            let judged = at(&wrapped, workspace.path());
            prop_assert!(judged.class() >= alone.class(), "{wrapped:?}: {judged:?}\n{alone:?}");
        }
    }

    #[test]
    fn a_further_stage_never_makes_a_line_more_harmless(
        line in lines(),
        joint in proptest::sample::select(vec!["\n", " && ", " | ", "; ", " || ", " & "]),
        more in proptest::sample::select(vec!["ls", "touch x", "curl x", "frobnicate", "rm -rf /", "sudo ls"]),
    ) {
        let workspace = table::workspace();
        let alone = at(&line, workspace.path());
        if alone.unclear.is_some() || alone.only_bash || line.trim().is_empty() || is_open(&line) {
            return Ok(());
        }
        let both = at(&format!("{line}{joint}{more}"), workspace.path());
        let worst = alone.class().max(at(more, workspace.path()).class());
        prop_assert!(both.class() >= worst, "{line:?}{joint:?}{more:?}: {both:?}");
        let before = at(&format!("{more}{joint}{line}"), workspace.path());
        prop_assert!(before.class() >= worst, "{more:?}{joint:?}{line:?}: {before:?}");
    }

    #[test]
    fn what_always_remembers_covers_the_line_itself_and_never_a_worse_one(line in lines()) {
        let workspace = table::workspace();
        let judged = at(&line, workspace.path());
        let Some(prefixes) = judged.prefixes() else { return Ok(()) };
        prop_assert!(judged.class() <= Class::Execute);
        prop_assert!(judged.unclear.is_none());
        for stage in &judged.stages {
            let harmless = stage.classes.worst() == Class::Read;
            prop_assert!(harmless || prefixes.iter().any(|prefix| prefix.covers(stage)));
        }
        for (_, other) in table::lines() {
            let other = at(&other, workspace.path());
            let covered = other.stages.iter().all(|stage| {
                stage.classes.worst() == Class::Read || prefixes.iter().any(|prefix| prefix.covers(stage))
            });
            prop_assert!(!covered || other.class() <= judged.class().max(Class::Read));
        }
    }
}

#[test]
fn slow_deep_and_long_lines_take_bounded_time_and_little_of_the_stack() {
    let openings = [
        "(",
        "$(",
        "`",
        "$((",
        "((",
        "{ ",
        "{",
        "${x:-",
        "\"$(",
        "if ",
        "while ",
        "case x in x) ",
        "[[ ",
        "f() { ",
        "<(",
        "cat <(",
        "<<A ",
        "x=(",
        "! ",
        "time ",
        "env ",
        "xargs ",
        "sudo ",
        "sh -c ",
        "eval ",
        "timeout 5 ",
        "find a b -exec ",
        "find . ",
        "a{",
        "{a,",
        "'",
        "\"",
        "\\",
        "$'\\",
        "a/",
        "../",
        "x=$x ",
        "$x;",
        "x=y;",
        "x;",
        "x|",
        "git -C a ",
        "cd a && ",
        "for x in ",
        "[[[",
        "echo $",
        "a=b $a ",
    ];
    let bounded = move || {
        let workspace = table::workspace();
        for opening in openings {
            for length in [600, 60_000] {
                let line = opening.repeat(length / opening.len());
                at(&line, workspace.path());
                at(&format!("{line} rm -rf /"), workspace.path());
            }
        }
        let mut nested = "rm -rf /".to_owned();
        while nested.len() < 40_000 {
            nested = format!("sh -c {}", quoted(&nested));
            assert_eq!(at(&nested, workspace.path()).class(), Class::Destructive);
        }
    };
    // A quarter of what a thread of ours has.
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(bounded).unwrap();
    thread.join().unwrap();
}

#[test]
fn always_remembers_the_words_of_a_command_and_never_what_hides_others() {
    let workspace = table::workspace();
    let remembered = |line: &str| {
        judge(line, workspace.path())
            .prefixes()
            .map(|prefixes| prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    };
    let kept = [
        ("cargo test", "cargo test"),
        ("cargo test -p x -- --nocapture", "cargo test"),
        ("RUST_BACKTRACE=1 cargo test 2>&1 | tail -5", "cargo test"),
        ("cd src && cargo build && cargo test", "cargo build, cargo test"),
        ("npm run build", "npm run build"),
        ("npm install left-pad", "npm install left-pad"),
        ("timeout 60 cargo test", "cargo test"),
        ("git push -u origin main", "git push origin main"),
        ("git stash pop", "git stash pop"),
        ("uv run pytest -x", "uv run pytest"),
        ("python3 -m pytest", "python3 -m pytest"),
        ("python3 tools/check.py", "python3 tools/check.py"),
        ("./run.sh --fast", "./run.sh --fast"),
        ("make -j4 test", "make test"),
        ("make test --eval=x:y", "make test --eval=x:y"),
        ("pytest -k 'a or b' tests", "pytest"),
        ("frobnicate 'a b'", "frobnicate 'a b'"),
        ("gh pr view 12", "gh pr view 12"),
        ("make test > out.log", "make test"),
        ("ls", ""),
    ];
    for (line, expected) in kept {
        assert_eq!(remembered(line).as_deref(), Some(expected), "{line}");
    }
    let never = [
        "python3 -c 'print(1)'",
        "sh -c 'frobnicate' && eval \"$X\"",
        "sudo ls",
        "env FOO=1 frobnicate",
        "LD_PRELOAD=x cargo test",
        "cargo test > /etc/x",
        "cargo test; rm -rf /",
        "$CC x.c",
        "git -c a.b=c log",
        "node -e 1",
        "curl https://example.com",
        "find . -exec make \\;",
        "ls | xargs make",
        "git push --force",
        "ssh host make",
        "bash",
        "cargo test $(frobnicate; rm -rf ~)",
        "mainstay approve 1",
        "watch make",
        "cargo $X",
        "poetry run python -c 1",
        "source env.sh",
        "PATH=. make",
        "ls 'unclosed",
    ];
    for line in never {
        let judged = judge(line, workspace.path());
        assert!(remembered(line).is_none_or(|words| words.is_empty()), "{line}: {judged:?}");
        assert!(line == "bash" || judged.class() > Class::Read, "{line}: {judged:?}");
    }
}

#[test]
fn a_remembered_prefix_lets_no_other_command_through() {
    let workspace = table::workspace();
    let prefixes =
        judge("git push origin main && cargo test", workspace.path()).prefixes().unwrap();
    let covered = |line: &str| {
        judge(line, workspace.path()).stages.iter().all(|stage| {
            stage.classes.worst() == Class::Read
                || prefixes.iter().any(|prefix| prefix.covers(stage))
        })
    };
    for line in
        ["cargo test -p x", "ls && cargo test | tail", "git push -v origin main", "(cargo test)"]
    {
        assert!(covered(line), "{line}");
    }
    for line in [
        "cargo build",
        "cargo test && cargo build",
        "cargo test | sh",
        "git push --force",
        "git push",
        "git push https://example.com/x.git main",
        "git push origin other",
        "git push --receive-pack=x origin main",
        "cargo test --config x",
        "cargo test /etc/x",
        "git pull",
        "cargo test > /etc/x",
        "PATH=. cargo test",
        "cargo test $(frobnicate)",
        "cargo test; sudo ls",
        "./cargo test",
        "cargo\\ test",
        "cargo 'test x'",
        "xargs cargo test",
        "cargo test <(curl x)",
    ] {
        assert!(!covered(line), "{line}");
    }
}

#[test]
fn always_covers_exact_shapes_and_no_option_that_names_a_program() {
    let workspace = table::workspace();
    for (said, asked) in [
        ("make test", "make test --eval=x:=$(shell frobnicate)"),
        ("make test", "make test SHELL=./x"),
        ("make test", "make -f other test"),
        ("npm test", "npm test --script-shell=./x"),
        ("npm run build", "npm run build --prefix ../other"),
        ("git push", "git push https://example.com/x.git"),
        ("git fetch origin", "git fetch other"),
        ("pytest", "pytest -p x"),
        ("pytest", "pytest ../other"),
        ("./run.sh", "./run.sh --other"),
        ("python3 a.py", "python3 a.py b"),
        ("go test ./...", "go test -exec ./x ./..."),
    ] {
        let prefixes = judge(said, workspace.path()).prefixes().unwrap();
        let covers = |line: &str| {
            let stages = judge(line, workspace.path()).stages;
            stages.iter().all(|stage| prefixes.iter().any(|prefix| prefix.covers(stage)))
        };
        assert!(covers(said), "{said}");
        assert!(!covers(asked), "{said} covers {asked}");
    }
}
