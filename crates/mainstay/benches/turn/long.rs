//! Taking up a long session.

use std::time::Instant;

use mainstay_journal::entry::Body;
use mainstay_journal::turn::{self, Outcome};
use mainstay_journal::{SessionId, TurnId, entry, session};
use mainstay_message::{AssistantPart, Call, CallResult, Content};
use mainstay_store::{Location, Options, Store};

use crate::measure::median;
use crate::report::Report;
use crate::scene::{Model, Scene};

pub(crate) fn measure(report: &mut Report) {
    let model = Model::start(0, "true");
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        short.push(taken_up(&model.url, 10));
        long.push(taken_up(&model.url, 10_000));
    }
    let figures = format!("{:.1}, {:.1}", median(short), median(long));
    report.note("ms to go on with a session of 10 and of 10,000 entries", &figures);
}

/// Milliseconds until a session of this many entries has answered once more.
fn taken_up(url: &str, entries: usize) -> f64 {
    let scene = Scene::new(url);
    let place = Location::file(scene.home().join("store.db"));
    let options = Options::new(mainstay_agent::schema());
    let store = Store::open(&place, options).unwrap();
    let (id, turn) = (SessionId::new(), TurnId::new());
    let workspace = scene.workspace().display().to_string();
    store
        .write(|tx| -> mainstay_journal::Result<()> {
            let owner = tx.owner("local")?;
            let new = session::New {
                owner,
                workspace: &workspace,
                prompt: "You help.",
                title: "long",
                begun_by: None,
            };
            session::create(tx, id, &new)?;
            turn::begin(tx, turn, id, "long")?;
            fill(tx, id, turn, entries)?;
            turn::end(tx, turn, Outcome::Answered, None)
        })
        .unwrap();
    drop(store);
    let start = Instant::now();
    let told = scene.mainstay(&["run", "--session", id.as_str(), "on"]).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    start.elapsed().as_secs_f64() * 1e3
}

fn fill(
    tx: &mut mainstay_store::WriteTx<'_>,
    id: SessionId,
    turn: TurnId,
    entries: usize,
) -> mainstay_journal::Result<()> {
    let text = |text: String| vec![Content::Text(text)];
    entry::append(tx, id, turn, &Body::User { content: text("begin".to_owned()) })?;
    for number in 0..entries / 2 {
        let call = Call {
            id: format!("call{number}"),
            name: "shell".to_owned(),
            arguments: format!("{{\"command\":\"echo {number}\"}}"),
            extra: None,
        };
        let parts = vec![AssistantPart::Call(call.clone())];
        entry::append(tx, id, turn, &Body::Assistant { parts, model: "local/m".to_owned() })?;
        let result = CallResult {
            call: call.id,
            name: call.name,
            content: text(format!("exit code 0\n{number}")),
            failed: false,
        };
        let body =
            Body::Result { result, facts: Vec::new(), fingerprint: String::new(), whole: None };
        entry::append(tx, id, turn, &body)?;
    }
    let parts = vec![AssistantPart::Text("done".to_owned())];
    entry::append(tx, id, turn, &Body::Assistant { parts, model: "local/m".to_owned() })?;
    Ok(())
}
