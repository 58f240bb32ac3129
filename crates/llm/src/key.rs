//! Keys: where they come from is the caller's business, that they are never shown is ours.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

/// A source of a provider's key.
pub trait Key: Send + Sync {
    /// The key, or `None` when the provider needs none. The error says what to do.
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, String>>;

    /// Says that the last key was refused, so that a source that can fetch a new one does so when it
    /// is next asked.
    fn refused(&self);

    /// Where the key comes from, such as `the variable OPENAI_API_KEY`.
    fn describe(&self) -> String;
}

/// A value that must not be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value. White space around it, such as the newline of a file, is not part of it.
    pub fn new(value: &str) -> Secret {
        Secret(value.trim().to_owned())
    }

    /// The value itself, to be put into a header and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// No key at all, for servers that need none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoKey;

impl Key for NoKey {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        ready(Ok(None)).boxed()
    }

    fn refused(&self) {}

    fn describe(&self) -> String {
        "no key".to_owned()
    }
}

/// A key that is known from the start and never changes.
#[derive(Clone, Debug)]
pub struct FixedKey {
    secret: Secret,
    source: String,
}

impl FixedKey {
    /// A key and the words for where it came from.
    pub fn new(secret: Secret, source: impl Into<String>) -> FixedKey {
        FixedKey { secret, source: source.into() }
    }
}

impl Key for FixedKey {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        ready(Ok(Some(self.secret.clone()))).boxed()
    }

    fn refused(&self) {}

    fn describe(&self) -> String {
        self.source.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing_of_itself() {
        let key = FixedKey::new(Secret::new("sk-hidden\n"), "the variable KEY");
        assert!(!format!("{key:?}").contains("hidden"));
        assert_eq!(key.secret.expose(), "sk-hidden");
    }
}
