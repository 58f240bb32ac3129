//! A turn that waits for a person, and the process that goes on with it.

use mainstay_agent::policy::Decision;
use mainstay_testkit::model::Reply;
use serde_json::json;

use crate::fixture::{TestAgent, resume, turn};

#[tokio::test]
async fn a_parked_call_still_waits_when_the_same_process_goes_on() {
    let test = TestAgent::replying([
        Reply::call_of("write_file", json!({ "path": "a", "content": "x" })),
        Reply::text("never mind"),
    ])
    .with(|settings| settings.policy.write = Decision::Ask);
    let mut work = test.begin();
    let parked = turn(&mut work, "write").await;
    assert!(parked.is_parked(), "{parked:?}");

    let again = resume(&mut work).await;
    assert_eq!(again.report.ending, parked.report.ending);
    assert_eq!(test.model.requests(), 1, "the model was asked though its call has no outcome");

    let after = turn(&mut work, "leave it").await;
    assert_eq!(after.report.answer, "never mind");
    let last = test.last_asked();
    assert!(last.results()[0].1.contains("not run"), "{last:?}");
    assert_eq!(test.file("a"), None);
    test.model.assert_no_violations();
}
