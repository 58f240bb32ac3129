//! A model at a provider.

use std::fmt;
use std::sync::Arc;

use crate::{Prices, Provider};

/// One model of a chain: the first is the primary, the others are its fallbacks.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Who serves it.
    pub provider: Arc<Provider>,
    /// Its name, as the provider knows it.
    pub model: String,
    /// What it costs; [`Prices::of`] is used where this is `None`.
    pub prices: Option<Prices>,
    /// How many tokens it can read and write together, where that is known.
    pub window: Option<u64>,
    /// How many tokens it may write at most, where the caller does not say.
    pub max_output: Option<u32>,
}

impl Candidate {
    /// A model of which no more is known than its name.
    pub fn new(provider: Provider, model: &str) -> Self {
        let provider = Arc::new(provider);
        let model = model.to_owned();
        Self { provider, model, prices: None, window: None, max_output: None }
    }

    /// What health and quirks are kept under: the credential and the model.
    pub(crate) fn identity(&self) -> String {
        let Provider { name, base_url, key, .. } = &*self.provider;
        format!("{name}\n{base_url}\n{}\n{}", key.describe(), self.model)
    }

    /// Its prices: those given, or the built-in ones. What runs on this machine costs nothing we know.
    pub fn price_list(&self) -> Option<Prices> {
        let built_in = || if self.provider.is_loopback() { None } else { Prices::of(&self.model) };
        self.prices.or_else(built_in)
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider.name, self.model)
    }
}
