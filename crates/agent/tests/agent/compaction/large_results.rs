//! Turns whose every round fills much of the window: what they cost, and how they end.

use mainstay_agent::TurnEnding;
use mainstay_journal::turn::Outcome;
use mainstay_testkit::model::{ModelRequest, Reply};

use super::scene::{self, is_summary, reading, summary, tokens, too_long};
use crate::fixture::{TestAgent, TestTurn, turn};

const WINDOW: usize = 12_000;
const ROUNDS: usize = 40;

/// Reads a file of so many bytes in each round, in a window that holds few of them.
async fn read(bytes: usize) -> (TestAgent, TestTurn) {
    let (mut next, mut summaries) = (0, 0);
    let test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
        if is_summary(asked) {
            summaries += 1;
            return summary(summaries);
        }
        if tokens(asked) > WINDOW {
            return too_long();
        }
        next += 1;
        if next > ROUNDS { Reply::text("All read.") } else { reading(next - 1) }
    });
    for number in 0..ROUNDS {
        let line = format!("line of file {number} and more words on it\n");
        let text = line.repeat(bytes / line.len());
        std::fs::write(test.workspace().join(format!("f{number}")), text).unwrap();
    }
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    test.model.assert_no_violations();
    (test, ended)
}

#[tokio::test]
async fn slow_rounds_that_fill_half_of_the_window_go_on_at_a_small_price() {
    for bytes in [8_000, 14_000, 20_000] {
        let (test, ended) = read(bytes).await;
        assert_eq!(
            ended.report.ending,
            TurnEnding::Over(Outcome::Answered, None),
            "{bytes}: {ended:?}"
        );
        let asked = test.model.asked();
        let (summaries, rounds): (Vec<&ModelRequest>, Vec<&ModelRequest>) =
            asked.iter().partition(|asked| is_summary(asked));
        assert_eq!(rounds.len(), ROUNDS + 1, "{bytes}: something was asked twice");
        assert!(summaries.len() <= 2 * (ROUNDS / 10), "{bytes}: {} summaries", summaries.len());
        let all = |asked: &[&ModelRequest]| asked.iter().map(|asked| tokens(asked)).sum::<usize>();
        let (price, work) = (all(&summaries), all(&rounds));
        assert!(price * 8 < work, "{bytes}: {price} tokens for summaries beside {work}");
    }
}

#[tokio::test]
async fn results_of_which_the_window_holds_only_one_end_the_turn_in_words() {
    let (test, ended) = read(34_000).await;
    let reason = ended.failed_because().unwrap();
    assert!(reason.contains("results of tools"), "{reason}");
    assert!(test.model.asked().len() <= 8, "{}", test.model.asked().len());
}
