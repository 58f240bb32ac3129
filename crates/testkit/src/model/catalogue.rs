//! What clients ask besides: which models there are, and how much they can read.

use serde_json::json;

use super::delivery::Rendered;
use super::http::{Framing, Request};

/// The answer to a request that is not for a model's words.
pub(super) fn answer(request: &Request) -> Rendered {
    let path = request.path.split('?').next().unwrap_or_default();
    let (status, body) = match (request.method.as_str(), path) {
        ("GET", path) if path.ends_with("/api/tags") => {
            (200, json!({"models": [{"name": "scripted", "model": "scripted"}]}))
        }
        ("GET", path) if path.ends_with("/api/version") => (200, json!({"version": "0.13.0"})),
        ("POST", path) if path.ends_with("/api/show") => (
            200,
            json!({
                "details": {"family": "scripted"},
                "model_info": {"general.architecture": "scripted", "scripted.context_length": 32768},
                "capabilities": ["completion", "tools", "thinking"],
            }),
        ),
        ("GET", path) if path.ends_with("/models") => {
            (200, json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))
        }
        (method, path) => {
            let words = format!("Invalid URL ({method} {path})");
            let kind = "invalid_request_error";
            (404, json!({"error": {"message": words, "type": kind, "param": null, "code": null}}))
        }
    };
    let body = body.to_string().into_bytes();
    Rendered {
        status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        framing: Framing::Length(body.len()),
        events: vec![body],
    }
}
