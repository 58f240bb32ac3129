//! Verbs that reach the network, other hosts and containers.

use super::arguments::{Arguments, Valued};
use super::syntax::Word;
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, verbs};

const ASKING: [&str; 14] = [
    "ping",
    "ping6",
    "dig",
    "nslookup",
    "host",
    "traceroute",
    "tracepath",
    "mtr",
    "whois",
    "nmap",
    "arp",
    "drill",
    "getent",
    "http",
];

const OPENING: [&str; 16] = [
    "nc", "ncat", "netcat", "telnet", "ftp", "tftp", "lftp", "socat", "https", "xh", "aria2c",
    "websocat", "openssl", "rclone", "s3cmd", "mail",
];

/// Judges a verb that reaches the network. Returns `None` if it is not one.
pub(super) fn judge(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Option<Finding> {
    let arguments = Arguments::of(words);
    Some(match verb {
        "curl" | "wget" | "wget2" => fetch(walk, verb, &arguments),
        _ if ASKING.contains(&verb) => Class::Network.into(),
        _ if OPENING.contains(&verb) => Finding::from(Class::Network).and(Class::Execute),
        "ssh" | "mosh" | "autossh" => {
            let valued: Valued = ("BbcDEeFIiJLlmOopQRSWw", &[]);
            if let Some(host) = arguments.first_plain(valued) {
                // What runs there is judged as if it ran here, outside.
                let rest = &words[host + 1..];
                match rest {
                    [] => {}
                    [only] => walk.payload(only),
                    rest => {
                        let finding = walk.verb(rest, &StandardInput::Nothing);
                        return Some(finding.forgotten().and(Class::Network).and(Class::Execute));
                    }
                }
            }
            Finding::from(Class::Network).and(Class::Execute)
        }
        "scp" | "sftp" => {
            let mut finding = Finding::from(Class::Network);
            if arguments.may_have("SoF", &[]) || arguments.may_hide_options() {
                finding = finding.and(Class::Execute);
            }
            let plain = arguments.plain(("cFiJloPSX", &[]));
            match plain.last().filter(|target| !target.head().contains(':')) {
                Some(target) => finding.and(walk.writes(target)),
                None => finding,
            }
        }
        "rsync" => rsync(walk, &arguments),
        "gh" | "glab" | "hub" => hosted(verb, words),
        "docker" | "podman" | "nerdctl" => container(words),
        "systemctl" | "service" | "launchctl" => {
            let first = words.first().and_then(Word::literal).unwrap_or_default();
            match first.as_str() {
                "status" | "show" | "is-active" | "is-enabled" | "list-units"
                | "list-unit-files" => Class::Read.into(),
                _ => Finding::from(Class::Privilege).and(Class::Destructive),
            }
        }
        "journalctl" if arguments.may_have("", &["cursor-file", "setup-keys"]) => {
            Class::WriteOutside.into()
        }
        "journalctl" | "dmesg" => {
            if arguments.may_have("cC", VACUUM) {
                Class::Destructive.into()
            } else {
                Class::Read.into()
            }
        }
        "ip" | "ifconfig" | "route" | "ss" | "netstat" => {
            let shows = words.iter().all(|word| {
                !matches!(
                    word.literal().as_deref(),
                    None | Some(
                        "add"
                            | "del"
                            | "set"
                            | "up"
                            | "down"
                            | "flush"
                            | "netns"
                            | "-K"
                            | "exec"
                            | "-b"
                            | "-batch"
                            | "--kill"
                            | "-D"
                    )
                )
            });
            if shows { Class::Read.into() } else { Class::Privilege.into() }
        }
        _ => return None,
    })
}

const VACUUM: &[&str] = &["vacuum-size", "vacuum-time", "vacuum-files", "rotate", "flush", "clear"];

fn fetch(walk: &Walk<'_>, verb: &str, arguments: &Arguments<'_>) -> Finding {
    let mut finding = Finding::from(Class::Network);
    if arguments.may_hide_options() || arguments.may_have("", &["use-askpass", "engine"]) {
        return finding.and(Class::WriteOutside).and(Class::Execute);
    }
    let mut targets = Vec::new();
    if verb == "curl" {
        targets.extend(arguments.values(Some('o'), &["output", "output-dir"]));
        targets.extend(arguments.values(Some('D'), &["dump-header"]));
        targets.extend(arguments.values(Some('c'), &["cookie-jar"]));
        targets.extend(
            arguments.values(None, &["trace", "trace-ascii", "libcurl", "stderr", "etag-save"]),
        );
        targets.extend(arguments.values(None, &["hsts", "alt-svc"]));
        // What is told at the end may go to files.
        let told = arguments.values(Some('w'), &["write-out"]);
        if told.iter().any(|text| {
            text.literal().is_none_or(|text| text.contains("%output") || text.starts_with('@'))
        }) {
            finding = finding.and(Class::WriteOutside);
        }
        if arguments.may_have("OJ", &["remote-name", "remote-name-all", "remote-header-name"]) {
            targets.push(Word::of("."));
        }
        // A file of settings may say anything.
        if arguments.may_have("K", &["config"]) {
            return finding.and(Class::WriteOutside).and(Class::Execute);
        }
    } else {
        targets.extend(arguments.values(Some('O'), &["output-document"]));
        targets.extend(arguments.values(Some('P'), &["directory-prefix"]));
        targets.extend(arguments.values(Some('o'), &["output-file"]));
        targets.extend(arguments.values(Some('a'), &["append-output"]));
        let beside = ["warc-file", "warc-tempdir", "save-cookies", "hsts-file", "rejected-log"];
        targets.extend(arguments.values(None, &beside));
        if arguments.may_have("e", &["execute", "config"]) {
            return finding.and(Class::WriteOutside).and(Class::Execute);
        }
        if targets.is_empty() {
            targets.push(Word::of("."));
        }
    }
    for target in targets.iter().filter(|target| target.literal().as_deref() != Some("-")) {
        finding = finding.and(walk.writes(target));
    }
    finding
}

fn rsync(walk: &Walk<'_>, arguments: &Arguments<'_>) -> Finding {
    let valued: Valued =
        ("efTBM", &["rsh", "exclude", "include", "filter", "temp-dir", "rsync-path"]);
    if arguments.may_hide_options()
        || arguments.may_have("eM", &["rsh", "rsync-path", "remote-option"])
    {
        return Finding::from(Class::Execute).and(Class::Network);
    }
    let plain = arguments.plain(valued);
    let mut finding = Finding::from(Class::Read);
    // Files beside what is copied, and a server that writes where its settings say.
    let beside =
        ["log-file", "write-batch", "only-write-batch", "backup-dir", "partial-dir", "temp-dir"];
    if arguments.may_have("T", &beside) {
        finding = finding.and(Class::WriteOutside);
    }
    if arguments.may_have("", &["daemon", "config"]) {
        finding = finding.and(Class::Network).and(Class::Execute);
    }
    if plain.iter().any(|path| path.head().contains(':')) {
        finding = finding.and(Class::Network);
    }
    if let Some(target) = plain.last().filter(|target| !target.head().contains(':')) {
        finding = finding.and(walk.writes(target));
    }
    if arguments.may_have("", &["delete", "delete-after", "delete-before", "remove-source-files"]) {
        finding = finding.and(Class::Destructive);
    }
    finding
}

/// Programs that speak to a place where code is kept.
fn hosted(verb: &str, words: &[Word]) -> Finding {
    let literals: Vec<String> = words.iter().take(3).filter_map(Word::literal).collect();
    let mut finding = Finding::from(Class::Network);
    let is = |word: &str| literals.iter().any(|text| text == word);
    if is("delete") || is("archive") || is("transfer") || is("merge") || is("close") {
        return finding.and(Class::Destructive);
    }
    if is("extension") || is("alias") || is("auth") || is("codespace") || is("checkout") {
        return finding.and(Class::Execute);
    }
    if is("api") {
        // It may do all that the account may.
        return finding.and(Class::Execute);
    }
    finding.remembered = verbs::remembered(verb, words).filter(|kept| kept.len() > 1);
    finding
}

/// Containers: whoever may start one may become the superuser of the host.
fn container(words: &[Word]) -> Finding {
    let arguments = Arguments::of(words);
    let valued: Valued = ("cHl", &["context", "host", "log-level"]);
    let Some(task) = arguments.plain(valued).first().and_then(|word| word.literal()) else {
        return if arguments.may_hide_options() {
            Finding::from(Class::Execute).and(Class::Privilege)
        } else {
            Class::Read.into()
        };
    };
    let second = arguments.plain(valued).get(1).and_then(|word| word.literal()).unwrap_or_default();
    if arguments.may_have("H", &["host", "context", "config"]) {
        return Finding::from(Class::Execute).and(Class::Network);
    }
    let deletes = |word: &str| matches!(word, "prune" | "rm" | "rmi" | "kill" | "remove" | "down");
    match task.as_str() {
        "ps" | "images" | "logs" | "inspect" | "version" | "info" | "top" | "stats" | "port"
        | "diff" | "history" | "events" => Class::Read.into(),
        "image" | "container" | "volume" | "network" | "system" | "context"
            if matches!(second.as_str(), "ls" | "list" | "inspect" | "df") =>
        {
            Class::Read.into()
        }
        task if deletes(task) || deletes(&second) => Class::Destructive.into(),
        "pull" | "push" | "login" | "search" => Finding::from(Class::Network).and(Class::Execute),
        _ => {
            let opened = arguments
                .may_have("v", &["privileged", "volume", "mount", "pid", "cap-add"])
                || arguments.may_have("", &["device", "userns", "ipc", "security-opt", "network"]);
            let finding = Finding::from(Class::Execute).and(Class::Network);
            if opened { finding.and(Class::Privilege) } else { finding }
        }
    }
}

/// What programs that fetch packages do beyond running code.
pub(super) fn packages(verb: &str, words: &[Word]) -> Option<Classes> {
    let first =
        words.iter().filter_map(Word::literal).find(|text| !text.starts_with(['-', '+']))?;
    let fetches = matches!(
        first.as_str(),
        "install"
            | "i"
            | "ci"
            | "add"
            | "update"
            | "upgrade"
            | "get"
            | "download"
            | "fetch"
            | "sync"
            | "audit"
            | "login"
            | "search"
            | "outdated"
            | "dlx"
            | "create"
    );
    match verb {
        "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "pip" | "pip3" | "uv" | "poetry" | "gem"
        | "bundle" | "composer" | "go" | "mix" | "pipx" | "conda" | "twine" | "rustup" | "nix" => {
            let mut classes = Classes::READ;
            if fetches {
                classes = classes.with(Class::Network);
            }
            if matches!(
                first.as_str(),
                "publish" | "unpublish" | "yank" | "upload" | "deprecate" | "owner"
            ) {
                classes = classes.with(Class::Network).with(Class::Destructive);
            }
            Some(classes)
        }
        "npx" | "uvx" | "bunx" => Some(Class::Network.into()),
        "apt" | "apt-get" | "dnf" | "yum" | "apk" | "pacman" | "zypper" | "brew" | "snap"
        | "flatpak" => {
            let only_shows =
                matches!(first.as_str(), "list" | "show" | "info" | "search" | "policy");
            if only_shows {
                Some(Class::Network.into())
            } else {
                Some(Classes::from(Class::Network).with(Class::WriteOutside))
            }
        }
        _ => None,
    }
}
