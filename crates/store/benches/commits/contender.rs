//! What is compared, and how often.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

/// How long one contender runs in one round.
pub(crate) const TURN: Duration = Duration::from_millis(800);

pub(crate) struct Contender {
    pub(crate) name: &'static str,
    run: Box<dyn Fn(&Place) -> Sample>,
}

/// What one turn gave.
#[derive(Default)]
pub(crate) struct Sample {
    /// The time of each operation, in milliseconds.
    pub(crate) times: Vec<f64>,
    /// How many of them ended within the turn. The others count as waits, not as work.
    pub(crate) done: usize,
}

impl Sample {
    /// What several did side by side.
    pub(crate) fn sum(samples: impl Iterator<Item = Sample>) -> Self {
        samples.fold(Self::default(), |mut sum, sample| {
            sum.done += sample.done;
            sum.times.extend(sample.times);
            sum
        })
    }
}

/// Medians over the rounds; the worst is the worst of all.
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) median: f64,
    pub(crate) slow: f64,
    pub(crate) worst: f64,
    rates: Vec<f64>,
}

/// A directory on the disk that is measured: the one the build is on, not a memory disk.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let target = std::env::current_exe().unwrap();
        Self { directory: TempDir::new_in(target.parent().unwrap()).unwrap() }
    }

    /// A fresh path.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}-{}", mainstay_store::Id::new()))
    }

    pub(crate) fn description(&self) -> String {
        let system = mainstay_store::FileSystem::of(self.directory.path()).unwrap();
        format!("{} with {} cores", system.kind, std::thread::available_parallelism().unwrap())
    }
}

impl Contender {
    pub(crate) fn new(name: &'static str, run: impl Fn(&Place) -> Sample + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

pub(crate) fn run(contenders: &[Contender], place: &Place, rounds: usize) -> Vec<Figures> {
    let mut samples: Vec<Vec<Sample>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        eprint!("\rround {round} of {rounds} ");
        for (contender, samples) in contenders.iter().zip(&mut samples) {
            samples.push((contender.run)(place));
        }
    }
    eprintln!();
    samples.iter().map(|samples| figures(samples)).collect()
}

/// The median of the ratios of the rounds: what disturbs a round disturbs both alike.
pub(crate) fn ratio(one: &Figures, other: &Figures) -> f64 {
    let ratios: Vec<f64> =
        one.rates.iter().zip(&other.rates).map(|(one, other)| one / other).collect();
    median(&ratios)
}

fn figures(samples: &[Sample]) -> Figures {
    let of = |figure: fn(&Sample) -> f64| median(&samples.iter().map(figure).collect::<Vec<_>>());
    Figures {
        rate: of(rate),
        median: of(|sample| quantile(&sample.times, 0.5)),
        slow: of(|sample| quantile(&sample.times, 0.99)),
        worst: samples.iter().flat_map(|sample| &sample.times).copied().fold(0.0, f64::max),
        rates: samples.iter().map(rate).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn rate(sample: &Sample) -> f64 {
    sample.done as f64 / TURN.as_secs_f64()
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a list of times"
)]
fn quantile(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(((times.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0.0)
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
