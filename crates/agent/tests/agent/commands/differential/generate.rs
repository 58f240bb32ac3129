//! Command lines by a grammar: verbs, the options that their own help names, values, quoting, wrapping.

use fastrand::Rng;

/// A program of the box and the options that its help tells of.
pub(crate) struct Program {
    /// One or two words: `sort`, `git log`.
    pub(crate) name: String,
    pub(crate) options: Vec<String>,
}

/// Programs that are looked for in the box.
pub(crate) const PROGRAMS: &str = "\
    awk base64 basename bash bzip2 cat chgrp chmod chown cksum cmp column comm cp csplit cut date dd \
    df diff dirname du echo env expand expr factor file find fmt fold getconf grep gzip head hexdump \
    iconv id install join jq less ln ls md5sum mkdir mkfifo mktemp more mv nice nl nm nohup numfmt \
    objdump od paste patch pr printf readelf readlink realpath rev rg rm rmdir sed seq setsid \
    sha256sum sh shred shuf size sort split stat stdbuf strings tac tail tar tee test time timeout \
    touch tr tree truncate tsort uniq unzip wc which xargs xxd xz zcat zgrep zip zstd";

/// What git is told to do.
pub(crate) const TASKS: &str = "\
    add am apply archive blame branch cat-file check-ignore checkout cherry cherry-pick clean clone \
    commit config count-objects describe diff diff-index diff-tree fetch for-each-ref format-patch \
    fsck gc grep hash-object init log ls-files ls-remote ls-tree merge merge-base mv notes pull push \
    range-diff read-tree rebase reflog remote reset restore rev-list rev-parse revert rm shortlog \
    show show-branch show-ref stash status submodule switch symbolic-ref tag update-index var \
    whatchanged worktree write-tree";

const PATHS: &[&str] = &[
    "a.txt",
    "b.txt",
    "names.txt",
    "src",
    "src/main.rs",
    "src/lib.rs",
    "new.txt",
    "src/new",
    ".",
    "./",
    "out",
    "data.csv",
    "archive.tar",
    "fix.patch",
    "evil.patch",
    "sub",
    "link/hosts",
    "link",
    "file-link",
    "/tmp/x",
    "/etc/hosts",
    "/etc/new",
    "/people/me/.profile",
    "../outside",
    "..",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git",
    ".gi?/config",
    ".g*/hooks",
    "*",
    "*.txt",
    "src/*",
    "*/hosts",
    "l*/new",
    "run.sh",
    "./run.sh",
    "0/ls",
    "AGENTS.md",
    "-",
    "/dev/null",
    "nested",
];

const VALUES: &[&str] = &[
    "1",
    "0",
    "5",
    "2,3",
    "HEAD",
    "HEAD~1",
    "main",
    "other",
    "name",
    "x",
    "*.txt",
    "a",
    ",",
    "./run.sh",
    "sh ./run.sh",
    "exec=./run.sh",
    "always",
    "never",
    "auto",
    "origin",
    "%s",
    "%h",
    "ws@127.0.0.1:x",
    "ext::./run.sh",
    "../other.git",
    "core.pager=./run.sh",
    "g",
    "4755",
    "u+s",
    "+x",
];

const PATTERNS: &[&str] =
    &["*.txt", "*", "config", "main.rs", "a*", "HEAD", "*.rs", "hosts", "run.sh"];

const SED: &[&str] = &[
    "p",
    "1d",
    "$!d",
    "s/a/b/",
    "s/a/b/g",
    "s|a|b|w @",
    "w @",
    "e ./run.sh",
    "s/.*/.\\/run.sh/e",
    "r a.txt",
    "$=",
    "1~2p",
    "/a/,/b/p",
    "a text",
    "i\\\nw @",
    "y/ab/cd/",
    "{p;p}",
    ":l;s/a/b/;tl",
    "1{w @\n}",
    "s/[/]/x/w @",
    "#n\nw @",
    "s/a/b/;#w @",
    "R a.txt",
    "W @",
    "q5",
    "l 3",
    "0,/a/w @",
    "\\,a,p",
    "c\\\nx",
    "F",
    "z",
];

const AWK: &[&str] = &[
    "{ print $1 }",
    "{ print > \"@\" }",
    "{ print \"a;\" > \"@\" }",
    "{ print \"}\" >> \"@\" }",
    "NR>1",
    "{ print ($1 > 3) }",
    "BEGIN { system(\"./run.sh\") }",
    "{ print | \"./run.sh\" }",
    "{ print 1,\n2 > \"@\" }",
    "END { print NR / 2 }",
    "/a/ { n++ } END { print n }",
    "BEGIN { \"./run.sh\" | getline x; print x }",
    "{ if ($1 > 2) print }",
    "{ if (1) /\"/; print \"\" > \"@\" }",
    "{ print /a/ ? \"b\" : \"c\" }",
    "BEGIN { printf \"%s\", 1 > \"@\" }",
    "{ a[$1 > 2]++ } END { for (k in a) print k, a[k] }",
    "{ x = 1 > 2; print x }",
    "{ print -1 \" \" 2 > \"@\" }",
    "{ print(1)(2) > \"@\" }",
    "1 # > \"@\"",
    "{ gsub(/\\//, \"|\"); print }",
    "{ print $1 /2/ 1 > \"@\" }",
    "function f(x) { print x > \"@\" } { f(1) }",
];

/// Ways to change what runs, with `@` for a value.
const SHELL: &[&str] = &[
    "((PATH=0)); ls",
    "echo $((PATH=0)); ls",
    "let PATH=0; ls",
    "x=PATH=0; ((x)); ls",
    "printf -v PATH 0; ls",
    "printf -vPATH 0; ls",
    "getopts ab PATH -a; ls",
    "export P$y=0; ls",
    "n=PATH; export $n=0; ls",
    "declare -x P\"\"ATH=0; ls",
    "read PATH <<< 0; ls",
    "read -a PATH <<< 0; ls",
    "mapfile -t PATH <<< 0; ls",
    "for PATH in 0; do ls; done",
    "[[ PATH=0 -eq 0 ]]; ls",
    "a[PATH=0]=1; ls",
    ": ${a[PATH=0]}; ls",
    ": ${x:PATH=0}; ls",
    "exec {PATH}>/dev/null; ls",
    "PATH=0 ls",
    "PATH=0; ls",
    "x=0; PATH=$x ls",
    "env PATH=0 ls",
    "hash -p 0/ls ls; ls",
    "enable -f ./run.sh x",
    "ls() { ./run.sh; }; ls",
    "alias ls=./run.sh; ls",
    "cat < /dev/tcp/127.0.0.1/7777",
    "x=/dev/tcp/127.0.0.1/7777; cat < $x",
    "p=tcp; : < /dev/$p/127.0.0.1/7777",
    "x=$(echo /dev/tcp/127.0.0.1/7777); : < $x",
    "read x <<< /dev/tcp/127.0.0.1/7777; : < $x",
    "for x in /dev/tcp/127.0.0.1/7777; do : < $x; done",
    ": > ${x:-/dev/tcp/127.0.0.1/7777}",
    "ln -s .git g; echo x > g/hooks/pre-commit",
    "ln -s /etc e; echo x > e/new",
    "cp -l .git/config c; echo x > c",
    "ln -sf ../.. s; touch s/../x",
    "mkdir d; cd d; ln -s ../.git g; cd ..; echo x > d/g/info/x",
    "shopt -s dotglob; chmod 700 */hooks",
    "set -f; ls *",
    "cd sub; cd -; touch x",
    "cd ..; touch x",
    "cd link; touch new",
    "cd src || cd ..; touch x",
    "pushd .. ; touch x; popd",
    "(cd ..); touch x",
    "x=../y; touch $x",
    "x='a b'; touch $x",
    "x=@; touch \"$x\"",
    "x=@; echo hi > $x",
    "x=-exec; find . $x ./run.sh \\;",
    "trap './run.sh' EXIT",
    "eval ./run.sh",
    "eval 'echo x > @'",
    "echo 'echo x > @' | sh",
    "sh <<< 'touch @'",
    "sh <<EOF\ntouch @\nEOF",
    "cat <<EOF > @\nx\nEOF",
    "echo x | tee @",
    "echo @ | xargs touch",
    "echo @ | xargs -I{} touch {}",
    "touch {a,@}",
    "f() { touch \"$1\"; }; f @",
    "while read l; do touch $l; done < names.txt",
    "x=touch; $x @",
    "$(echo touch) @",
    "case a in a) touch @;; esac",
    "if true; then touch @; fi",
    "! touch @",
    "time touch @",
    "touch @ & wait",
    "{ touch @; } 2>/dev/null",
    "coproc touch @; wait",
    "exec touch @",
    "command touch @",
    "builtin echo x > @",
    "echo x >| @",
    "echo x &> @",
    "echo x 1<> @",
    "echo x >& @",
    "ls 2> @",
    ". ./run.sh",
    "source run.sh",
    "bash run.sh",
    "sh -s < run.sh",
    "./run.sh",
    "run.sh",
    "command -v ls",
    "type ls",
    "test -f @",
    "[ -e @ ] && rm @",
    "[[ -d src ]] && ls src",
    "echo $(< a.txt)",
    "cat a.txt b.txt | sort | uniq -c",
    "diff <(sort a.txt) <(sort b.txt)",
    "tar cf - src | tar tf -",
    "tar xf archive.tar",
    "tar xf archive.tar -C sub",
    "tar -xOf archive.tar",
    "patch -p1 < evil.patch",
    "git apply evil.patch",
    "git apply fix.patch",
    "cp -r nested/. .",
    "cp -r nested copy",
    "cp -rT nested .",
    "mv nested/.git sub/.git",
    "rsync -a nested/ .",
    "git init sub",
    "git remote -v add x ../other.git",
    "git -C sub status",
    "git --git-dir=nested/.git status",
    "git -C nested status",
    "git push ../other.git main",
    "git fetch ../other.git",
    "git stash; git stash pop",
    "git commit --allow-empty -m x",
    "git checkout -b x; git checkout main",
    "git log --output=@",
    "git diff --output=@ HEAD~1",
    "git config x.y z",
    "git config --get user.name",
    "git branch x; git branch -d x",
    "git worktree add @",
    "git archive -o @ HEAD",
    "git format-patch -o @ HEAD~1",
    "git grep -O./run.sh a",
    "git -c core.pager=./run.sh log",
    "git notes add -m x",
];

const WRAPPERS: &[&str] = &[
    "sh -c '%'",
    "bash -c \"%\"",
    "timeout 2 %",
    "env LC_ALL=C %",
    "nice %",
    "( % )",
    "{ %; }",
    "% | cat",
    "echo \"$(%)\"",
    "cd src && %",
    "cd sub; %",
    "if true; then %; fi",
    "for f in a.txt; do %; done",
    "% && true",
    "false || %",
    "% 2>&1",
    "nohup %",
    "stdbuf -o0 %",
    "eval '%'",
    "echo a.txt | xargs %",
    "ls *.txt | xargs -n1 %",
    "command %",
    "X=1 %",
    "find . -name '*.txt' -exec % {} \\;",
    "find src -type f -exec % {} +",
    "time %",
    "setsid -w %",
    "exec %",
    "% < a.txt",
    "echo x | %",
    "f() { %; }; f",
    "while true; do %; break; done",
    "xargs % < names.txt",
];

/// Makes one line.
pub(crate) fn line(random: &mut Rng, programs: &[Program], known: &[String]) -> String {
    let mut line = match random.u8(..100) {
        0..16 => filled(random, SHELL),
        16..22 => known[random.usize(..known.len())].clone(),
        22..28 => {
            let (options, script) = (sed_options(random), filled(random, SED));
            format!("sed {options}{} {}", quoted(random, &script), path(random))
        }
        28..34 => {
            let program = filled(random, AWK);
            format!("awk {} {}", quoted(random, &program), path(random))
        }
        34..42 => find(random),
        _ => program(random, programs),
    };
    if random.u8(..100) < 12 {
        let sign = pick(random, &[">", ">>", "2>", "<", "&>", ">|", "1<>"]);
        line = format!("{line} {sign} {}", path(random));
    }
    if random.u8(..100) < 30 {
        let wrapper = pick(random, WRAPPERS);
        // What is quoted already keeps its quotes only where it is not quoted once more.
        let clashes = wrapper.contains('\'') && line.contains('\'')
            || wrapper.contains('"') && line.contains(['"', '$', '`', '\\']);
        if !clashes {
            line = wrapper.replace('%', &line);
        }
    }
    if random.u8(..100) < 6 {
        line = format!("{line}; {}", program(random, programs));
    }
    line
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}

fn filled(random: &mut Rng, from: &[&str]) -> String {
    pick(random, from).replace('@', &path(random))
}

fn path(random: &mut Rng) -> String {
    pick(random, PATHS).to_owned()
}

fn sed_options(random: &mut Rng) -> String {
    let count = random.usize(..3);
    let options =
        ["-n ", "-i ", "-E ", "-i.bak ", "-s ", "-z ", "--in-place ", "-ni ", "-i/tmp/* ", "-u "];
    (0..count).map(|_| pick(random, &options)).collect()
}

fn find(random: &mut Rng) -> String {
    let mut words = vec![
        "find".to_owned(),
        pick(random, &[".", "src", "sub", "link/", "-L .", "nested", "", ".git"]).to_owned(),
    ];
    for _ in 0..random.usize(..4) {
        words.push(match random.u8(..12) {
            0..3 => format!("-name '{}'", pick(random, PATTERNS)),
            3 => format!("-type {}", pick(random, &["f", "d", "l"])),
            4 => "-maxdepth 2".to_owned(),
            5 => "-delete".to_owned(),
            6 => format!("-fprint {}", path(random)),
            7 => format!(
                "-exec {} {{}} \\;",
                pick(
                    random,
                    &[
                        "cat",
                        "rm",
                        "./run.sh",
                        "touch",
                        "sed -i s/a/b/",
                        "nice + ./run.sh",
                        "chmod 700",
                        "sh -c 'touch x'"
                    ]
                )
            ),
            8 => format!(
                "-exec {} {{}} +",
                pick(
                    random,
                    &["cat", "wc -l", "./run.sh", "sed -i s/a/b/", "cp -t /tmp", "mv -t sub", "rm"]
                )
            ),
            9 => format!("-execdir {} \\;", pick(random, &["ls", "./run.sh", "touch x", "pwd"])),
            10 => pick(
                random,
                &["-print", "-ls", "-o", "!", "-prune", "-empty", "-quit", "-follow", "-print0"],
            )
            .to_owned(),
            _ => format!("-not -path '{}'", pick(random, &["./.git/*", "*/.git*", "./src/*"])),
        });
    }
    words.join(" ")
}

fn program(random: &mut Rng, programs: &[Program]) -> String {
    let program = &programs[random.usize(..programs.len())];
    let mut words = vec![program.name.clone()];
    for _ in 0..random.usize(..4) {
        if !program.options.is_empty() && random.u8(..100) < 70 {
            let chosen = program.options[random.usize(..program.options.len())].clone();
            words.extend(option(random, &chosen));
        }
    }
    for _ in 0..random.usize(..4) {
        let word =
            if random.u8(..100) < 70 { path(random) } else { pick(random, VALUES).to_owned() };
        let place = if random.bool() { words.len() } else { random.usize(1..=words.len()) };
        words.insert(place, quoted_a_little(random, &word));
    }
    words.join(" ")
}

/// An option as people and others write it: with a value or without, joined, shortened.
fn option(random: &mut Rng, option: &str) -> Vec<String> {
    let value = if random.bool() { path(random) } else { pick(random, VALUES).to_owned() };
    let value = quoted_a_little(random, &value);
    let (name, takes) = match option.strip_suffix('=') {
        Some(name) => (name, true),
        None => (option, random.u8(..100) < 15),
    };
    let is_long = name.starts_with("--");
    let mut name = name.to_owned();
    if is_long && name.len() > 5 && random.u8(..100) < 12 {
        name.truncate(name.len() - random.usize(1..=2));
    }
    match (takes, is_long, random.bool()) {
        (false, ..) => vec![name],
        (true, true, true) => vec![format!("{name}={value}")],
        (true, false, true) => vec![format!("{name}{value}")],
        (true, _, false) => vec![name, value],
    }
}

fn quoted_a_little(random: &mut Rng, word: &str) -> String {
    if random.u8(..100) < 15 || word.contains(' ') { quoted(random, word) } else { word.to_owned() }
}

fn quoted(random: &mut Rng, word: &str) -> String {
    match random.u8(..4) {
        0 if !word.contains(['"', '$', '`', '\\', '!']) => format!("\"{word}\""),
        1 if !word.contains(['\'', '\\', '\n']) => format!("$'{word}'"),
        2 if word.len() > 2 && word.is_char_boundary(1) && !word.contains('\'') => {
            format!("'{}''{}'", &word[..1], &word[1..])
        }
        _ => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The options that a help tells of; those that take a value end in `=`.
pub(crate) fn options_of(help: &str) -> Vec<String> {
    let mut options = Vec::new();
    for line in help.lines() {
        let line = line.trim_start();
        let Some(part) = line.starts_with(['-', '[']).then(|| line.split("  ").next()).flatten()
        else {
            continue;
        };
        for word in
            part.split([' ', ',', '|', '[', ']', '(', ')']).filter(|word| word.starts_with('-'))
        {
            let name: String = word
                .chars()
                .take_while(|next| next.is_ascii_alphanumeric() || *next == '-')
                .collect();
            let rest = &word[name.len()..];
            let after = part.split(word).nth(1).unwrap_or_default().trim_start();
            let takes = rest.starts_with(['=', '<'])
                || after.starts_with(['<', '='])
                || after.starts_with(|next: char| next.is_ascii_uppercase());
            if name.trim_matches('-').is_empty() || is_left_out(&name) {
                continue;
            }
            options.push(if takes { format!("{name}=") } else { name });
        }
    }
    options.sort();
    options.dedup();
    options
}

/// What only waits, or says how it is used.
fn is_left_out(name: &str) -> bool {
    ["--help", "--version", "-f", "--follow", "-F", "--retry", "--pid"].contains(&name)
        && name != "-f"
}
