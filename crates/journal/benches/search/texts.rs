//! What people, models and tools might have said: words by Zipf's law, code, paths, some Chinese and
//! Japanese.

use mainstay_journal::entry::Body;
use mainstay_message::{AssistantPart, Call, CallResult, Content};

/// Different words. The tenth most frequent one is in about every second entry.
const VOCABULARY: usize = 60_000;
const SYLLABLES: [&str; 32] = [
    "ka", "re", "ti", "on", "sa", "mo", "le", "der", "in", "pro", "ver", "sta", "con", "fi", "gra",
    "lu", "ent", "per", "ma", "to", "ri", "es", "bo", "cu", "ni", "par", "sel", "ol", "va", "du",
    "ex", "ham",
];
const HAN: &str = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采转更单风切打白教速花带安场身车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石记需段研界拉林律叫且究观越织装";

/// Makes texts, the same ones every time.
pub(crate) struct Texts {
    random: u64,
    words: Vec<String>,
    /// The share of the words up to each.
    shares: Vec<f64>,
    han: Vec<char>,
    /// Some names that were used.
    names: Vec<String>,
}

impl Texts {
    pub(crate) fn new() -> Self {
        let mut texts = Self {
            random: 0x9e37_79b9_7f4a_7c15,
            words: Vec::new(),
            shares: Vec::new(),
            han: HAN.chars().collect(),
            names: Vec::new(),
        };
        let mut sum = 0.0;
        for rank in 0..VOCABULARY {
            let mut word = String::new();
            let mut rest = rank + 7;
            while rest > 0 {
                word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
                rest /= SYLLABLES.len();
            }
            texts.words.push(word);
            sum += 1.0 / (rank + 3) as f64;
            texts.shares.push(sum);
        }
        texts
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % bound
    }

    /// The word of a rank, the most frequent one first.
    pub(crate) fn word(&self, rank: usize) -> &str {
        &self.words[rank]
    }

    fn any_word(&mut self) -> String {
        let total = self.shares[VOCABULARY - 1];
        let place = self.below(1 << 30) as f64 / f64::from(1 << 30) * total;
        let rank = self.shares.partition_point(|share| *share < place);
        self.words[rank.min(VOCABULARY - 1)].clone()
    }

    fn prose(&mut self, words: usize) -> String {
        let mut text = String::new();
        for number in 0..words {
            if number > 0 {
                text.push_str(if number % 13 == 0 { ". " } else { " " });
            }
            text.push_str(&self.any_word());
        }
        text
    }

    pub(crate) fn han(&mut self, length: usize) -> String {
        // Frequent characters are early in the list.
        (0..length)
            .map(|_| {
                let bound = 1 + self.below(self.han.len());
                let index = self.below(bound);
                self.han[index]
            })
            .collect()
    }

    /// A name that stands in some entry.
    pub(crate) fn used_name(&mut self) -> String {
        let index = self.below(self.names.len());
        self.names[index].clone()
    }

    fn name(&mut self) -> String {
        let name = self.new_name();
        if self.below(10_000) == 0 || self.names.len() < 20 {
            self.names.push(name.clone());
        }
        name
    }

    fn new_name(&mut self) -> String {
        let (one, other) = (self.any_word(), self.any_word());
        match self.below(4) {
            0 => format!("{one}_{other}"),
            1 => format!("{one}::{other}_{}", self.below(100)),
            2 => format!("src/{one}/{other}.rs"),
            _ => {
                let mut other = other;
                other[..1].make_ascii_uppercase();
                format!("{one}{other}")
            }
        }
    }

    fn code(&mut self, lines: usize) -> String {
        let mut text = String::new();
        for line in 0..lines {
            let (name, call, word) = (self.name(), self.name(), self.any_word());
            text.push_str(&format!(
                "{line}: let {word} = {name}({call}); // {}\n",
                self.any_word()
            ));
        }
        text
    }

    /// An entry as sessions have them: the user's words, the model's with a call, what came of it.
    pub(crate) fn body(&mut self, number: usize) -> Body {
        let chinese = number % 20 < 2;
        match number % 10 {
            0 => {
                let words = 8 + self.below(24);
                let text = if chinese { self.han(20) } else { self.prose(words) };
                Body::User { content: vec![Content::Text(text)] }
            }
            1 | 3 | 5 | 7 => {
                let words = 4 + self.below(30);
                let name = self.name();
                let call = Call {
                    id: format!("call_{number}"),
                    name: "shell".to_owned(),
                    arguments: serde_json::json!({ "command": format!("grep -rn {name}") })
                        .to_string(),
                    extra: None,
                };
                let parts = vec![AssistantPart::Text(self.prose(words)), AssistantPart::Call(call)];
                Body::Assistant { parts, model: "local/model".to_owned() }
            }
            9 => {
                let words = 20 + self.below(60);
                let mut text = self.prose(words);
                if chinese {
                    text.push_str(&self.han(40));
                }
                let parts = vec![AssistantPart::Text(text)];
                Body::Assistant { parts, model: "local/model".to_owned() }
            }
            _ => {
                let lines = if number % 500 == 2 { 60 } else { 1 + self.below(5) };
                let result = CallResult {
                    call: format!("call_{}", number - 1),
                    name: "shell".to_owned(),
                    content: vec![Content::Text(self.code(lines))],
                    failed: false,
                };
                Body::Result { result, facts: Vec::new(), fingerprint: String::new(), whole: None }
            }
        }
    }
}
