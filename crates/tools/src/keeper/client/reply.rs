//! What a keeper's reply means to whoever asked.

use super::error::KeeperError;
use crate::keeper::shared::protocol::Says;
use crate::keeper::shared::{Ended, Status};

pub(super) fn not_started() -> KeeperError {
    KeeperError::Refused(
        "The keeper that should run this is gone. Nothing was started; try again.".to_owned(),
    )
}

pub(super) fn ended_of(says: Says, key: &str) -> Result<Ended, KeeperError> {
    match says {
        Says::Ended(ended) => Ok(*ended),
        says => Err(refusal(says, key)),
    }
}

pub(super) fn status_of(says: Says, key: &str) -> Result<Status, KeeperError> {
    match says {
        Says::Standing(status) => Ok(*status),
        says => Err(refusal(says, key)),
    }
}

pub(super) fn done(says: Says, key: &str) -> Result<(), KeeperError> {
    match says {
        Says::Done => Ok(()),
        says => Err(refusal(says, key)),
    }
}

pub(super) fn refusal(says: Says, key: &str) -> KeeperError {
    match says {
        Says::UnknownKey => KeeperError::Unknown(key.to_owned()),
        Says::Refused(words) => KeeperError::Refused(words),
        // The two are the same program; another answer means that they are not.
        _ => KeeperError::Silent,
    }
}
