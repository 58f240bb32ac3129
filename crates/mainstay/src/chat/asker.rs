//! The person at the terminal, as the engine asks it.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use mainstay_agent::{Asker, Question, Request, Verdict};
use mainstay_store::Id;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::chat::input::prompt::Reply;
use crate::chat::render::screen::Screen;

/// What the engine asks, or does not ask any more.
pub(crate) enum AskerMessage {
    Policy(Request, oneshot::Sender<Verdict>),
    Words(Question, oneshot::Sender<String>),
    /// Nobody has to answer this one any more.
    Gone(Id),
    /// Something to be said about a question.
    Remark(String),
}

/// Hands questions to the loop of the chat.
pub(crate) struct ChatAsker(pub(crate) UnboundedSender<AskerMessage>);

impl Asker for ChatAsker {
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Verdict>> {
        async move {
            let (sender, answer) = oneshot::channel();
            let _guard = QuestionGuard(&self.0, request.id);
            self.0.send(AskerMessage::Policy(request.clone(), sender)).ok()?;
            answer.await.ok()
        }
        .boxed()
    }

    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        async move {
            let (sender, answer) = oneshot::channel();
            let _guard = QuestionGuard(&self.0, question.id);
            self.0.send(AskerMessage::Words(question.clone(), sender)).ok()?;
            answer.await.ok()
        }
        .boxed()
    }

    fn overtaken(&self, words: &str) {
        let _ = self.0.send(AskerMessage::Remark(words.to_owned()));
    }
}

/// Takes a question away when nobody waits for its answer.
struct QuestionGuard<'a>(&'a UnboundedSender<AskerMessage>, Id);

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        // With the chat gone there is no question on the screen.
        let _ = self.0.send(AskerMessage::Gone(self.1));
    }
}

/// Questions that wait for an answer; the first is on the screen.
#[derive(Default)]
pub(crate) struct Questions(VecDeque<AskerMessage>);

impl Questions {
    /// Takes in what the engine asks.
    pub(crate) fn take(&mut self, message: AskerMessage, screen: &mut Screen) {
        match message {
            AskerMessage::Remark(words) => screen.note(&words),
            AskerMessage::Gone(id) => {
                let first = self.0.front().and_then(name);
                self.0.retain(|message| name(message) != Some(id));
                if first == Some(id) {
                    screen.take_question_away();
                    self.show(screen);
                }
            }
            message => {
                self.0.push_back(message);
                if self.0.len() == 1 {
                    self.show(screen);
                }
            }
        }
    }

    /// Hands an answer on and shows the next question.
    pub(crate) fn answer(&mut self, reply: Reply, screen: &mut Screen) {
        match (self.0.pop_front(), reply) {
            // Whoever asked may have stopped waiting; then the answer is nobody's.
            (Some(AskerMessage::Policy(_, sender)), Reply::Verdict(verdict)) => {
                let _ = sender.send(verdict);
            }
            (Some(AskerMessage::Words(_, sender)), Reply::Words(words)) => {
                let _ = sender.send(words);
            }
            _ => {}
        }
        self.show(screen);
    }

    fn show(&self, screen: &mut Screen) {
        match self.0.front() {
            Some(AskerMessage::Policy(request, _)) => screen.ask(request.clone()),
            Some(AskerMessage::Words(question, _)) => screen.ask_words(question.clone()),
            _ => {}
        }
    }
}

fn name(message: &AskerMessage) -> Option<Id> {
    match message {
        AskerMessage::Policy(request, _) => Some(request.id),
        AskerMessage::Words(question, _) => Some(question.id),
        AskerMessage::Gone(_) | AskerMessage::Remark(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use mainstay_agent::Friction;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::chat::input::history::History;
    use crate::chat::input::prompt::tests::request;

    #[tokio::test]
    async fn a_question_that_is_given_up_goes_and_the_next_one_comes() {
        let (sender, mut asked) = unbounded_channel();
        let face = ChatAsker(sender);
        let (one, two) = (request("one", Friction::Key), request("two", Friction::Key));
        let mut screen = Screen::new(60, 20, History::default());
        let mut questions = Questions::default();
        let shown = |screen: &Screen| {
            let rows = screen.live().rows;
            rows.iter().map(crate::chat::render::text::Line::text).collect::<Vec<_>>().join("\n")
        };

        let mut first = face.decide(&one);
        let mut second = face.decide(&two);
        assert_eq!((&mut first).now_or_never(), None);
        assert_eq!((&mut second).now_or_never(), None);
        while let Ok(message) = asked.try_recv() {
            questions.take(message, &mut screen);
        }
        assert!(shown(&screen).contains("wants one"), "{}", shown(&screen));
        drop(first);
        questions.take(asked.recv().await.unwrap(), &mut screen);
        assert!(shown(&screen).contains("wants two"), "{}", shown(&screen));
        questions.answer(Reply::Verdict(Verdict::Once), &mut screen);
        assert_eq!(second.await, Some(Verdict::Once));
    }
}
