//! Variables in the environment of every job that name whose it is.

/// Names the keeper, so that leftovers of a keeper that was killed together with its guard can be
/// found.
pub(crate) const KEEPER_MARK: &str = "MAINSTAY_KEEPER";
/// Names the job.
pub(crate) const JOB_MARK: &str = "MAINSTAY_JOB";
