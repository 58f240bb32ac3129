//! The secrets that this program knows: the one redactor of all that it records, sends and prints.

use std::sync::OnceLock;

use mainstay_message::Redactor;
use mainstay_message::redactor::{Origin, names_a_secret};

use crate::config::Config;
use crate::context::Context;
use crate::env;
use crate::error::Error;

static SHARED: OnceLock<Redactor> = OnceLock::new();

/// The redactor, which knows the secrets of the environment. What the configuration names is added
/// when it is read.
pub(crate) fn shared() -> &'static Redactor {
    SHARED.get_or_init(|| {
        let redactor = Redactor::default();
        let (mut named, mut passwords) = (Vec::new(), Vec::new());
        for (name, value) in env::all() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            if let Some(password) = password_in(value) {
                passwords.push((format!("password in {name}"), password.to_owned()));
            }
            if names_a_secret(name) {
                named.push((name.to_owned(), value.to_owned()));
            }
        }
        redactor.add_all(passwords, Origin::Configured);
        redactor.add_all(named, Origin::Named);
        redactor
    })
}

/// Words that a person typed into a command and that are kept, without the secrets that the
/// configuration names. One that cannot be read names none.
pub(crate) fn typed(text: &str, context: &Context) -> Result<String, Error> {
    // What is wrong with it is said by commands that need it.
    let _ = Config::load(&context.paths()?, None, context.output.quiet());
    Ok(shared().text(text).into_owned())
}

/// Makes a key known that the configuration names.
pub(crate) fn add(name: &str, value: &str) {
    shared().add(name, value, Origin::Configured);
}

/// Makes the values of headers known that carry a key.
pub(crate) fn add_header(provider: &str, name: &str, value: &str) {
    if names_a_secret(name) || name.eq_ignore_ascii_case("authorization") {
        // "Bearer" and the like are words.
        let key = value.rsplit(' ').next().unwrap_or_default();
        add(&format!("{name} of {provider}"), key);
    }
}

/// The password in an address.
pub(crate) fn password_in(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_in_addresses() {
        let cases = [
            ("postgres://me:s3cretPass@host:5432/db", Some("s3cretPass")),
            ("https://me@host/x:y@z", None),
            ("https://host/", None),
            ("me:pass@host", None),
        ];
        for (address, password) in cases {
            assert_eq!(password_in(address), password, "{address}");
        }
    }
}
