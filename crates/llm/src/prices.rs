//! What tokens cost.

use mainstay_message::Usage;
use serde::{Deserialize, Serialize};

/// Prices for a million tokens, in micro-USD (a millionth of a dollar).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Input read anew.
    pub input: u64,
    /// Input from the provider's cache.
    pub cached: u64,
    /// Input written to the provider's cache.
    pub cache_written: u64,
    /// Output, reasoning included.
    pub output: u64,
}

impl Prices {
    /// What this usage costs in micro-USD, rounded up.
    pub fn cost(&self, usage: &Usage) -> i64 {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let total = of(usage.input, self.input)
            + of(usage.cached, self.cached)
            + of(usage.cache_written, self.cache_written)
            + of(usage.output, self.output);
        i64::try_from(total.div_ceil(1_000_000)).unwrap_or(i64::MAX)
    }

    /// The built-in prices of a well-known model. A maker's prefix (`openai/gpt-5`) is not looked at.
    ///
    /// Prices change; the configuration overrides these.
    pub fn of(model: &str) -> Option<Prices> {
        let name = model.rsplit('/').next().unwrap_or(model);
        let row =
            TABLE.iter().filter(|row| name.starts_with(row.0)).max_by_key(|row| row.0.len())?;
        let &(_, input, cached, cache_written, output) = row;
        Some(Prices { input, cached, cache_written, output })
    }
}

/// Prefix, input, cached, written to the cache, output: micro-USD a million tokens.
const TABLE: &[(&str, u64, u64, u64, u64)] = &[
    ("gpt-5", 1_250_000, 125_000, 1_250_000, 10_000_000),
    ("gpt-5-mini", 250_000, 25_000, 250_000, 2_000_000),
    ("gpt-5-nano", 50_000, 5_000, 50_000, 400_000),
    ("gpt-5-pro", 15_000_000, 15_000_000, 15_000_000, 120_000_000),
    ("gpt-4.1", 2_000_000, 500_000, 2_000_000, 8_000_000),
    ("gpt-4.1-mini", 400_000, 100_000, 400_000, 1_600_000),
    ("gpt-4.1-nano", 100_000, 25_000, 100_000, 400_000),
    ("gpt-4o", 2_500_000, 1_250_000, 2_500_000, 10_000_000),
    ("gpt-4o-mini", 150_000, 75_000, 150_000, 600_000),
    ("o3", 2_000_000, 500_000, 2_000_000, 8_000_000),
    ("o3-pro", 20_000_000, 20_000_000, 20_000_000, 80_000_000),
    ("o3-mini", 1_100_000, 550_000, 1_100_000, 4_400_000),
    ("o4-mini", 1_100_000, 275_000, 1_100_000, 4_400_000),
    ("claude-opus-4", 5_000_000, 500_000, 6_250_000, 25_000_000),
    ("claude-opus-4-0", 15_000_000, 1_500_000, 18_750_000, 75_000_000),
    ("claude-opus-4-1", 15_000_000, 1_500_000, 18_750_000, 75_000_000),
    ("claude-opus-4-2025", 15_000_000, 1_500_000, 18_750_000, 75_000_000),
    ("claude-sonnet-4", 3_000_000, 300_000, 3_750_000, 15_000_000),
    ("claude-haiku-4", 1_000_000, 100_000, 1_250_000, 5_000_000),
    ("claude-3-7-sonnet", 3_000_000, 300_000, 3_750_000, 15_000_000),
    ("claude-3-5-sonnet", 3_000_000, 300_000, 3_750_000, 15_000_000),
    ("claude-3-5-haiku", 800_000, 80_000, 1_000_000, 4_000_000),
    ("gemini-2.5-pro", 1_250_000, 125_000, 1_250_000, 10_000_000),
    ("gemini-2.5-flash", 300_000, 30_000, 300_000, 2_500_000),
    ("gemini-2.5-flash-lite", 100_000, 10_000, 100_000, 400_000),
    ("gemini-3-pro", 2_000_000, 200_000, 2_000_000, 12_000_000),
    ("deepseek-chat", 280_000, 28_000, 280_000, 420_000),
    ("deepseek-reasoner", 280_000, 28_000, 280_000, 420_000),
    ("mistral-large", 2_000_000, 2_000_000, 2_000_000, 6_000_000),
    ("mistral-medium", 400_000, 400_000, 400_000, 2_000_000),
    ("mistral-small", 100_000, 100_000, 100_000, 300_000),
    ("codestral", 300_000, 300_000, 300_000, 900_000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_adds_all_kinds_of_tokens_and_rounds_up() {
        let prices =
            Prices { input: 1_000_000, cached: 100_000, cache_written: 2_000_000, output: 3 };
        let usage = Usage { input: 10, cached: 20, cache_written: 30, output: 1, reasoning: 1 };
        assert_eq!(prices.cost(&usage), 10 + 2 + 60 + 1);
        assert_eq!(prices.cost(&Usage::default()), 0);
    }

    #[test]
    fn the_longest_prefix_names_the_model() {
        let input = |model| Prices::of(model).map(|prices| prices.input);
        assert_eq!(input("gpt-5-mini-2025-08-07"), Some(250_000));
        assert_eq!(input("gpt-5-2025-08-07"), Some(1_250_000));
        assert_eq!(input("anthropic/claude-sonnet-4.5"), Some(3_000_000));
        assert_eq!(input("claude-opus-4-5"), Some(5_000_000));
        assert_eq!(input("llama-3"), None);
    }
}
