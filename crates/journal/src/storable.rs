//! Text from outside in columns of the store.

use std::borrow::Cow;

/// The text as the store takes it: models and programs write any character, the store takes none
/// that is NUL.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\\u0000").into() } else { text.into() }
}
