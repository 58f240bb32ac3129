//! How long a provider asks us to wait.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// No provider is believed for longer than this.
const LONGEST: f64 = 24.0 * 3600.0;

/// The wait that the headers name, if one can be made out. `now` is the wall time in milliseconds.
pub(super) fn requested_wait(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = |value: &reqwest::header::HeaderValue| value.to_str().ok().map(str::to_owned);
    let millis = headers.get("retry-after-ms").and_then(text).and_then(|ms| ms.trim().parse().ok());
    if let Some(wait) = millis.and_then(|millis: f64| seconds(millis / 1000.0)) {
        return Some(wait);
    }
    parse(&headers.get(RETRY_AFTER).and_then(text)?, now)
}

/// Reads seconds, whole or not, or a date as HTTP writes it. Anything else is as if nothing was said.
fn parse(value: &str, now: i64) -> Option<Duration> {
    let value = value.trim();
    if value.starts_with(|c: char| c.is_ascii_digit()) {
        return seconds(value.parse().ok()?);
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let millis = date.timestamp().as_millisecond().saturating_sub(now);
    // A date that has passed means at once.
    seconds(Duration::from_millis(u64::try_from(millis).unwrap_or(0)).as_secs_f64())
}

/// A wait of this many seconds, if that is a number one can wait for.
pub(super) fn seconds(seconds: f64) -> Option<Duration> {
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_fractions_and_dates_are_read_and_garbage_is_not() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = 784_111_777_000;
        for (value, expected) in [
            ("0", Some(0.0)),
            ("5", Some(5.0)),
            (" 7200 ", Some(7200.0)),
            ("1.5", Some(1.5)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10.0)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0.0)),
            ("Thu, 31 Dec 2099 23:59:59 GMT", Some(LONGEST)),
            ("99999999999999999999", Some(LONGEST)),
            ("soon", None),
            ("-1", None),
            ("NaN", None),
            ("inf", None),
            ("5 seconds", None),
            ("", None),
        ] {
            assert_eq!(parse(value, now).map(|wait| wait.as_secs_f64()), expected, "{value:?}");
        }
    }

    #[test]
    fn milliseconds_come_before_seconds() {
        let mut headers = HeaderMap::new();
        assert_eq!(requested_wait(&headers, 0), None);
        headers.insert(RETRY_AFTER, "5".parse().unwrap());
        headers.insert("retry-after-ms", "250".parse().unwrap());
        assert_eq!(requested_wait(&headers, 0), Some(Duration::from_millis(250)));
        headers.insert("retry-after-ms", "garbage".parse().unwrap());
        assert_eq!(requested_wait(&headers, 0), Some(Duration::from_secs(5)));
    }
}
