//! How much of a long sweep is run: a part of it as a rule, all of it where somebody asks for that.

use crate::capability::THOROUGH;

/// The size of a sweep: `usual`, or `whole` where [`THOROUGH`] is set.
pub fn size(usual: u64, whole: u64) -> u64 {
    if std::env::var_os(THOROUGH).is_some_and(|value| !value.is_empty()) { whole } else { usual }
}
