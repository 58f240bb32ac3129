//! The wall clock tells a time that can be.

use mainstay_store::Info;

use super::finding::Finding;
use crate::wording;

/// This program did not exist before 2025.
const EARLIEST: i64 = 1_735_689_600_000;
/// Times in the store may be this far ahead before somebody should look.
const AHEAD: i64 = 60_000;
/// How far this clock and the server's may be apart.
const APART: i64 = 5_000;

/// Compares the clock with the store's newest time and with the server's clock.
pub(super) fn sanity(now: i64, info: Option<&Info>) -> Finding {
    let clock = wording::time(now);
    if now < EARLIEST {
        return Finding::problem("clock", format!("it says {clock}, which is impossible"), "date");
    }
    let newest = info.and_then(|info| info.newest_at.max(Some(info.created_at)));
    if let Some(newest) = newest.filter(|newest| newest - now > AHEAD) {
        return Finding::problem(
            "clock",
            format!("it says {clock}, but the store was written at {}", wording::time(newest)),
            "date",
        );
    }
    let server = info.and_then(|info| info.server_time);
    if let Some(server) = server.filter(|server| server.abs_diff(now) > APART.unsigned_abs()) {
        return Finding::warning(
            "clock",
            format!("it says {clock}, {} s off the server's clock", server.abs_diff(now) / 1000),
            "date",
        );
    }
    Finding::ok("clock", format!("it says {clock}"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::super::opened::tests::info;
    use super::*;

    const NOW: i64 = EARLIEST + 1_000_000;

    #[test]
    fn a_clock_that_is_wrong_is_found() {
        let with = |newest_at, server_time| Info { newest_at, server_time, ..info() };
        let judge = |now, info: &Info| sanity(now, Some(info)).status;
        assert_eq!(judge(NOW, &with(None, None)), Status::Ok);
        assert_eq!(sanity(0, None).status, Status::Problem);
        assert_eq!(judge(NOW, &with(Some(NOW + AHEAD), None)), Status::Ok);
        assert_eq!(judge(NOW, &with(Some(NOW + AHEAD + 1), None)), Status::Problem);
        assert_eq!(judge(NOW, &with(None, Some(NOW - APART))), Status::Ok);
        assert_eq!(judge(NOW, &with(None, Some(NOW - APART - 1))), Status::Warning);
        assert_eq!(judge(NOW, &Info { created_at: NOW + AHEAD + 1, ..info() }), Status::Problem);
    }
}
