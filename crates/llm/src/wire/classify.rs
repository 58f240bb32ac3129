//! The one place that maps a provider's error to a fault.
//!
//! Typed codes come first. Words are consulted only where a provider is known to hide one fault behind
//! the status of another, and only in phrases that cannot mean anything else: a benched provider is
//! worse than an honest "bad request".

use super::{Parameter, Said};
use crate::Fault;

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) fault: Fault,
    /// The parameter that was refused, with [`Fault::Unsupported`].
    pub(crate) parameter: Option<Parameter>,
}

/// Maps a status and what was said with it. `None` is an error inside a stream that names no status.
pub(crate) fn classify(status: Option<u16>, said: &Said) -> Verdict {
    let status = status.or(said.status);
    let words = said.words.to_ascii_lowercase();
    // Groq's 413 has the code of a rate limit, but no wait makes the request smaller.
    let too_large = (status == Some(413)).then_some(Fault::TooLong);
    let fault = too_large
        .or_else(|| by_code(&said.codes))
        .or_else(|| by_words(status, &words))
        .unwrap_or_else(|| by_status(status, &said.codes));
    // A refused parameter looks like a bad request, and only then are its words worth reading.
    if fault == Fault::BadRequest
        && let Some(parameter) = unsupported(said, &words)
    {
        return Verdict { fault: Fault::Unsupported, parameter: Some(parameter) };
    }
    Verdict { fault, parameter: None }
}

fn by_code(codes: &[String]) -> Option<Fault> {
    // The more telling of two codes wins: OpenAI's 429 for an empty account has a type of its own,
    // and its content filter calls itself an invalid request.
    let known = [
        (Fault::Quota, QUOTA_CODES),
        (Fault::TooLong, LONG_CODES),
        (Fault::Refused, REFUSED_CODES),
        (Fault::NotFound, MISSING_CODES),
        (Fault::Auth, AUTH_CODES),
        (Fault::RateLimited, RATE_CODES),
        (Fault::Overloaded, BUSY_CODES),
    ];
    let found =
        known.into_iter().find(|(_, names)| codes.iter().any(|c| names.contains(&c.as_str())));
    found.map(|(fault, _)| fault)
}

const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "insufficient_credits",
    "insufficient_credit",
    "insufficient_balance",
    "insufficient_funds",
    "payment_required",
    "credit_balance_too_low",
    "credits_exhausted",
];
const LONG_CODES: &[&str] = &[
    "context_length_exceeded",
    "request_too_large",
    "string_above_max_length",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
];
const REFUSED_CODES: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "moderation",
    "invalid_prompt",
    "data_inspection_failed",
];
const MISSING_CODES: &[&str] = &["model_not_found", "not_found_error", "model_not_available"];
const AUTH_CODES: &[&str] =
    &["invalid_api_key", "authentication_error", "permission_error", "unauthenticated"];
const RATE_CODES: &[&str] = &["rate_limit_exceeded", "rate_limit_error", "too_many_requests"];
const BUSY_CODES: &[&str] =
    &["overloaded_error", "server_overloaded", "engine_overloaded_error", "slow_down"];

fn by_words(status: Option<u16>, words: &str) -> Option<Fault> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let among = |statuses: &[u16]| status.is_none_or(|status| statuses.contains(&status));
    if among(&[400, 403, 404, 429]) && says(QUOTA_PHRASES) {
        return Some(Fault::Quota);
    }
    if among(&[400, 413, 422, 429, 500]) && says(LONG_PHRASES) {
        return Some(Fault::TooLong);
    }
    if among(&[400, 403, 422]) && says(REFUSED_PHRASES) {
        return Some(Fault::Refused);
    }
    if among(&[400]) && says(MISSING_PHRASES) {
        return Some(Fault::NotFound);
    }
    if among(&[400]) && says(AUTH_PHRASES) {
        return Some(Fault::Auth);
    }
    None
}

const QUOTA_PHRASES: &[&str] = &[
    "credit balance is too low",
    "insufficient credit",
    "insufficient balance",
    "insufficient funds",
    "insufficient quota",
    "requires more credits",
    "not enough credits",
    "you have run out of credits",
    "billing hard limit",
    "payment required",
    "spending limit",
    "spend limit",
];
const LONG_PHRASES: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "too long to fit into the model",
    "longer than the maximum model length",
    "maximum prompt length",
    "prompt exceeds max length",
    "prompt token count of",
    "exceeded model token limit",
    "context window exceeds limit",
    "greater than the context length",
    "loaded with context length of only",
    "`max_new_tokens` must be <=",
    "maximum context length",
    "exceed context limit",
    "exceeds the context",
    "exceeds context",
    "context length exceeded",
    "exceeds the available context size",
    "input token count exceeds",
    "exceeds the maximum number of tokens",
    "too large for model with",
    "input is too long",
    "reduce the length of the messages",
    "larger than the maximum context",
];
const REFUSED_PHRASES: &[&str] = &[
    "content management policy",
    "violates our usage polic",
    "violate our usage polic",
    "content policy",
    "input was flagged",
    "blocked by our safety",
    "output blocked by content filter",
];
const MISSING_PHRASES: &[&str] =
    &["is not a valid model", "model does not exist", "invalid model name"];
const AUTH_PHRASES: &[&str] = &["api key not valid", "api key expired", "invalid api key"];

fn by_status(status: Option<u16>, codes: &[String]) -> Fault {
    match status {
        Some(401 | 403) => Fault::Auth,
        Some(402) => Fault::Quota,
        Some(404 | 410) => Fault::NotFound,
        Some(408 | 409) => Fault::Overloaded,
        Some(413) => Fault::TooLong,
        Some(429) => Fault::RateLimited,
        Some(300..500) => Fault::BadRequest,
        Some(_) => Fault::Overloaded,
        // Inside a stream only the code tells whose fault it is; most often it is the server's.
        None if codes.iter().any(|code| code == "invalid_request_error") => Fault::BadRequest,
        None => Fault::Overloaded,
    }
}

fn unsupported(said: &Said, words: &str) -> Option<Parameter> {
    const CODES: &[&str] = &["unsupported_parameter", "unsupported_value", "unknown_parameter"];
    let typed = said.codes.iter().any(|code| CODES.contains(&code.as_str()));
    if !typed && !UNSUPPORTED_PHRASES.iter().any(|phrase| words.contains(phrase)) {
        return None;
    }
    match &said.param {
        // `include[0]` and `reasoning.effort` name what we sent; `messages[3].content` does not.
        Some(param) => {
            let param = param.to_ascii_lowercase();
            let head = param.split(['[', '.']).next().unwrap_or_default();
            Parameter::named(&param).or_else(|| Parameter::named(head))
        }
        None => Parameter::within(words),
    }
}

const UNSUPPORTED_PHRASES: &[&str] = &[
    "unsupported parameter",
    "unsupported value",
    "unknown parameter",
    "unrecognized request argument",
    "not supported",
    "does not support",
    "doesn't support",
    "not_supported",
    "unsupported",
    "extra inputs are not permitted",
    "may only be set to",
    "is deprecated for",
    "not permitted",
    "which is the maximum allowed",
    "is too large",
    "unknown field",
    "unexpected keyword",
    "cannot both be specified",
    "unknown name",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: Fault) {
        let verdict = classify(Some(status), &Said::read(body.as_bytes()));
        assert_eq!(verdict.fault, expected, "{status} {body}");
    }

    #[test]
    fn statuses_and_codes_have_their_faults() {
        use Fault::*;
        let openai = |kind: &str, code: &str, message: &str| {
            format!(
                r#"{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":"{code}"}}}}"#
            )
        };
        let anthropic = |kind: &str, message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
        };
        check(401, &openai("invalid_request_error", "invalid_api_key", "Incorrect API key"), Auth);
        check(403, "{}", Auth);
        check(400, r#"[{"error":{"code":400,"message":"API key not valid. Please pass"}}]"#, Auth);
        check(402, r#"{"error":{"message":"Insufficient Balance"}}"#, Quota);
        check(402, "", Quota);
        check(429, &openai("insufficient_quota", "insufficient_quota", "You exceeded your"), Quota);
        check(400, &anthropic("invalid_request_error", "Your credit balance is too low to"), Quota);
        check(403, r#"{"error":{"message":"This request requires more credits"}}"#, Quota);
        check(404, r#"{"error":"payment required for this model"}"#, Quota);
        check(404, &openai("invalid_request_error", "model_not_found", "The model"), NotFound);
        check(404, r#"{"error":"model 'x' not found"}"#, NotFound);
        check(400, r#"{"error":{"message":"foo is not a valid model ID","code":400}}"#, NotFound);
        check(429, &openai("requests", "rate_limit_exceeded", "Rate limit"), RateLimited);
        check(
            429,
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details"}}"#,
            RateLimited,
        );
        check(429, "", RateLimited);
        check(529, &anthropic("overloaded_error", "Overloaded"), Overloaded);
        for status in [408, 500, 502, 503, 504, 520, 529] {
            check(status, "<html>oops</html>", Overloaded);
        }
        check(400, &openai("invalid_request_error", "context_length_exceeded", "This"), TooLong);
        check(400, &anthropic("invalid_request_error", "prompt is too long: 205 > 200"), TooLong);
        check(413, &anthropic("request_too_large", "Request exceeds"), TooLong);
        check(413, "", TooLong);
        check(
            400,
            r#"{"error":{"code":400,"message":"request (9 tokens) exceeds the available context size","type":"exceed_context_size_error"}}"#,
            TooLong,
        );
        // As servers and gateways say it that have no code for it.
        for words in [
            "This model's maximum context length is 8192 tokens. However, you requested 9000",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
            "The prompt (total length 9) is too long to fit into the model (context length 8).",
            "Your input exceeds the context window of this model. Please adjust your input",
            "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768",
            "Please reduce the length of the messages or completion.",
            "Input is too long for requested model.",
            "the input length exceeds the context length",
            "prompt too long; exceeded max context length by 12 tokens",
            "prompt token count of 140000 exceeds the limit of 128000",
            "Invalid request: Your request exceeded model token limit: 131072",
            "invalid params, context window exceeds limit",
            "Prompt exceeds max length",
            "The number of tokens to keep from the initial prompt is greater than the context length.",
            "the model is loaded with context length of only 4096 tokens, which is not enough",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.",
        ] {
            check(400, &openai("invalid_request_error", "null", words), TooLong);
        }
        check(
            400,
            r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (8889 tokens) exceeds the available context size\"}}"}"#,
            TooLong,
        );
        check(400, &openai("invalid_request_error", "content_filter", "The response"), Refused);
        check(403, r#"{"error":{"code":403,"message":"x","metadata":{"reasons":["y"]}}}"#, Refused);
        check(
            400,
            &openai("invalid_request_error", "null", "messages: roles must alternate"),
            BadRequest,
        );
        check(422, r#"{"detail":[{"msg":"field required"}]}"#, BadRequest);
        check(301, "", BadRequest);
    }

    #[test]
    fn unrelated_words_bench_nobody() {
        check(
            400,
            r#"{"error":{"message":"tool credits: billing schema is invalid"}}"#,
            Fault::BadRequest,
        );
        check(
            500,
            r#"{"error":{"message":"the film credits service crashed"}}"#,
            Fault::Overloaded,
        );
        check(
            429,
            r#"{"error":{"message":"rate limit; add credits to raise it"}}"#,
            Fault::RateLimited,
        );
    }

    #[test]
    fn a_refused_parameter_is_named() {
        let check = |body: &str, expected: Option<Parameter>| {
            let verdict = classify(Some(400), &Said::read(body.as_bytes()));
            assert_eq!(verdict.parameter, expected, "{body}");
            let fault = expected.map_or(Fault::BadRequest, |_| Fault::Unsupported);
            assert_eq!(verdict.fault, fault, "{body}");
        };
        check(
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#,
            Some(Parameter::MaxOutput),
        );
        check(
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2","param":"temperature","code":"unsupported_value"}}"#,
            Some(Parameter::Temperature),
        );
        check(
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"`temperature` may only be set to 1 when thinking is enabled"}}"#,
            Some(Parameter::Temperature),
        );
        check(
            r#"{"error":{"message":"max_tokens: 64000 > 8192, which is the maximum allowed number"}}"#,
            Some(Parameter::MaxOutput),
        );
        check(r#"{"error":"\"llama3\" does not support thinking"}"#, Some(Parameter::Effort));
        check(
            r#"{"error":{"message":"Encrypted content is not supported with this model.","param":"include"}}"#,
            Some(Parameter::Include),
        );
        check(
            r#"{"error":{"message":"image input is not supported","param":"messages[3].content"}}"#,
            None,
        );
        check(r#"{"error":{"message":"tools are not supported by this model"}}"#, None);
        check(r#"{"error":{"message":"temperature sensor tool failed"}}"#, None);
    }

    #[test]
    fn an_error_inside_a_stream_is_mapped_by_its_code() {
        let inside = |body: &str| classify(None, &Said::read(body.as_bytes())).fault;
        assert_eq!(
            inside(r#"{"error":{"type":"overloaded_error","message":"x"}}"#),
            Fault::Overloaded
        );
        assert_eq!(
            inside(r#"{"error":{"type":"rate_limit_error","message":"x"}}"#),
            Fault::RateLimited
        );
        assert_eq!(inside(r#"{"error":{"code":402,"message":"x"}}"#), Fault::Quota);
        assert_eq!(
            inside(r#"{"error":{"type":"invalid_request_error","message":"x"}}"#),
            Fault::BadRequest
        );
        assert_eq!(inside(r#"{"error":{"type":"api_error","message":"x"}}"#), Fault::Overloaded);
        assert_eq!(inside(r#"{"error":"x"}"#), Fault::Overloaded);
    }
}
