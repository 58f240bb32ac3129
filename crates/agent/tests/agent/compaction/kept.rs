//! What stays as it was said, whatever is left out around it.

use mainstay_agent::{Event, Input};
use mainstay_message::{Content, Image};
use mainstay_testkit::model::{ModelRequest, Reply};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::scene::{self, body, fill, is_summary, reading_silently, rounds};

#[tokio::test]
async fn the_instruction_s_picture_and_the_list_of_steps_stay_where_results_are_shortened() {
    let mut next = 0;
    let test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
        assert!(!is_summary(asked), "a summary was asked for");
        next += 1;
        let steps = (1..30).map(|number| {
            let content = format!("step {number}: look at file {number} and write down its colour");
            json!({ "content": content, "status": "pending" })
        });
        match next {
            1 => Reply::call_of("todo", json!({ "steps": steps.collect::<Vec<_>>() })),
            2..16 => reading_silently(next),
            _ => Reply::text("All read."),
        }
    });
    fill(&test, 20, 5_000);
    let mut work = test.begin();
    let picture = Image { media_type: "image/png".to_owned(), base64: "aGVsbG8h".to_owned() };
    let wish = Content::Text("find these colours".to_owned());
    let input = Input { content: vec![wish, Content::Image(picture)], key: None };
    let mut compacted = 0;
    let mut observer = |event| compacted += usize::from(matches!(event, Event::Compacted { .. }));
    let cancel = CancellationToken::new();
    let ended = work.turn(&input, &mut observer, &cancel).await.unwrap();
    assert_eq!(ended.answer, "All read.");
    assert!(compacted > 0);
    let last = body(rounds(&test).last().unwrap());
    assert!(last.contains("[Mainstay: shortened."), "{last}");
    assert!(last.contains("aGVsbG8h") && last.contains("find these colours"), "{last}");
    assert!(last.contains("[ ] step 29: look at file 29 and write down its colour"), "{last}");
    test.model.assert_no_violations();
}
