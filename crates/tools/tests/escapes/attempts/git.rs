//! Leaving behind what git runs when it is used outside.

use super::{Attempt, py, sh};

pub(super) const ALL: &[Attempt] = &[
    sh("configure by git", "cd @WORK@ && git config core.fsmonitor evil"),
    sh("configure a pager", "cd @WORK@ && git config --add core.pager evil"),
    sh("configure for all", "HOME=@HOME@ git config --global core.pager evil"),
    sh("write a configuration", "echo evil >> @WORK@/.git/config"),
    sh(
        "replace a configuration",
        "cd @WORK@/.git && cp config @TMP@/c && echo evil >> @TMP@/c && mv -f @TMP@/c config",
    ),
    sh(
        "replace a configuration beside",
        "cd @WORK@/.git && echo evil > config.new && mv -f config.new config; rm -f config.new",
    ),
    sh("remove a configuration", "rm -f @WORK@/.git/config"),
    sh("link a configuration", "ln -sf @TMP@/evil @WORK@/.git/config"),
    sh("open a configuration to all", "chmod 666 @WORK@/.git/config"),
    sh("make a hook", "printf '#!/bin/sh\\n' > @WORK@/.git/hooks/pre-commit"),
    sh("make a hook a program", "chmod +x @WORK@/.git/hooks/*"),
    sh("replace a hook", "cp /bin/true @WORK@/.git/hooks/pre-commit.sample"),
    sh("rename a hook", "mv @WORK@/.git/hooks/pre-commit.sample @WORK@/.git/hooks/pre-commit"),
    sh("remove the hooks", "rm -rf @WORK@/.git/hooks"),
    sh("move the hooks", "mv @WORK@/.git/hooks @WORK@/.git/hooks2 && mkdir @WORK@/.git/hooks"),
    sh("link the hooks", "rm -rf @WORK@/.git/hooks; ln -sfT @TMP@ @WORK@/.git/hooks"),
    sh("write git's attributes", "echo '* filter=evil' > @WORK@/.git/info/attributes"),
    sh("write git's excludes", "echo evil >> @WORK@/.git/info/exclude"),
    sh("move the repository", "cd @WORK@ && mv .git .git2 && mkdir .git"),
    sh(
        "replace the repository by a file",
        "cd @WORK@ && mv .git .git3 && echo gitdir: /tmp > .git",
    ),
    sh("remove the repository", "rm -rf @WORK@/.git/config @WORK@/.git/hooks; rmdir @WORK@/.git"),
    sh("make the repository anew", "cd @WORK@ && git init -q --template=@TMP@ ."),
    sh("configure a submodule", "cd @WORK@/deep/library && git config core.fsmonitor evil"),
    sh("write a submodule's configuration", "echo evil >> @WORK@/.git/modules/deep/library/config"),
    sh(
        "make a submodule's hook",
        "echo evil > @WORK@/.git/modules/deep/library/hooks/post-checkout",
    ),
    sh("move the submodules", "cd @WORK@/.git && mv modules modules2 && cp -r modules2 modules"),
    sh(
        "move a submodule's repository",
        "cd @WORK@/.git/modules && mv deep deep2 && cp -r deep2 deep",
    ),
    sh("lead a submodule elsewhere", "echo gitdir: /tmp > @WORK@/deep/library/.git"),
    sh(
        "replace a submodule's file",
        "cd @WORK@/deep/library && echo gitdir: /tmp > x && mv -f x .git",
    ),
    sh("remove a submodule's file", "rm -f @WORK@/deep/library/.git"),
    sh("move a submodule", "cd @WORK@/deep && mv library library2 && mkdir library"),
    sh("move what a submodule is in", "cd @WORK@ && mv deep deep2 && cp -r deep2 deep"),
    sh("lead a worktree elsewhere", "echo /tmp > @WORK@/.git/worktrees/tree/commondir"),
    sh("say that a worktree is elsewhere", "echo /tmp/.git > @WORK@/.git/worktrees/tree/gitdir"),
    sh(
        "move a worktree's repository",
        "cd @WORK@/.git/worktrees && mv tree tree2 && cp -r tree2 tree",
    ),
    sh(
        "move the worktrees",
        "cd @WORK@/.git && mv worktrees worktrees2 && cp -r worktrees2 worktrees",
    ),
    sh(
        "configure another repository",
        "cd @OTHER@ && git config core.fsmonitor evil; echo evil >> .git/config",
    ),
    sh(
        "make a hook of another repository",
        "mkdir -p @OTHER@/.git/hooks && echo evil > @OTHER@/.git/hooks/pre-commit",
    ),
    sh("make a hook by a setting", "cd @WORK@ && git -c core.hooksPath=@TMP@ config alias.x evil"),
    sh(
        "write a configuration by a link",
        "ln -s .git/config @WORK@/config-link; echo evil >> @WORK@/config-link",
    ),
    sh(
        "write a hook by a hard link",
        "ln @WORK@/.git/hooks/pre-commit.sample @WORK@/hook && chmod +x @WORK@/hook",
    ),
    sh(
        "write a configuration by a hard link",
        "ln @WORK@/.git/config @WORK@/.git/linked && echo evil >> @WORK@/.git/linked; rm -f @WORK@/.git/linked",
    ),
    py(
        "exchange a configuration",
        "open(work + '/.git/other', 'w').write('evil'); libc.renameat2(-100, (work + '/.git/other').encode(), -100, (work + '/.git/config').encode(), 2); os.unlink(work + '/.git/other')",
    ),
    py(
        "exchange the repository",
        "os.makedirs(work + '/fake', exist_ok=True); libc.renameat2(-100, (work + '/fake').encode(), -100, (work + '/.git').encode(), 2)",
    ),
    py(
        "exchange what a submodule is in",
        "os.makedirs(work + '/fake/library', exist_ok=True); libc.renameat2(-100, (work + '/fake').encode(), -100, (work + '/deep').encode(), 2)",
    ),
    py(
        "configure in a namespace",
        "libc.unshare(0x10020000); libc.umount2((work + '/.git/config').encode(), 2); open(work + '/.git/config', 'a').write('evil')",
    ),
];
