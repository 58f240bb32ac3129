//! Something that may take a while: a bar on a terminal after a second, and Ctrl-C heeded.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt;

/// What takes less is over before a bar could be read.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// A piece of work in progress; its bar goes when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Dropped first, which ends the wait for the bar to appear.
    _over: Sender<()>,
}

impl Progress {
    /// Begins work, `what` being a word or two. If it makes a file, `target` names it, so that an
    /// interruption leaves nothing half-made beside it.
    pub(crate) fn begin(what: &'static str, target: Option<&Path>) -> Self {
        let bar = bar(what);
        let shown = bar.clone();
        interrupt::watch(target, move || shown.finish_and_clear());
        Self::shown(bar)
    }

    /// The same for work that hears Ctrl-C itself.
    pub(crate) fn alone(what: &'static str) -> Self {
        Self::shown(bar(what))
    }

    fn shown(bar: ProgressBar) -> Self {
        let (over, wait) = channel::<()>();
        let shown = bar.clone();
        let appear = move || {
            if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Draws nothing if standard error is not a terminal.
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        // Without the thread there is no bar, which harms nobody.
        let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(appear);
        Self { bar, _over: over }
    }

    /// Moves the bar.
    pub(crate) fn report(&self, at: &mainstay_store::Progress) {
        if self.bar.length() != Some(at.of) {
            self.bar.set_length(at.of);
            self.bar.set_style(style("{msg} [{wide_bar:.}] {percent}%").progress_chars("=> "));
        }
        self.bar.set_position(at.done);
        if at.done >= at.of {
            self.next("verifying");
        }
    }

    /// Goes on to something of unknown length.
    pub(crate) fn next(&self, what: &'static str) {
        self.bar.set_style(style("{spinner} {msg} ({elapsed})"));
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar(what: &'static str) -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        .with_style(style("{spinner} {msg} ({elapsed})"))
        .with_message(what)
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours; a wrong one would show as the default bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_right() {
        for template in ["{spinner} {msg} ({elapsed})", "{msg} [{wide_bar:.}] {percent}%"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
