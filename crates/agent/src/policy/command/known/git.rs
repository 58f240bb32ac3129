//! What git can be told to do, and the options with which that stays what it is.

use crate::policy::command::Class;
use crate::policy::command::options::Options;

/// What one of git's commands does with the options that are listed for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::policy::command) struct Task {
    /// Its names, and after a colon the word that must follow: `stash:pop`.
    pub(in crate::policy::command) names: &'static str,
    pub(in crate::policy::command) options: &'static [Options],
    pub(in crate::policy::command) class: Class,
    /// Letters and names with which it loses something that git cannot bring back.
    pub(in crate::policy::command) losing: (&'static str, &'static str),
    /// Whether it brings files of the repository or of a patch into the workspace.
    pub(in crate::policy::command) brings_files: bool,
}

const fn looks(names: &'static str, options: &'static [Options]) -> Task {
    Task { names, options, class: Class::Read, losing: ("", ""), brings_files: false }
}

const fn changes(names: &'static str, options: &'static [Options]) -> Task {
    Task { names, options, class: Class::WriteInside, losing: ("", ""), brings_files: false }
}

const fn brings(
    names: &'static str,
    losing: (&'static str, &'static str),
    options: &'static [Options],
) -> Task {
    Task { names, options, class: Class::WriteInside, losing, brings_files: true }
}

const fn loses(names: &'static str, options: &'static [Options]) -> Task {
    Task { names, options, class: Class::Destructive, losing: ("", ""), brings_files: false }
}

const fn reaches(names: &'static str, options: &'static [Options]) -> Task {
    Task { names, options, class: Class::Network, losing: ("", ""), brings_files: false }
}

/// How commits are chosen and shown, and how differences are.
const HISTORY: Options = Options {
    letters: "pusabwzRrmcDqWtgi0123456789n:S:G:L:U?M?C?B?l:X?",
    names: "oneline graph all decorate? no-decorate stat? shortstat numstat dirstat? summary \
            name-only name-status patch no-patch patch-with-stat raw color? no-color abbrev? \
            abbrev-commit no-abbrev-commit pretty? format= date= since= after= until= before= \
            author= committer= grep= all-match invert-grep regexp-ignore-case extended-regexp \
            fixed-strings perl-regexp max-count= skip= merges no-merges first-parent \
            min-parents= max-parents= branches? tags? remotes? glob= exclude= reverse follow \
            full-history simplify-merges ancestry-path? cherry cherry-pick cherry-mark \
            left-right left-only right-only boundary topo-order date-order author-date-order \
            source no-walk? unified? minimal patience histogram diff-algorithm= word-diff? \
            word-diff-regex= color-words? find-renames? find-copies? find-copies-harder \
            no-renames diff-filter= pickaxe-all pickaxe-regex ignore-space-change \
            ignore-all-space ignore-blank-lines ignore-space-at-eol ignore-cr-at-eol \
            function-context inter-hunk-context= relative? no-relative text binary full-index \
            exit-code quiet check ws-error-highlight= submodule? src-prefix= dst-prefix= \
            no-prefix cached staged merge-base no-index no-ext-diff no-textconv stat-width= \
            compact-summary notes? no-notes walk-reflogs mailmap no-mailmap use-mailmap \
            expand-tabs? children parents cc dense sparse ignore-submodules? color-moved? \
            no-color-moved output-indicator-new= output-indicator-old= \
            output-indicator-context= objects count header root output>",
};

const LISTED: Options = Options {
    letters: "",
    names: "contains? no-contains? merged? no-merged? points-at= sort= format= color? no-color \
            column? no-column abbrev? ignore-case",
};

const MERGING: Options = Options {
    letters: "qvnX:",
    names: "abort continue skip quit commit no-commit edit no-edit strategy-option= \
            signoff allow-empty keep-redundant-commits ff no-ff ff-only squash no-squash \
            message= file= stat no-stat log? quiet verbose allow-unrelated-histories no-verify \
            autostash no-autostash progress no-progress no-gpg-sign",
};

const FETCHING: Options = Options {
    letters: "apqvtn46fj:",
    names: "all prune tags no-tags depth= deepen= unshallow shallow-since= quiet verbose \
            progress no-progress append multiple jobs= dry-run force keep set-upstream \
            recurse-submodules? no-recurse-submodules filter= prune-tags atomic porcelain",
};

/// The tasks. One that is not here, or an option that is not listed for it, runs code: it may be an
/// alias, start an editor or a pager, or run what settings name.
pub(in crate::policy::command) const TASKS: &[Task] = &[
    looks(
        "status",
        &[Options {
            letters: "sbzvu?M?",
            names: "short branch porcelain? long verbose untracked-files? ignore-submodules? \
                    ignored? null column? no-column ahead-behind no-ahead-behind renames \
                    no-renames find-renames? show-stash",
        }],
    ),
    looks(
        "log show diff whatchanged rev-list diff-tree diff-index diff-files range-diff cherry \
         show-branch reflog: reflog:show reflog:list reflog:exists stash:list stash:show",
        &[HISTORY, Options { letters: "v", names: "verbose include-untracked only-untracked" }],
    ),
    looks("shortlog", &[Options { letters: "nse", names: "numbered email group=" }, HISTORY]),
    looks(
        "blame annotate",
        &[Options {
            letters: "lstfnewpC?M?L:",
            names: "porcelain line-porcelain show-name show-number show-email since= date= root \
                    ignore-rev= ignore-revs-file= color-lines color-by-age incremental abbrev= \
                    first-parent reverse",
        }],
    ),
    looks(
        "rev-parse",
        &[Options {
            letters: "q",
            names: "abbrev-ref? short? verify show-toplevel git-dir git-common-dir \
                    absolute-git-dir is-inside-work-tree is-inside-git-dir \
                    is-bare-repository is-shallow-repository show-prefix show-cdup all \
                    branches? tags? remotes? symbolic symbolic-full-name path-format= \
                    show-superproject-working-tree quiet revs-only no-revs flags no-flags",
        }],
    ),
    looks(
        "describe name-rev",
        &[Options {
            letters: "",
            names: "all tags contains long abbrev= always dirty? broken? match= exclude= \
                    candidates= first-parent exact-match debug name-only refs= no-undefined",
        }],
    ),
    looks(
        "ls-files",
        &[Options {
            letters: "cdmoiskutvfzx:X:",
            names: "cached deleted modified others ignored stage killed unmerged exclude= \
                    exclude-from= exclude-standard exclude-per-directory= error-unmatch \
                    full-name abbrev? deduplicate eol debug directory no-empty-directory \
                    with-tree= recurse-submodules",
        }],
    ),
    looks(
        "ls-tree",
        &[Options {
            letters: "drtlz",
            names: "name-only name-status long abbrev? full-name full-tree object-only",
        }],
    ),
    looks(
        "cat-file",
        &[Options {
            letters: "tspe",
            names: "batch? batch-check? batch-all-objects buffer unordered follow-symlinks",
        }],
    ),
    looks(
        "merge-base",
        &[Options { letters: "a", names: "all octopus is-ancestor fork-point independent" }],
    ),
    looks("count-objects", &[Options { letters: "vH", names: "verbose human-readable" }]),
    looks(
        "check-ignore check-attr",
        &[Options {
            letters: "aqvzn",
            names: "all quiet verbose stdin non-matching no-index cached",
        }],
    ),
    looks("var version", &[Options { letters: "l", names: "build-options" }]),
    looks("for-each-ref", &[LISTED, Options { letters: "", names: "count= exclude=" }]),
    looks(
        "show-ref",
        &[Options {
            letters: "dqs?",
            names: "heads branches tags dereference hash? verify quiet abbrev? head exists",
        }],
    ),
    looks(
        "grep",
        &[Options {
            letters: "aiIwvhHEGPFnlLzcopWqr0123456789e:f:A:B:C:m:",
            names: "cached untracked no-index no-exclude-standard exclude-standard text \
                    ignore-case word-regexp invert-match full-name extended-regexp \
                    basic-regexp perl-regexp fixed-strings line-number column \
                    files-with-matches name-only files-without-match null only-matching count \
                    color? no-color break heading show-function function-context \
                    after-context= before-context= context= threads= and or not all-match \
                    quiet max-depth= recursive no-recursive max-count=",
        }],
    ),
    looks(
        "fsck",
        &[Options {
            letters: "v",
            names: "full unreachable dangling no-dangling connectivity-only strict progress \
                    no-progress verbose name-objects root tags cache",
        }],
    ),
    looks(
        "config:",
        &[Options {
            letters: "lz",
            names: "list get get-all get-regexp global local system worktree show-origin \
                    show-scope name-only null type= includes no-includes default= bool int",
        }],
    ),
    looks(
        "config:list config:get",
        &[Options {
            letters: "z",
            names: "all regexp global local system worktree show-origin show-scope name-only \
                    null type= includes no-includes default= bool int",
        }],
    ),
    looks("symbolic-ref", &[Options { letters: "q", names: "short quiet" }]),
    looks("worktree:list", &[Options { letters: "vz", names: "porcelain verbose" }]),
    looks(
        "submodule: submodule:status submodule:summary",
        &[Options { letters: "q", names: "quiet cached recursive" }],
    ),
    looks("bisect:log notes: notes:list notes:show", &[Options::NONE]),
    looks("remote: remote:get-url", &[Options { letters: "v", names: "verbose push all" }]),
    changes(
        "add stage",
        &[Options {
            letters: "AnuvfN",
            names: "all dry-run update verbose force no-all ignore-removal intent-to-add refresh \
                    ignore-errors ignore-missing renormalize chmod= sparse",
        }],
    ),
    changes(
        "commit",
        &[Options {
            letters: "aqvnsom:F:C:u?",
            names: "all message= file= amend no-edit no-verify signoff quiet verbose author= \
                    date= allow-empty allow-empty-message reuse-message= fixup= squash= \
                    reset-author dry-run short branch porcelain long status no-status only \
                    include no-gpg-sign cleanup= trailer= untracked-files?",
        }],
    ),
    changes(
        "branch",
        &[
            LISTED,
            Options {
                letters: "avrqldDmMcCftu:",
                names: "list all remotes verbose show-current delete move copy force \
                        set-upstream-to= unset-upstream track? no-track create-reflog quiet",
            },
        ],
    ),
    changes(
        "tag",
        &[
            LISTED,
            Options {
                letters: "lain?dfm:F:",
                names: "list annotate message= file= no-sign cleanup= create-reflog delete force",
            },
        ],
    ),
    changes(
        "notes:add notes:append notes:copy",
        &[Options { letters: "fm:F:c:C:", names: "force" }],
    ),
    changes(
        "update-index",
        &[Options {
            letters: "q",
            names: "refresh really-refresh add remove force-remove assume-unchanged \
                    no-assume-unchanged skip-worktree no-skip-worktree chmod= stdin cacheinfo \
                    index-info again",
        }],
    ),
    changes(
        "write-tree commit-tree",
        &[Options { letters: "p:m:F:", names: "missing-ok prefix=" }],
    ),
    changes(
        "hash-object",
        &[Options { letters: "wt:", names: "stdin stdin-paths no-filters literally" }],
    ),
    changes(
        "init",
        &[Options { letters: "qb:", names: "quiet initial-branch= bare object-format=" }],
    ),
    changes(
        "worktree:add",
        &[Options {
            letters: "dqb:",
            names: "detach checkout no-checkout lock track no-track guess-remote orphan quiet",
        }],
    ),
    changes(
        "worktree:prune worktree:lock worktree:unlock",
        &[Options { letters: "nv", names: "" }],
    ),
    changes("worktree:remove", &[Options::NONE]),
    changes(
        "bisect:start bisect:good bisect:bad bisect:new bisect:old bisect:skip bisect:reset",
        &[Options { letters: "", names: "no-checkout first-parent" }],
    ),
    changes(
        "sparse-checkout:list sparse-checkout:set sparse-checkout:add sparse-checkout:disable \
         sparse-checkout:reapply",
        &[Options { letters: "", names: "cone no-cone stdin sparse-index no-sparse-index" }],
    ),
    changes(
        "format-patch",
        &[
            Options {
                letters: "nNkso>v:",
                names: "output-directory> stdout cover-letter numbered no-numbered \
                        start-number= subject-prefix= signoff no-signature thread? \
                        in-reply-to= to= cc= from? base= zero-commit reroll-count= keep-subject",
            },
            HISTORY,
        ],
    ),
    changes(
        "archive",
        &[Options {
            letters: "vl0123456789o>",
            names: "list prefix= output> worktree-attributes verbose remote= format=",
        }],
    ),
    brings("mv", ("", ""), &[Options { letters: "kvnf", names: "verbose dry-run force" }]),
    brings(
        "rm",
        ("f", "force"),
        &[Options { letters: "rnqf", names: "cached dry-run quiet ignore-unmatch force sparse" }],
    ),
    brings(
        "switch",
        ("fC", "force discard-changes force-create"),
        &[Options {
            letters: "dqtmfc:C:",
            names: "create= detach quiet track? no-track guess no-guess merge orphan= force \
                    force-create= discard-changes progress no-progress",
        }],
    ),
    brings(
        "checkout",
        ("fBp", "force ours theirs patch"),
        &[Options {
            letters: "fqdtlmpb:B:",
            names: "orphan= force quiet detach track? no-track guess no-guess ours theirs patch \
                    merge conflict= progress no-progress overlay no-overlay",
        }],
    ),
    brings(
        "restore",
        ("", ""),
        &[Options {
            letters: "SWqms:",
            names: "staged worktree source= quiet ours theirs merge progress no-progress",
        }],
    ),
    brings(
        "reset",
        ("", "hard merge keep"),
        &[Options { letters: "qN", names: "soft mixed hard merge keep quiet intent-to-add" }],
    ),
    brings("merge", ("", ""), &[MERGING, Options { letters: "m:F:", names: "" }]),
    brings(
        "cherry-pick revert",
        ("", ""),
        &[MERGING, Options { letters: "xsm:", names: "mainline=" }],
    ),
    brings(
        "rebase",
        ("", ""),
        &[
            MERGING,
            Options {
                letters: "fm",
                names: "onto= show-current-patch autosquash no-autosquash root keep-empty \
                        no-keep-empty rebase-merges? fork-point no-fork-point force-rebase \
                        committer-date-is-author-date update-refs keep-base merge apply",
            },
        ],
    ),
    brings(
        "apply",
        ("", ""),
        &[Options {
            letters: "qvRN3zp:C:",
            names: "stat numstat summary check index cached intent-to-add 3way reverse recount \
                    ignore-whitespace ignore-space-change whitespace= verbose quiet include= \
                    exclude= reject allow-empty",
        }],
    ),
    brings(
        "am",
        ("", ""),
        &[Options {
            letters: "3kqs",
            names: "3way keep quiet signoff abort continue skip quit resolved \
                    show-current-patch? whitespace= exclude= include= no-verify",
        }],
    ),
    brings(
        "read-tree",
        ("", "reset"),
        &[Options { letters: "muinv", names: "prefix= empty dry-run reset" }],
    ),
    brings(
        "stash: stash:push stash:save stash:pop stash:apply stash:branch stash:create stash:store",
        ("", ""),
        &[Options {
            letters: "aqkum:",
            names: "keep-index no-keep-index include-untracked all quiet message= index staged",
        }],
    ),
    loses("stash:drop stash:clear", &[Options { letters: "q", names: "quiet" }]),
    loses("reflog:expire reflog:delete", &[Options::NONE]),
    loses("clean", &[Options { letters: "nfdxXqe:", names: "dry-run force quiet exclude=" }]),
    loses("submodule:deinit", &[Options { letters: "fq", names: "force all quiet" }]),
    loses("gc prune filter-branch filter-repo update-ref replace repack", &[Options::NONE]),
    reaches(
        "remote:show remote:update remote:prune",
        &[Options { letters: "pnv", names: "prune dry-run verbose" }],
    ),
    reaches(
        "remote:add remote:rename remote:remove remote:rm remote:set-url remote:set-head \
         remote:set-branches",
        &[Options {
            letters: "vft:m:ad",
            names: "verbose fetch tags no-tags add delete push auto progress no-progress",
        }],
    ),
    reaches(
        "submodule:update submodule:init submodule:add submodule:sync submodule:set-url",
        &[Options {
            letters: "qfb:",
            names: "quiet init recursive remote force depth= jobs= branch= name= progress",
        }],
    ),
    Task { losing: ("f", "force"), ..reaches("fetch", &[FETCHING]) },
    Task {
        losing: ("f", "force"),
        brings_files: true,
        ..reaches(
            "pull",
            &[FETCHING, MERGING, Options { letters: "r", names: "rebase? no-rebase" }],
        )
    },
    reaches(
        "clone",
        &[Options {
            letters: "qvnlsb:o:j:",
            names: "depth= branch= single-branch no-single-branch quiet verbose progress \
                    recursive recurse-submodules? shallow-submodules no-tags bare mirror \
                    origin= jobs= filter= sparse no-checkout local no-local no-hardlinks shared \
                    shallow-since=",
        }],
    ),
    reaches(
        "ls-remote",
        &[Options {
            letters: "htq",
            names: "heads branches tags refs quiet exit-code get-url sort= symref",
        }],
    ),
    Task {
        losing: ("fd", "force force-with-lease delete mirror prune"),
        ..reaches(
            "push",
            &[Options {
                letters: "uqvn46fd",
                names: "set-upstream quiet verbose dry-run tags follow-tags progress \
                        no-progress all branches porcelain atomic no-verify thin no-thin force \
                        force-with-lease? force-if-includes delete mirror prune",
            }],
        )
    },
];

/// Settings on the line that change how something looks, or who is named.
pub(in crate::policy::command) const SETTINGS: &str = "\
    core.quotepath user.name user.email init.defaultbranch commit.gpgsign tag.gpgsign diff.renames \
    log.date";
