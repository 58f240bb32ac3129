//! What a compaction would cover, and what it would save: decided from the entries alone.

use mainstay_journal::compaction::{Compaction, Standing};
use mainstay_journal::entry::Entry;
use mainstay_journal::ledger::Ledger;
use mainstay_journal::{cut, preview, shown_through, transcript};

use super::limits::{WindowMarks, share_of};
use super::material;
use crate::turn::request_size::body_bytes;
use crate::{ledger, session::context};

/// The share of what is due that the recent tail keeps beside shortened words.
const SHORTENED_TAIL: f64 = 0.4;
/// The share of what is due that is aimed at; each further one in a row aims lower.
const AIMS: [f64; 2] = [0.5, 0.25];
/// The tokens of a summary: a share of what is due, within bounds.
const SUMMARY: f64 = 0.1;
const SHORTEST: i64 = 300;
const LONGEST: i64 = 4_000;
/// The share of what is due that a ledger may take, and the bytes that it may take in any case.
const LEDGER: f64 = 0.12;
const LEAST_LEDGER: usize = 1_500;

/// The entries of a session.
pub(super) struct CompactionSource {
    entries: Vec<Entry>,
    /// What the harness remembers of them.
    ledger: Ledger,
    /// The number of a further compaction.
    number: i64,
}

/// What sizes are measured by.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenScale {
    /// The bytes of the prompt and the tools.
    pub(super) fixed: usize,
    pub(super) bytes_a_token: f64,
}

/// What there is to do.
#[derive(Debug)]
pub(super) enum Draft {
    /// The cheap steps are enough.
    Ready(Box<Compaction>),
    /// A summary has to be written.
    NeedsSummary(MissingSummary),
    /// There is nothing that could be left out.
    Nothing,
}

/// A compaction that lacks its summary.
#[derive(Clone, Debug)]
pub(super) struct MissingSummary {
    pub(super) number: i64,
    pub(super) through: i64,
    /// What a model is shown of the entries that are replaced.
    pub(super) material: String,
    /// The most tokens of the summary.
    pub(super) most: i64,
    /// The most bytes of the ledger.
    room: usize,
    /// What the cheap steps alone would do. It is `None` if that saves too little.
    pub(super) instead: Option<Box<Compaction>>,
}

/// What is wished for.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompactionAim {
    pub(super) marks: WindowMarks,
    /// How many were made in a row before, without much use.
    pub(super) again: usize,
    /// Whether shortening alone will do if it saves enough.
    pub(super) cheap: bool,
    /// The most tokens of what a model is shown.
    pub(super) shown: i64,
}

impl TokenScale {
    pub(super) fn tokens(&self, bytes: usize) -> i64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "an estimate"
        )]
        let tokens = (bytes as f64 / self.bytes_a_token) as i64;
        tokens
    }

    fn bytes(&self, tokens: i64) -> usize {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        let bytes = (tokens.max(0) as f64 * self.bytes_a_token) as usize;
        bytes
    }
}

/// Whether a size is at least a fifth below another one.
pub(super) fn falls_enough(before: i64, after: i64) -> bool {
    after.saturating_mul(5) <= before.saturating_mul(4)
}

impl CompactionSource {
    pub(super) fn new(entries: Vec<Entry>, ledger: Ledger, number: i64) -> Self {
        Self { entries, ledger, number }
    }

    /// Takes in an entry that was written since.
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tokens of the next request as it is.
    pub(super) fn size(&self, scale: &TokenScale) -> i64 {
        scale.tokens(scale.fixed + context::bytes(&transcript(&self.entries)))
    }

    /// The tokens of the next request with one more compaction.
    fn size_under(&self, compaction: &Compaction, scale: &TokenScale) -> i64 {
        scale.tokens(scale.fixed + context::bytes(&preview(&self.entries, compaction)))
    }

    /// Decides what there is to do.
    pub(super) fn draft(&self, scale: &TokenScale, aim: &CompactionAim) -> Draft {
        let before = self.size(scale);
        let cheap = if aim.cheap { self.shortened(scale, aim, before) } else { None };
        let cheap = match cheap {
            Some((after, cheap)) if falls_enough(aim.marks.due, after) => {
                return Draft::Ready(Box::new(cheap));
            }
            cheap => cheap,
        };
        match (self.wanted(scale, aim, before), cheap) {
            (Some((least, wanted)), Some((after, cheap))) if falls_enough(after, least) => {
                Draft::NeedsSummary(MissingSummary { instead: Some(Box::new(cheap)), ..wanted })
            }
            // What a summary saves beyond the cheap steps would not be worth its price.
            (_, Some((_, cheap))) => Draft::Ready(Box::new(cheap)),
            (Some((_, wanted)), None) => Draft::NeedsSummary(wanted),
            (None, None) => Draft::Nothing,
        }
    }

    /// A compaction by the cheap steps alone, where the next request falls by a fifth and fits, and
    /// the tokens of that.
    fn shortened(
        &self,
        scale: &TokenScale,
        aim: &CompactionAim,
        before: i64,
    ) -> Option<(i64, Compaction)> {
        let tail = scale.bytes(share_of(aim.marks.due, SHORTENED_TAIL));
        let trimmed = cut(&self.entries, tail, body_bytes)?.through;
        if trimmed <= Standing::of(&self.entries).trimmed {
            return None;
        }
        let mut keeps = mainstay_journal::keeps(&self.entries, trimmed);
        keeps.extend(ledger::steps_in_force(&self.entries).filter(|seq| *seq <= trimmed));
        let number = self.number;
        let compaction = Compaction { number, trimmed, keeps, ..Compaction::default() };
        let after = self.size_under(&compaction, scale);
        let enough = after < aim.marks.full && falls_enough(before, after);
        enough.then(|| (after, measured(compaction, before, after)))
    }

    /// What a summary would replace, where even the shortest would save enough, and the tokens of the
    /// next request with a usual one.
    fn wanted(
        &self,
        scale: &TokenScale,
        aim: &CompactionAim,
        before: i64,
    ) -> Option<(i64, MissingSummary)> {
        let due = aim.marks.due;
        let most = share_of(due, SUMMARY).clamp(SHORTEST, LONGEST);
        let goal = share_of(due, AIMS.get(aim.again).or(AIMS.last()).copied().unwrap_or(0.0));
        let tail = goal - scale.tokens(scale.fixed) - most - share_of(due, LEDGER) / 2;
        let least = if aim.again == 0 { share_of(due, SUMMARY) } else { 0 };
        let tail = scale.bytes(tail.max(least));
        let found = cut(&self.entries, tail, body_bytes)?;
        let room = scale.bytes(share_of(due, LEDGER)).max(LEAST_LEDGER);
        let empty = Compaction {
            number: self.number,
            through: found.through,
            keeps: found.keeps,
            summary: Some(String::new()),
            ledger: self.ledger.clone().within(room),
            ..Compaction::default()
        };
        let least = self.size_under(&empty, scale);
        if !falls_enough(before, least) {
            return None;
        }
        let material = self.material(found.through, scale.bytes(aim.shown));
        let number = self.number;
        let through = found.through;
        Some((
            least + most,
            MissingSummary { number, through, material, most, room, instead: None },
        ))
    }

    /// What a model is shown of the entries up to one: in clipped words where that fits, else in
    /// shortened ones.
    fn material(&self, through: i64, most: usize) -> String {
        let mut text = material::of(&shown_through(&self.entries, through));
        if text.len() > most {
            let place = self.entries.partition_point(|entry| entry.seq <= through);
            let before = self.entries.get(..place).unwrap_or_default();
            let shortened = Compaction { trimmed: through, ..Compaction::default() };
            text = material::of(&preview(before, &shortened));
        }
        material::within(text, most)
    }

    /// The compaction with its summary, and whether it saves enough to be applied. What was said
    /// meanwhile stays.
    pub(super) fn complete(
        &self,
        wanted: &MissingSummary,
        summary: String,
        focus: Option<String>,
        scale: &TokenScale,
    ) -> (Compaction, bool) {
        let before = self.size(scale);
        let compaction = Compaction {
            number: wanted.number,
            through: wanted.through,
            keeps: mainstay_journal::keeps(&self.entries, wanted.through),
            summary: Some(summary),
            ledger: self.ledger.clone().within(wanted.room),
            focus,
            ..Compaction::default()
        };
        let after = self.size_under(&compaction, scale);
        (measured(compaction, before, after), falls_enough(before, after))
    }
}

fn measured(compaction: Compaction, before: i64, after: i64) -> Compaction {
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
    Compaction { before: count(before), after: count(after), ..compaction }
}
