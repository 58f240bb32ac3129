//! The server as a program.

use std::path::Path;
use std::process::Command;

use mainstay_testkit::model::{ModelProgram, Shape};

use crate::client::{Client, DEADLINE, Ending};
use crate::hearing::hear;
use crate::requests::{first, later};

fn start(arguments: &[&str]) -> ModelProgram {
    ModelProgram::start_at(Path::new(env!("CARGO_BIN_EXE_model-server")), arguments)
}

#[test]
fn the_program_asks_for_its_rounds_and_ends_with_its_input() {
    let mut program = start(&["--rounds", "3", "--command", "echo {k}", "--final", "enough"]);
    for shape in Shape::ALL {
        let mut client = Client::at(program.url());
        let begin = client.ask(shape, &first(shape));
        assert_eq!((begin.status, begin.ending), (200, Ending::Whole));
        let call = |k: usize| ("shell".to_owned(), format!("{{\"command\":\"echo {k}\"}}"));
        let begin = hear(shape, &begin);
        assert_eq!((begin.calls, begin.ended), (vec![call(0)], true));
        // Two results are in there.
        let then = hear(shape, &client.ask(shape, &later(shape)));
        assert_eq!(then.calls, [call(2)]);
        assert_ne!(then.ids, begin.ids);
    }
    program.close_input();
    assert!(program.running().wait(DEADLINE).success());
}

#[test]
fn the_program_judges_unless_it_trusts() {
    let mut body = first(Shape::Chat);
    body.as_object_mut().unwrap().remove("model");
    let strict = start(&[]);
    let answer = Client::at(strict.url()).ask(Shape::Chat, &body);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("you must provide a model parameter"));
    let trusting = start(&["--trusting", "--rounds", "0", "--final", "hi"]);
    let answer = Client::at(trusting.url()).ask(Shape::Chat, &body);
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("[DONE]"));
}

#[test]
fn the_program_explains_itself_when_it_is_called_wrongly() {
    for wrong in [&["--round", "3"][..], &["--rounds"], &["--rounds", "x"], &["--parallel", "0"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_model-server"));
        let output = command.args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: model-server"));
    }
}

#[test]
fn slow_the_program_is_built_when_a_test_needs_it() {
    let program = ModelProgram::start(&["--rounds", "0", "--final", "hi"]);
    for shape in Shape::ALL {
        let client = Client::at(program.base_url(shape).strip_suffix(shape.base_path()).unwrap());
        assert_eq!(hear(shape, &{ client }.ask(shape, &first(shape))).text, "hi");
    }
}
