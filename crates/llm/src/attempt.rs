//! The record of what was tried, and the failure that shows all of it.

use std::fmt;
use std::time::Duration;

use mainstay_message::Usage;
use serde::{Deserialize, Serialize};

use crate::Fault;

/// One request to one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// `provider/model`.
    pub candidate: String,
    /// Why it failed; `None` for the one that did not.
    pub fault: Option<Fault>,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The provider's own words, in one line of sane length.
    pub said: String,
    /// The provider's name for the request.
    pub request_id: Option<String>,
    /// From sending to the end.
    pub latency: Duration,
    /// From sending to the first byte of the body.
    pub first_byte: Option<Duration>,
    /// The wait that followed.
    pub waited: Duration,
    /// Tokens that the provider counted, also of an attempt that failed.
    pub usage: Option<Usage>,
    /// How it differs from the one before, such as `without temperature`.
    pub note: Option<String>,
}

/// A call that no candidate answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Failure {
    /// All attempts, the first cause first.
    pub attempts: Vec<Attempt>,
    /// The fault whose remedy is nearest among the last ones of the candidates: a conversation that
    /// is too long for one and unpaid at the other is too long.
    pub fault: Fault,
    /// When a provider said it would serve again, in milliseconds since 1970.
    pub retry_at: Option<i64>,
}

impl Attempt {
    /// The status and the provider's words.
    pub fn cause(&self) -> String {
        let fault = self.fault.map_or("", Fault::description);
        let words = if self.said.is_empty() { fault } else { &self.said };
        match self.status {
            Some(status) if !(200..300).contains(&status) => format!("{status} {words}"),
            _ => words.to_owned(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(primary) = self.attempts.first().map(|attempt| &attempt.candidate) else {
            return f.write_str(self.fault.description());
        };
        let mut rest = self.attempts.as_slice();
        let mut before: Option<&str> = None;
        while let Some(first) = rest.first() {
            let cause = first.cause();
            // Attempts that failed alike are told once, with their number.
            let same = |attempt: &&Attempt| {
                attempt.candidate == first.candidate && attempt.cause() == cause
            };
            let repeats = rest.iter().skip(1).take_while(|a| a.note.is_none() && same(a)).count();
            let (group, later) = rest.split_at(1 + repeats);
            rest = later;

            if before.is_some() {
                f.write_str("; ")?;
            }
            if before == Some(&first.candidate) {
                f.write_str("again")?;
                if let Some(note) = &first.note {
                    write!(f, " {note}")?;
                }
            } else {
                if first.candidate != *primary {
                    f.write_str("fallback ")?;
                }
                f.write_str(&first.candidate)?;
            }
            before = Some(&first.candidate);
            write!(f, ": {cause}")?;
            let waited: Duration = group.iter().map(|attempt| attempt.waited).sum();
            if group.len() > 1 {
                let latency: Duration = group.iter().map(|attempt| attempt.latency).sum();
                write!(f, " after {} attempts in {}", group.len(), rounded(waited + latency))?;
            } else if !waited.is_zero() {
                write!(f, " after waiting {}", rounded(waited))?;
            }
        }
        let told = self.attempts.last().and_then(|attempt| attempt.fault);
        if self.fault == Fault::Deadline && told != Some(Fault::Deadline) {
            write!(f, "; {}", Fault::Deadline.description())?;
        }
        Ok(())
    }
}

/// A time as a person says it: whole seconds, or milliseconds below one.
fn rounded(time: Duration) -> String {
    if time.as_millis() >= 1000 {
        format!("{} s", time.as_secs_f64().round())
    } else {
        format!("{} ms", time.as_millis())
    }
}

/// Foreign words in one line of at most `most` characters, without control characters.
pub(crate) fn one_line(words: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in words.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
            length += 1;
        }
        for letter in word.chars() {
            if length >= most {
                line.push('…');
                return line;
            }
            line.push(letter);
            length += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(candidate: &str, status: Option<u16>, said: &str, fault: Fault) -> Attempt {
        Attempt {
            candidate: candidate.to_owned(),
            fault: Some(fault),
            status,
            said: said.to_owned(),
            request_id: None,
            latency: Duration::ZERO,
            first_byte: None,
            waited: Duration::ZERO,
            usage: None,
            note: None,
        }
    }

    #[test]
    fn a_failure_reads_as_the_chain_with_the_first_cause_first() {
        let mut again = attempt("openai/gpt-x", Some(402), "insufficient credit", Fault::Quota);
        again.note = Some("without max_tokens".to_owned());
        let mut slow = attempt("anthropic/y", Some(529), "Overloaded", Fault::Overloaded);
        slow.waited = Duration::from_secs(6);
        let failure = Failure {
            attempts: vec![
                attempt("openai/gpt-x", Some(400), "max_tokens not supported", Fault::Unsupported),
                again,
                slow.clone(),
                slow,
                attempt("anthropic/y", None, "", Fault::Network),
            ],
            fault: Fault::Overloaded,
            retry_at: None,
        };
        assert_eq!(
            failure.to_string(),
            "openai/gpt-x: 400 max_tokens not supported; again without max_tokens: 402 insufficient \
             credit; fallback anthropic/y: 529 Overloaded after 2 attempts in 12 s; again: no connection"
        );
    }

    #[test]
    fn foreign_words_become_one_bounded_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[2Jc ", 80), "a b [2Jc");
        assert_eq!(one_line("ééééé", 3), "ééé…");
    }
}
