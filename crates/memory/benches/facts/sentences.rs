//! Facts and questions that look like real ones: few words are common, most are rare.

use mainstay_memory::facts::NewFact;

const WORDS: f64 = 30_000.0;
const NAMES: u64 = 2_000;
const CATEGORIES: u64 = 8;

/// Numbers that look random and are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A word: the n-th is about as frequent as one over n.
    fn word(&mut self) -> String {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        word(WORDS.powf(share) as u64)
    }
}

pub(crate) fn word(rank: u64) -> String {
    format!("w{rank}x")
}

pub(crate) fn name(number: u64) -> String {
    format!("Person Number{number}")
}

/// The fact with this number.
pub(crate) fn fact(number: usize) -> NewFact {
    let mut random = Random::new(number as u64);
    let (one, other) = (random.below(NAMES), random.below(NAMES));
    let words: Vec<String> = (0..9).map(|_| random.word()).collect();
    let second =
        if number.is_multiple_of(3) { format!(" with {}", name(other)) } else { String::new() };
    NewFact {
        content: format!("{} said {}{second}.", name(one), words.join(" ")),
        category: format!("category {}", random.below(CATEGORIES)),
        tags: vec![format!("tag{}", random.below(50))],
        entities: None,
        source: "session 01".to_owned(),
        key: None,
    }
}

/// A question with some of a fact's words, common and rare ones, in another order.
pub(crate) fn question(fact: &NewFact, random: &mut Random) -> String {
    let words: Vec<&str> = fact.content.split_whitespace().collect();
    let start = random.below(3) as usize;
    let mut some: Vec<&str> = words[3..].iter().copied().skip(start).step_by(2).take(4).collect();
    some.reverse();
    format!("what was it about {} {}?", some.join(" and "), words[..2].join(" "))
}

/// The names of a fact that has two.
pub(crate) fn names(fact: &NewFact) -> Option<[String; 2]> {
    let (before, after) = fact.content.split_once(" with ")?;
    let first: Vec<&str> = before.split_whitespace().take(2).collect();
    Some([first.join(" "), after.trim_end_matches('.').to_owned()])
}
