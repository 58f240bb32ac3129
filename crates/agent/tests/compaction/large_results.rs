//! Turns whose every round fills much of the window: what they cost, and how they end.

use mainstay_agent::{TurnEnding, TurnReport};
use mainstay_journal::turn::Outcome;
use mainstay_testkit::model::{Asked, Reply};

use crate::place::{Place, is_summary, reading, summary, too_long, turn};

const WINDOW: usize = 12_000;
const ROUNDS: usize = 40;

/// The tokens that the scripted server counts for a request.
fn tokens(asked: &Asked) -> usize {
    asked.bytes / 4
}

/// Reads a file of so many bytes in each round, in a window that holds few of them.
async fn read(bytes: usize) -> (Place, TurnReport) {
    let (mut next, mut summaries) = (0, 0);
    let place = Place::new(Some(12_000), move |asked: &Asked| {
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
        std::fs::write(place.workspace().join(format!("f{number}")), text).unwrap();
    }
    let mut work = place.begin();
    let (ended, _) = turn(&mut work, "read it all").await;
    place.model.assert_no_violations();
    (place, ended)
}

#[tokio::test]
async fn slow_rounds_that_fill_half_of_the_window_go_on_at_a_small_price() {
    for bytes in [8_000, 14_000, 20_000] {
        let (place, ended) = read(bytes).await;
        assert_eq!(ended.ending, TurnEnding::Over(Outcome::Answered, None), "{bytes}: {ended:?}");
        let asked = place.model.asked();
        let (summaries, rounds): (Vec<&Asked>, Vec<&Asked>) =
            asked.iter().partition(|asked| is_summary(asked));
        assert_eq!(rounds.len(), ROUNDS + 1, "{bytes}: something was asked twice");
        assert!(summaries.len() <= 2 * (ROUNDS / 10), "{bytes}: {} summaries", summaries.len());
        let all = |asked: &[&Asked]| asked.iter().map(|asked| tokens(asked)).sum::<usize>();
        let (price, work) = (all(&summaries), all(&rounds));
        assert!(price * 8 < work, "{bytes}: {price} tokens for summaries beside {work}");
    }
}

#[tokio::test]
async fn results_of_which_the_window_holds_only_one_end_the_turn_in_words() {
    let (place, ended) = read(34_000).await;
    let TurnEnding::Over(Outcome::Failed, Some(reason)) = &ended.ending else {
        panic!("{ended:?}")
    };
    assert!(reason.contains("tool results"), "{reason}");
    assert!(place.model.asked().len() <= 8, "{}", place.model.asked().len());
}
