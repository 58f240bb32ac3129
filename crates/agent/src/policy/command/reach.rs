//! Verbs that reach the network, other hosts and containers.

use super::arguments::{Arguments, Valued};
use super::known::reaching::{
    ASKING, CURL, DMESG, HOSTED, HOSTED_OPTIONS, IP, JOURNALCTL, OPENING, RSYNC, SCP, SOCKETS,
    SYSTEMCTL, WGET,
};
use super::options::is_listed;
use super::syntax::Word;
use super::walk::{Finding, StandardInput, Walk};
use super::{Class, Classes, verbs};

/// Judges a verb that reaches the network. Returns `None` if it is not one.
pub(super) fn judge(walk: &mut Walk<'_>, verb: &str, words: &[Word]) -> Option<Finding> {
    let arguments = Arguments::of(words);
    Some(match verb {
        "curl" | "wget" | "wget2" => fetch(walk, verb, words),
        _ if is_listed(ASKING, verb) => Class::Network.into(),
        _ if is_listed(OPENING, verb) => Finding::from(Class::Network).and(Class::Execute),
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
            let finding = Finding::from(Class::Network);
            let given = SCP.read(words).ok().filter(|given| !given.hidden && verb == "scp");
            let Some(given) = given else { return Some(finding.and(Class::Execute)) };
            match given.plain.last().filter(|target| !target.head().contains(':')) {
                Some(target) => finding.and(walk.writes(target)),
                None => finding,
            }
        }
        "rsync" => rsync(walk, words),
        "gh" | "glab" | "hub" => hosted(verb, words),
        "docker" | "podman" | "nerdctl" => container(words),
        "systemctl" | "service" | "launchctl" => {
            let first = words.first().and_then(Word::literal).unwrap_or_default();
            let known = SYSTEMCTL.read(words).is_ok_and(|given| !given.hidden);
            match first.as_str() {
                "status" | "show" | "is-active" | "is-enabled" | "list-units"
                | "list-unit-files"
                    if known =>
                {
                    Class::Read.into()
                }
                _ => Finding::from(Class::Privilege).and(Class::Destructive),
            }
        }
        "journalctl" | "dmesg" => {
            let options = if verb == "dmesg" { DMESG } else { JOURNALCTL };
            match options.read(words) {
                Ok(given) if !given.hidden => Class::Read.into(),
                _ => verbs::unlisted(words).and(Class::Destructive),
            }
        }
        "ip" => {
            let shows = |word: &Word| word.literal().is_some_and(|text| is_listed(IP, &text));
            // The name of a device follows `dev`.
            let names = |place: usize| {
                place > 0
                    && words[place - 1].literal().as_deref() == Some("dev")
                    && words[place].literal().is_some()
            };
            let known = (0..words.len()).all(|place| shows(&words[place]) || names(place));
            if known { Class::Read.into() } else { Class::Privilege.into() }
        }
        "ifconfig" | "route" => {
            let shows = |word: &Word| matches!(word.literal().as_deref(), Some("-a" | "-n"));
            if words.iter().all(shows) { Class::Read.into() } else { Class::Privilege.into() }
        }
        "ss" | "netstat" => match SOCKETS.read(words) {
            Ok(given) if !given.hidden => Class::Read.into(),
            _ => verbs::unlisted(words).and(Class::Privilege),
        },
        _ => return None,
    })
}

fn fetch(walk: &Walk<'_>, verb: &str, words: &[Word]) -> Finding {
    let finding = Finding::from(Class::Network);
    let options = if verb == "curl" { CURL } else { WGET };
    let given = options.read(words).ok().filter(|given| !given.hidden);
    let Some(given) = given else {
        return finding.and(Class::WriteOutside).and(verbs::unlisted(words).classes);
    };
    let here = Word::of(".");
    let mut targets: Vec<&Word> = given.written.iter().collect();
    let names_here = match verb {
        "curl" => given.has("OJR", "remote-name remote-name-all remote-header-name"),
        _ => targets.is_empty(),
    };
    if names_here {
        targets.push(&here);
        // The name is in the address, or the server says it.
        walk.note_any_write();
    }
    // What is told at the end may go to files.
    let told = given.values("w").chain(given.values("write-out")).any(|text| {
        text.literal().is_none_or(|text| text.contains("%output") || text.starts_with('@'))
    });
    let finding = if told { finding.and(Class::WriteOutside) } else { finding };
    targets
        .into_iter()
        .filter(|target| target.literal().as_deref() != Some("-"))
        .fold(finding, |finding, target| finding.and(walk.writes(target)))
}

fn rsync(walk: &Walk<'_>, words: &[Word]) -> Finding {
    let given = RSYNC.read(words).ok().filter(|given| !given.hidden);
    let Some(given) = given else { return verbs::unlisted(words).and(Class::Network) };
    let mut finding = Finding::from(Class::Read);
    if given.plain.iter().any(|path| path.head().contains(':')) {
        finding = finding.and(Class::Network);
    }
    if let Some((target, sources)) = given.plain.split_last() {
        if !target.head().contains(':') {
            finding = finding.and(walk.writes(target));
        }
        for source in sources {
            walk.note_copy(source);
            // The settings and hooks of another repository come along.
            if source.head().contains(':') || walk.holds_git(source) || walk.names_git(source) {
                finding = finding.and(Class::Execute);
            }
        }
    }
    let deletes = "delete delete-after delete-before delete-during delete-delay delete-excluded \
                   remove-source-files";
    if given.has("", deletes) { finding.and(Class::Destructive) } else { finding }
}

/// Programs that speak to a place where code is kept.
fn hosted(verb: &str, words: &[Word]) -> Finding {
    let literals: Vec<String> = words.iter().take(3).filter_map(Word::literal).collect();
    let mut finding = Finding::from(Class::Network);
    let is = |word: &str| literals.iter().any(|text| text == word);
    if is("delete") || is("archive") || is("transfer") || is("merge") || is("close") {
        return finding.and(Class::Destructive);
    }
    // The rest may do all that the account may, open a browser or write files.
    let task = literals.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(":");
    let known = HOSTED_OPTIONS.read(words).is_ok_and(|given| !given.hidden);
    if !known || !is_listed(HOSTED, &task) {
        return finding.and(verbs::unlisted(words).classes);
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
    // Options before the task choose another host or other settings.
    if arguments.first_plain(valued) != Some(0) || arguments.may_have("H", &["host", "context"]) {
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
