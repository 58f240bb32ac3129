//! A question on the terminal: which of these?

use super::found::{FoundModel, Offer};
use super::say;
use crate::error::Error;
use mainstay_tools::aside::aside;

/// So many models are shown; the others can be typed.
const SHOWN: usize = 20;

/// What there is to choose from.
pub(super) struct Question {
    pub(super) found: Vec<FoundModel>,
    pub(super) offers: Vec<Offer>,
}

/// What was chosen.
pub(super) enum Choice {
    Model(FoundModel),
    Provider(Offer),
}

impl Question {
    /// Asks until there is an answer.
    pub(super) async fn put(&self) -> Result<Choice, Error> {
        say(&self.list());
        loop {
            let line = line("Which one? [1] ").await?;
            match self.read(line.trim()) {
                Ok(choice) => return Ok(choice),
                Err(words) => say(&words),
            }
        }
    }

    fn list(&self) -> String {
        let mut text = String::new();
        let names = self.found.iter().take(SHOWN).map(|one| one.name().chars().count());
        let width = names.max().unwrap_or(0).min(50);
        for (number, one) in self.found.iter().take(SHOWN).enumerate() {
            let name = one.name();
            let line = format!("{:>3}  {name:<width$}  {}", number + 1, described(one));
            text.push_str(&format!("{}\n", line.trim_end()));
        }
        if self.found.len() > SHOWN {
            let more = self.found.len() - SHOWN;
            text.push_str(&format!("     and {more} more; type a name to choose one\n"));
        }
        for (number, offer) in self.offers.iter().enumerate() {
            let number = number + 1 + self.found.len().min(SHOWN);
            text.push_str(&format!("{number:>3}  {}, with {}\n", offer.provider, offer.key));
        }
        text.trim_end().to_owned()
    }

    /// What an answer means; the error says what to type.
    fn read(&self, typed: &str) -> Result<Choice, String> {
        let shown = self.found.len().min(SHOWN);
        let typed = if typed.is_empty() { "1" } else { typed };
        if let Ok(number) = typed.parse::<usize>() {
            let place = number.wrapping_sub(1);
            if place < shown {
                return Ok(Choice::Model(self.found[place].clone()));
            }
            if let Some(offer) = self.offers.get(place.wrapping_sub(shown)) {
                return Ok(Choice::Provider(offer.clone()));
            }
            let last = shown + self.offers.len();
            return Err(format!("{number} is not on the list; type a number from 1 to {last}."));
        }
        let model = self.found.iter().find(|one| one.name() == typed || one.model.name == typed);
        let offer = self.offers.iter().find(|offer| offer.provider == typed);
        match (model, offer) {
            (Some(one), _) => Ok(Choice::Model(one.clone())),
            (None, Some(offer)) => Ok(Choice::Provider(offer.clone())),
            (None, None) => {
                Err(format!("{typed:?} is not on the list; type a number, or Ctrl-C to leave."))
            }
        }
    }
}

fn described(one: &FoundModel) -> String {
    let mut words = Vec::new();
    words.extend(one.model.window.map(|window| format!("{window} tokens")));
    words.extend(match one.model.tools {
        Some(true) => Some("calls tools".to_owned()),
        Some(false) => Some("cannot call tools".to_owned()),
        None => None,
    });
    words.extend((one.model.loaded == Some(true)).then(|| "in memory".to_owned()));
    words.join(", ")
}

/// Whether a question is answered by yes.
pub(super) async fn yes(question: &str) -> Result<bool, Error> {
    Ok(matches!(line(question).await?.trim(), "y" | "Y" | "yes"))
}

/// A line from the terminal. It is read on a thread of its own, which nobody waits for when the
/// question is given up.
async fn line(question: &str) -> Result<String, Error> {
    // With standard error gone the answer decides.
    let _ = crate::printing::ask(question);
    let read = aside("question", || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    });
    let over = |why: String| {
        Error::usage(why).hint("Choose a model with `mainstay config set model PROVIDER/MODEL`.")
    };
    match read.await {
        Ok(Ok(Some(line))) => Ok(line),
        Ok(Ok(None)) => Err(over("no model was chosen".to_owned())),
        Ok(Err(error)) => Err(over(format!("could not read the answer: {error}"))),
        Err(error) => Err(over(format!("could not read the answer: {error}"))),
    }
}
