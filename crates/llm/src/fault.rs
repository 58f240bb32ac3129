//! The closed set of faults. Each failure is mapped to one of them once, in `wire::classify` or where
//! the bytes are read, and nothing after that looks at a provider's words again.

use serde::{Deserialize, Serialize};

/// Why an attempt failed, by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Too many requests for now.
    RateLimited,
    /// The provider cannot serve at the moment: 5xx, 529, 408.
    Overloaded,
    /// No connection, or it broke.
    Network,
    /// No byte came for too long.
    Stalled,
    /// The answer makes no sense, or ended without its end marker.
    Garbage,
    /// The account has no money or no quota left.
    Quota,
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// There is no such model or address.
    NotFound,
    /// The provider does not accept the request.
    BadRequest,
    /// The conversation does not fit the model's window.
    TooLong,
    /// A parameter is not supported, and leaving it out did not help.
    Unsupported,
    /// The provider refuses this content.
    Refused,
    /// The deadline over the whole chain passed.
    Deadline,
}

impl Fault {
    /// All faults, those first whose remedy is nearest: compaction, then waiting, then a person.
    pub const ALL: [Fault; 13] = [
        Fault::TooLong,
        Fault::RateLimited,
        Fault::Overloaded,
        Fault::Deadline,
        Fault::Stalled,
        Fault::Network,
        Fault::Garbage,
        Fault::Refused,
        Fault::Quota,
        Fault::Auth,
        Fault::NotFound,
        Fault::Unsupported,
        Fault::BadRequest,
    ];

    /// The name in records and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::RateLimited => "rate_limited",
            Fault::Overloaded => "overloaded",
            Fault::Network => "network",
            Fault::Stalled => "stalled",
            Fault::Garbage => "garbage",
            Fault::Quota => "quota",
            Fault::Auth => "auth",
            Fault::NotFound => "not_found",
            Fault::BadRequest => "bad_request",
            Fault::TooLong => "too_long",
            Fault::Unsupported => "unsupported",
            Fault::Refused => "refused",
            Fault::Deadline => "deadline",
        }
    }

    /// Words for a person, used where the provider gave none.
    pub fn description(self) -> &'static str {
        match self {
            Fault::RateLimited => "too many requests",
            Fault::Overloaded => "overloaded",
            Fault::Network => "no connection",
            Fault::Stalled => "no answer in time",
            Fault::Garbage => "an answer that could not be understood",
            Fault::Quota => "no quota or credit left",
            Fault::Auth => "the key was not accepted",
            Fault::NotFound => "no such model or address",
            Fault::BadRequest => "the request was not accepted",
            Fault::TooLong => "the conversation is too long for this model",
            Fault::Unsupported => "a parameter is not supported",
            Fault::Refused => "the content was refused",
            Fault::Deadline => "the whole call ran out of time",
        }
    }

    /// Whether the same request may well succeed a moment later.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Fault::RateLimited
                | Fault::Overloaded
                | Fault::Network
                | Fault::Stalled
                | Fault::Garbage
        )
    }

    /// The fault of a chain that failed with these: the one whose remedy is nearest.
    pub(crate) fn nearest_remedy(faults: impl IntoIterator<Item = Fault>) -> Option<Fault> {
        let rank = |fault: &Fault| Fault::ALL.iter().position(|other| other == fault);
        faults.into_iter().min_by_key(rank)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_one_name_in_json_and_in_records() {
        for fault in Fault::ALL {
            assert_eq!(serde_json::to_string(&fault).unwrap(), format!("\"{fault}\""));
        }
    }

    #[test]
    fn a_chain_fails_with_the_fault_whose_remedy_is_nearest() {
        let faults = [Fault::Auth, Fault::RateLimited, Fault::Quota];
        assert_eq!(Fault::nearest_remedy(faults), Some(Fault::RateLimited));
        assert_eq!(Fault::nearest_remedy([]), None);
    }
}
