//! Proofs that a block of reasoning is one the server gave, to the model that it was asked as.
//!
//! They are computed from the model's name and the text, so that a request can be judged without
//! knowing what was said before.

/// The signature of a block of thinking.
pub fn signature(model: &str, text: &str) -> String {
    format!("sig{:016x}{:016x}", digest(1, model, text), digest(2, model, text))
}

/// The sealed form of a block of reasoning, which hides its text.
pub fn sealed(model: &str, text: &str) -> String {
    let hidden: String = text.bytes().map(|byte| format!("{:02x}", !byte)).collect();
    format!("sealed{hidden}z{:016x}", digest(3, model, text))
}

/// Says whether [`sealed`] made this for the model.
pub(super) fn is_sealed(model: &str, seal: &str) -> bool {
    let Some((hidden, _)) = seal.strip_prefix("sealed").and_then(|rest| rest.split_once('z'))
    else {
        return false;
    };
    let bytes: Option<Vec<u8>> = hidden
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok().map(|byte| !byte)
        })
        .collect();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.is_some_and(|text| sealed(model, &text) == seal)
}

/// FNV-1a; nobody attacks a test.
fn digest(purpose: u8, model: &str, text: &str) -> u64 {
    let bytes = [purpose].into_iter().chain(model.bytes()).chain([0]).chain(text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
