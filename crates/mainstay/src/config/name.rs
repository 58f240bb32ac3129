//! The name of a setting, as a person types it.

use toml::{Table, Value};

use super::shape::{self, File, KnownKeys};
use crate::error::Error;

/// A setting's place in the file: `budget.turn_usd`, `models."ollama/qwen3".window`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Vec<String>);

impl Name {
    /// Reads a name. That of a model needs no quotes, whatever dots and slashes it has.
    pub(crate) fn parse(typed: &str) -> Result<Self, Error> {
        let parts = parts(typed.trim());
        let parts = parts.filter(|parts| parts.iter().all(|part| !part.is_empty()));
        let name = Self(parts.ok_or_else(|| {
            Error::usage(format!("{typed:?} is not the name of a setting")).hint(SEE_ALL)
        })?);
        let unknown = File::unknown_keys(&name.holding(Value::Boolean(true)));
        match unknown.first() {
            None => Ok(name),
            Some(problem) => {
                let error = Error::usage(problem.clone());
                let last = name.0.last().map_or("", String::as_str);
                Err(match name.0.first().map(String::as_str) {
                    Some("providers") if last.contains("key") || last.contains("token") => error
                        .hint(format!("Store a key with `mainstay config key set {}`.", name.0[1])),
                    _ => error.hint(SEE_ALL),
                })
            }
        }
    }

    /// Whether its value is not to be shown.
    pub(crate) fn is_secret(&self) -> bool {
        let path = match self.0.first().map(String::as_str) {
            Some("profiles") => self.0.get(2..).unwrap_or_default(),
            _ => &self.0[..],
        };
        matches!(path, [first, _, third, _, ..] if first == "providers" && third == "headers")
    }

    /// A table with nothing in it but this.
    pub(crate) fn holding(&self, value: Value) -> Table {
        let mut value = value;
        for part in self.0.iter().skip(1).rev() {
            value = Value::Table(Table::from_iter([(part.clone(), value)]));
        }
        Table::from_iter([(self.0.first().cloned().unwrap_or_default(), value)])
    }
}

const SEE_ALL: &str = "List all settings with `mainstay config get`.";

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, part) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(".")?;
            }
            let bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
            if part.chars().all(bare) {
                f.write_str(part)?;
            } else {
                write!(f, "{}", Value::String(part.clone()))?;
            }
        }
        Ok(())
    }
}

fn parts(typed: &str) -> Option<Vec<String>> {
    if let Some(rest) = typed.strip_prefix("profiles.")
        && !rest.starts_with(['"', '\''])
        && let Some((name, rest)) = rest.split_once('.')
    {
        let mut whole = vec!["profiles".to_owned(), name.to_owned()];
        whole.extend(parts(rest)?);
        return Some(whole);
    }
    if let Some(rest) = typed.strip_prefix("models.")
        && !rest.starts_with(['"', '\''])
    {
        return Some(match rest.rsplit_once('.') {
            Some((model, key)) if is_key_of_models(key) => {
                vec!["models".to_owned(), model.to_owned(), key.to_owned()]
            }
            _ => vec!["models".to_owned(), rest.to_owned()],
        });
    }
    let keys = toml_edit::Key::parse(typed).ok()?;
    Some(keys.iter().map(|key| key.get().to_owned()).collect())
}

/// Whether what follows the last dot is a key and not the end of a model's name, such as that of
/// `ollama/qwen2.5`. A misspelt key is one too.
fn is_key_of_models(word: &str) -> bool {
    shape::model_keys().contains(&word)
        || word.len() > 3 && word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_type_them() {
        for (typed, shown) in [
            ("model", "model"),
            ("budget.turn_usd", "budget.turn_usd"),
            ("models.ollama/qwen2.5:7b.window", "models.\"ollama/qwen2.5:7b\".window"),
            ("models.\"a/b\".input", "models.\"a/b\".input"),
            ("models.ollama/qwen2.5", "models.\"ollama/qwen2.5\""),
            ("providers.local.base_url", "providers.local.base_url"),
            ("profiles.fast.models.a/b.window", "profiles.fast.models.\"a/b\".window"),
        ] {
            assert_eq!(Name::parse(typed).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_the_nearest() {
        for (typed, said) in [
            ("budgt.turn_usd", "unknown setting `budgt`; did you mean `budget`?"),
            ("budget.turn_us", "unknown setting `budget.turn_us`; did you mean `turn_usd`?"),
            ("models.a/b.windw", "unknown setting `models.a/b.windw`; did you mean `window`?"),
            ("profiles.p.modle", "profiles.p: unknown setting `modle`; did you mean `model`?"),
            ("zzzzzzzzz", "unknown setting `zzzzzzzzz`"),
            ("", "\"\" is not the name of a setting"),
            ("a..b", "\"a..b\" is not the name of a setting"),
        ] {
            assert_eq!(Name::parse(typed).unwrap_err().message, said);
        }
        let key = Name::parse("providers.openai.api_key").unwrap_err();
        assert!(key.hints[0].contains("mainstay config key set openai"), "{key:?}");
    }
}
