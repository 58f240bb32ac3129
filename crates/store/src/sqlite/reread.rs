//! Reads again before a store is called damaged.
//!
//! SQLite answers "malformed" for a page that is broken and for one that the disk failed to give just
//! now, and an integrity check lists either. So whoever finds damage looks once more, on connections
//! that were opened since: what is broken is still broken then. Readers and the writer do the same
//! for a transaction of theirs.

use crate::{Error, Result};

/// Runs `look`, which opens its own connections, and once more if it finds damage.
pub(super) fn reread<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    match look() {
        Err(error) if may_be_misread(&error) => {
            tracing::warn!(%error, "the store looks damaged; reading it again");
            look()
        }
        outcome => outcome,
    }
}

/// Lists what is wrong by `look`, which opens its own connections; what it finds is looked for again.
pub(super) fn reread_problems(
    mut look: impl FnMut() -> Result<Vec<String>>,
) -> Result<Vec<String>> {
    match reread(&mut look)? {
        none if none.is_empty() => Ok(none),
        problems => {
            tracing::warn!(?problems, "the store looks damaged; reading it again");
            look()
        }
    }
}

fn may_be_misread(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. } | Error::NotAStore { .. } | Error::Io(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_believed_at_the_second_look() {
        let damage = || Error::Damaged { place: "here".to_owned(), detail: "a page".to_owned() };
        let looks = |answers: Vec<Result<i32>>| {
            let mut answers = answers.into_iter();
            (reread(|| answers.next().unwrap()).map_err(|error| error.to_string()), answers.len())
        };
        assert_eq!(looks(vec![Ok(1), Ok(2)]), (Ok(1), 1));
        assert_eq!(looks(vec![Err(damage()), Ok(2)]), (Ok(2), 0));
        assert_eq!(looks(vec![Err(damage()), Err(damage())]), (Err(damage().to_string()), 0));
        let newer = || Error::Newer { component: "x".to_owned(), found: 2, supported: 1 };
        assert_eq!(looks(vec![Err(newer()), Ok(2)]), (Err(newer().to_string()), 1));
    }

    #[test]
    fn problems_are_those_of_the_second_look() {
        let looks = |answers: Vec<Vec<&str>>| {
            let mut answers = answers.into_iter();
            let mut look = || Ok(answers.next().unwrap().into_iter().map(str::to_owned).collect());
            reread_problems(&mut look).unwrap()
        };
        assert_eq!(looks(vec![vec![]]), Vec::<String>::new());
        assert_eq!(looks(vec![vec!["a", "b"], vec!["a"]]), ["a"]);
    }
}
