//! Addresses as a model writes them.

use url::Url;

/// The longest address.
const LONGEST: usize = 4_096;

/// Reads an address. Notations such as `0x7f.1` or `127.1` become the IP address they mean.
pub(super) fn read(text: &str) -> Result<Url, String> {
    if text.len() > LONGEST {
        return Err(format!("the address is longer than {LONGEST} bytes"));
    }
    let url = match Url::parse(text.trim()) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err("write the whole address, with http:// or https://".to_owned());
        }
        Err(error) => return Err(format!("this is not a valid address: {error}")),
    };
    check(url)
}

/// The address that a redirect leads to.
pub(super) fn join(from: &Url, location: &str) -> Result<Url, String> {
    if location.len() > LONGEST {
        return Err("it redirects to an address that is too long".to_owned());
    }
    let url = from
        .join(location)
        .map_err(|error| format!("it redirects to an invalid address: {error}"))?;
    check(url)
}

fn check(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("only http and https are fetched, not {:.20}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a user or a password is not fetched".to_owned());
    }
    if host(&url).is_empty() {
        return Err("the address has no host".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// The host, as it is compared: in lower case, without a dot at its end.
pub(super) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

/// The port.
pub(super) fn port(url: &Url) -> u16 {
    // Both schemes that pass the check have a usual one.
    url.port_or_known_default().unwrap_or(0)
}

/// The host as a person reads it, with the port where it is not the usual one.
pub(super) fn name(url: &Url) -> String {
    match url.port() {
        Some(port) => format!("{}:{port}", host(url)),
        None => host(url).to_owned(),
    }
}

/// Whether two hosts are one for whoever allowed the first.
pub(super) fn same(one: &Url, other: &Url) -> bool {
    fn bare(host: &str) -> &str {
        host.strip_prefix("www.").unwrap_or(host)
    }
    bare(host(one)) == bare(host(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_notations_of_an_address_mean_what_they_mean() {
        let loopback = [
            "http://127.1/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://127.0.0.1:80/",
            "HTTP://127.0.0.1",
            "http://１２７.0.0.1/",
            "http:\\\\127.0.0.1\\",
            "http://127%2e0.0.1/",
            " http://127.0.\n0.1/ ",
        ];
        for text in loopback {
            assert_eq!(read(text).map(|url| name(&url)), Ok("127.0.0.1".to_owned()), "{text}");
        }
        assert_eq!(name(&read("https://Example.ORG.:8443/a#b").unwrap()), "example.org:8443");
        assert_eq!(name(&read("http://[::FFFF:7f00:1]/").unwrap()), "[::ffff:7f00:1]");
    }

    #[test]
    fn what_is_no_plain_web_address_is_refused_with_the_reason() {
        let cases = [
            ("file:///etc/passwd", "not file"),
            ("ftp://example.org/", "not ftp"),
            ("javascript:alert(1)", "not javascript"),
            ("http://user@example.org/", "user or a password"),
            ("http://example.org:80@127.0.0.1/", "user or a password"),
            ("http://:secret@example.org/", "user or a password"),
            ("example.org", "write the whole address"),
            ("/etc/passwd", "write the whole address"),
            ("http://", "not a valid address"),
            ("http://./", "no host"),
            ("http://1.2.3.4.5/", "not a valid address"),
            ("http://[fe80::1%25eth0]/", "not a valid address"),
        ];
        for (text, expected) in cases {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
        assert!(read(&format!("http://x/{}", "a".repeat(5_000))).is_err());
    }

    #[test]
    fn a_redirect_is_read_like_an_address() {
        let from = read("https://example.org/a/b").unwrap();
        assert_eq!(join(&from, "../c#d").unwrap().as_str(), "https://example.org/c");
        assert!(join(&from, "file:///etc/passwd").is_err());
        assert!(join(&from, "//user@127.0.0.1/").is_err());
        assert!(same(&from, &join(&from, "http://www.example.org:81/").unwrap()));
        assert!(!same(&from, &join(&from, "https://example.org.evil.test/").unwrap()));
    }
}
