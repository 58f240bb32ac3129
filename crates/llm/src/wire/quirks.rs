//! What a candidate turned out not to support, learned from its refusals.

/// A parameter that a request can do without, or that has another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    MaxOutput,
    Temperature,
    Effort,
    CacheKey,
    StreamOptions,
    /// The request for sealed reasoning.
    Include,
    /// The request for a readable summary of reasoning.
    Summary,
}

/// The names of parameters in providers' errors, longest first where one is part of another.
const NAMES: &[(&str, Parameter)] = &[
    ("max_completion_tokens", Parameter::MaxOutput),
    ("max_output_tokens", Parameter::MaxOutput),
    ("max_tokens", Parameter::MaxOutput),
    ("num_predict", Parameter::MaxOutput),
    ("temperature", Parameter::Temperature),
    ("reasoning_effort", Parameter::Effort),
    ("reasoning.summary", Parameter::Summary),
    ("reasoning.encrypted_content", Parameter::Include),
    ("encrypted content", Parameter::Include),
    ("reasoning.effort", Parameter::Effort),
    ("output_config", Parameter::Effort),
    ("budget_tokens", Parameter::Effort),
    ("thinking", Parameter::Effort),
    ("reasoning", Parameter::Effort),
    ("prompt_cache_key", Parameter::CacheKey),
    ("stream_options", Parameter::StreamOptions),
    ("include", Parameter::Include),
];

impl Parameter {
    /// The parameter with exactly this name.
    pub(crate) fn named(name: &str) -> Option<Parameter> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, parameter)| *parameter)
    }

    /// The first parameter that a sentence in small letters names.
    pub(crate) fn within(sentence: &str) -> Option<Parameter> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let whole = |name: &str| {
            sentence.match_indices(name).find(|(at, _)| {
                !sentence[..*at].ends_with(word) && !sentence[at + name.len()..].starts_with(word)
            })
        };
        let found = NAMES.iter().filter_map(|(name, parameter)| Some((whole(name)?.0, *parameter)));
        found.min_by_key(|(at, _)| *at).map(|(_, parameter)| parameter)
    }
}

/// Which form of a parameter is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The usual one.
    #[default]
    First,
    /// The other name or shape.
    Second,
    /// None.
    Omitted,
}

/// How requests to one candidate differ from the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quirks {
    pub(crate) max_output: Form,
    /// The most output that the model said it can write.
    pub(crate) output_cap: Option<u32>,
    pub(crate) temperature: Form,
    pub(crate) effort: Form,
    pub(crate) cache_key: Form,
    pub(crate) stream_options: Form,
    pub(crate) include: Form,
    pub(crate) summary: Form,
}

/// How a parameter is given up in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retreat {
    /// Try the other form, then leave it out.
    OtherForm,
    /// Leave it out.
    Omit,
    /// It is required; only a smaller value can help.
    Lower,
}

impl Quirks {
    /// Learns that a parameter was refused. Says what the next request does differently, or `None`
    /// when nothing is left to change.
    pub(crate) fn learn(
        &mut self,
        parameter: Parameter,
        retreat: Retreat,
        said: &str,
        sent: Option<u32>,
    ) -> Option<String> {
        if parameter == Parameter::MaxOutput
            && let Some(cap) = lower(said, sent)
        {
            self.output_cap = Some(cap);
            return Some(format!("with at most {cap} tokens of output"));
        }
        let (form, name) = match parameter {
            Parameter::MaxOutput => (&mut self.max_output, "max_tokens"),
            Parameter::Temperature => (&mut self.temperature, "temperature"),
            Parameter::Effort => (&mut self.effort, "the reasoning effort"),
            Parameter::CacheKey => (&mut self.cache_key, "prompt_cache_key"),
            Parameter::StreamOptions => (&mut self.stream_options, "stream_options"),
            Parameter::Include => (&mut self.include, "sealed reasoning"),
            Parameter::Summary => (&mut self.summary, "the summary of reasoning"),
        };
        let next = match (retreat, *form) {
            (Retreat::Lower, _) | (_, Form::Omitted) => return None,
            (Retreat::OtherForm, Form::First) => Form::Second,
            (Retreat::OtherForm, Form::Second) | (Retreat::Omit, _) => Form::Omitted,
        };
        *form = next;
        Some(match next {
            Form::First | Form::Second => format!("with another form of {name}"),
            Form::Omitted => format!("without {name}"),
        })
    }
}

/// The limit that an error such as `max_tokens: 64000 > 8192, which is the maximum` names.
fn lower(said: &str, sent: Option<u32>) -> Option<u32> {
    let sent = sent?;
    let numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let numbers: Vec<u32> = numbers.collect();
    // Only a sentence that repeats what was sent speaks of its size.
    if !numbers.contains(&sent) {
        return None;
    }
    numbers.into_iter().filter(|number| (256..sent).contains(number)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_parameter_changes_its_form_and_then_goes() {
        let mut quirks = Quirks::default();
        let mut learn = |retreat| quirks.learn(Parameter::MaxOutput, retreat, "no", Some(100));
        assert_eq!(learn(Retreat::OtherForm).unwrap(), "with another form of max_tokens");
        assert_eq!(learn(Retreat::OtherForm).unwrap(), "without max_tokens");
        assert_eq!(learn(Retreat::OtherForm), None);
        assert_eq!(quirks.max_output, Form::Omitted);
    }

    #[test]
    fn a_limit_that_is_named_is_kept() {
        let mut quirks = Quirks::default();
        let said = "max_tokens: 64000 > 8192, which is the maximum allowed for claude-3-5";
        let note = quirks.learn(Parameter::MaxOutput, Retreat::Lower, said, Some(64_000));
        assert_eq!(note.unwrap(), "with at most 8192 tokens of output");
        assert_eq!(quirks.output_cap, Some(8192));
        assert_eq!(quirks.learn(Parameter::MaxOutput, Retreat::Lower, "no", Some(8192)), None);
    }

    #[test]
    fn a_parameter_is_found_only_as_a_whole_word() {
        assert_eq!(Parameter::within("`temperature` is deprecated"), Some(Parameter::Temperature));
        assert_eq!(Parameter::within("use 'max_completion_tokens'"), Some(Parameter::MaxOutput));
        assert_eq!(Parameter::within("temperatures vary; includes"), None);
        assert_eq!(Parameter::named("max_tokens"), Some(Parameter::MaxOutput));
    }
}
