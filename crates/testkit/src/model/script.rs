//! Who decides what the model says.

use serde_json::Value;

use super::{ModelRequest, Reply};

/// Decides what the model says to a request. A closure is one.
pub trait Script: Send + 'static {
    /// The answer to a request. One request at a time is decided, so this must not wait for anything:
    /// a reply can, see [`Reply::held_by`] and [`Reply::after`].
    fn reply(&mut self, asked: &ModelRequest) -> Reply;
}

impl<F: FnMut(&ModelRequest) -> Reply + Send + 'static> Script for F {
    fn reply(&mut self, asked: &ModelRequest) -> Reply {
        self(asked)
    }
}

/// Answers one after the other; after the last one the script is over, which is an error of the
/// server.
pub struct Replies {
    left: std::vec::IntoIter<Reply>,
}

impl Replies {
    /// These answers, in this order.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { left: replies.into_iter().collect::<Vec<_>>().into_iter() }
    }
}

impl Script for Replies {
    fn reply(&mut self, _: &ModelRequest) -> Reply {
        self.left.next().unwrap_or_else(|| Reply::status(500, "The script is over."))
    }
}

/// Rounds of tool calls, and a text in the end.
///
/// How far the conversation is, is read from the results that it holds. So the script needs no
/// memory, and a client may die, come back and ask again in any order.
pub struct Rounds {
    rounds: usize,
    width: usize,
    call: Box<dyn Fn(usize) -> (String, Value) + Send>,
    end: String,
}

/// Asks for `rounds` calls, one a round; the closure names the tool and the arguments of the k-th,
/// counted from 0.
pub fn rounds<T: Into<String>>(
    rounds: usize,
    call: impl Fn(usize) -> (T, Value) + Send + 'static,
) -> Rounds {
    let call = Box::new(move |number| {
        let (tool, arguments) = call(number);
        (tool.into(), arguments)
    });
    Rounds { rounds, width: 1, call, end: format!("All {rounds} rounds are done.") }
}

impl Rounds {
    /// Asks for so many calls a round, in parallel: the first round for 0 and 1, the next for 2 and 3.
    pub fn in_parallel(mut self, calls: usize) -> Self {
        assert!(calls > 0, "A round has at least one call.");
        self.width = calls;
        self
    }

    /// What it says in the end.
    pub fn finally(mut self, text: impl Into<String>) -> Self {
        self.end = text.into();
        self
    }

    /// The round that a conversation with so many results is in; after the last one the text follows.
    pub(super) fn round(&self, results: usize) -> usize {
        (results / self.width).min(self.rounds)
    }

    /// What it says to a conversation with so many results.
    pub fn after_results(&self, results: usize) -> Reply {
        let round = self.round(results);
        if round == self.rounds {
            return Reply::text(self.end.clone());
        }
        (round * self.width..(round + 1) * self.width).fold(Reply::empty(), |reply, number| {
            let (tool, arguments) = (self.call)(number);
            reply.call(tool, arguments)
        })
    }
}

impl Script for Rounds {
    fn reply(&mut self, asked: &ModelRequest) -> Reply {
        self.after_results(asked.results().len())
    }
}
