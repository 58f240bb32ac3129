use mainstay_journal::{CallId, SessionId, TurnId};

use super::*;
use crate::Friction;
use crate::policy::ActionClass;

fn request(action: &str) -> Request {
    Request {
        id: Id::new(),
        session: SessionId::new(),
        turn: TurnId::new(),
        call: CallId::new(),
        tool: "shell".to_owned(),
        class: ActionClass::Execute,
        action: action.to_owned(),
        arguments: serde_json::Value::Null,
        reason: None,
        always: None,
        friction: Friction::Key,
        asked_at: 0,
        expires_at: 0,
    }
}

fn question(text: &str) -> Question {
    Question {
        id: Id::new(),
        session: SessionId::new(),
        turn: TurnId::new(),
        call: CallId::new(),
        text: text.to_owned(),
        choices: Vec::new(),
        asked_at: 0,
    }
}

#[test]
fn a_parked_turn_names_the_first_thing_it_waits_for_and_counts_the_rest() {
    let (make, test) = (request("to run `make`"), request("to run `make test`"));
    let (which, why) = (question("Which one?"), question("Why?"));
    let wants = format!("{}, and the policy requires approval (request {})", make.wants(), make.id);
    let asks = format!("the model asks: Which one? (question {})", which.id);
    let cases = [
        (vec![&make], vec![], ParkReason::Approval, wants.clone()),
        (vec![], vec![&which], ParkReason::Answer, asks.clone()),
        (vec![&make, &test], vec![], ParkReason::Approval, format!("{wants}; one more waits")),
        // A request comes first: without a decision its call cannot run, whatever is answered.
        (vec![&make], vec![&which], ParkReason::Approval, format!("{wants}; one more waits")),
        (vec![], vec![&which, &why], ParkReason::Answer, format!("{asks}; one more waits")),
        (vec![&make, &test], vec![&which], ParkReason::Approval, format!("{wants}; 2 more wait")),
        (vec![], vec![], ParkReason::Approval, "a decision is needed".to_owned()),
    ];
    for (requests, questions, reason, text) in cases {
        let requests: Vec<Request> = requests.into_iter().cloned().collect();
        let questions: Vec<Question> = questions.into_iter().cloned().collect();
        assert_eq!(waiting_for(&requests, &questions), Parked { reason, text });
    }
}
