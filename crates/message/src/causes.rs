//! An error and what caused it, in one line.

use std::error::Error;

/// The causes of an error, outermost first, joined with colons. The error's own text is left out where
/// there are causes: an HTTP client's only repeats the address. A cause that one above it already
/// says is left out too.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in chain(error).skip(1) {
        let text = cause.to_string();
        if !texts.iter().any(|before| before.contains(&text)) {
            texts.push(text);
        }
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

/// The error that caused all others; the error itself if nothing caused it.
pub fn first_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let (first, rest) = texts.split_first().unwrap();
        Layer(first, (!rest.is_empty()).then(|| Box::new(layers(rest))))
    }

    #[test]
    fn causes_are_joined_and_said_once() {
        let error = layers(&["GET http://a/", "client error: refused", "refused", "os error 111"]);
        assert_eq!(causes(&error), "client error: refused: os error 111");
        assert_eq!(first_cause(&error).to_string(), "os error 111");
    }

    #[test]
    fn an_error_without_causes_speaks_for_itself() {
        let error = layers(&["alone"]);
        assert_eq!(causes(&error), "alone");
        assert_eq!(first_cause(&error).to_string(), "alone");
    }
}
