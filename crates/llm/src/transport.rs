//! Connections, kept open between the rounds of a turn.
//!
//! Certificates are loaded when the first `https` address is asked for: a local model needs none, and
//! they are megabytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_message::causes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::lock::lock;
use crate::names::SystemNames;
use crate::{Api, Provider, Secret};

/// What kind of connection an address needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Route {
    encrypted: bool,
    /// On this machine, where no proxy belongs in between.
    loopback: bool,
    connect: Duration,
}

/// The pools of connections, one for each kind.
#[derive(Default)]
pub(crate) struct Transport {
    pools: Mutex<HashMap<Route, reqwest::Client>>,
}

impl Transport {
    /// The pool for a provider. The error says why there can be none.
    pub(crate) fn pool(
        &self,
        provider: &Provider,
        connect: Duration,
    ) -> Result<reqwest::Client, String> {
        let route = Route {
            encrypted: provider.base_url.scheme() == "https",
            loopback: provider.is_loopback(),
            connect,
        };
        // A panic elsewhere leaves a map of whole pools.
        let mut pools = lock(&self.pools);
        if let Some(pool) = pools.get(&route) {
            return Ok(pool.clone());
        }
        let pool = route.open()?;
        pools.insert(route, pool.clone());
        Ok(pool)
    }
}

impl Route {
    fn open(self) -> Result<reqwest::Client, String> {
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(self.encrypted)?)
            .connect_timeout(self.connect)
            .dns_resolver(SystemNames)
            .user_agent(concat!("mainstay/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the key to a host that nobody chose.
            .redirect(reqwest::redirect::Policy::none())
            // Packed streams arrive in lumps.
            .no_gzip()
            .tcp_keepalive(Duration::from_secs(30))
            .pool_idle_timeout(Duration::from_secs(90))
            .pool_max_idle_per_host(4);
        if self.loopback {
            builder = builder.no_proxy();
        }
        builder
            .build()
            .map_err(|error| format!("could not create an HTTP client: {}", causes(&error)))
    }
}

fn tls(encrypted: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("could not set up TLS: {error}"))?;
    let builder = if encrypted {
        builder
            .with_platform_verifier()
            .map_err(|error| format!("could not load the system's certificates: {error}"))?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The headers of a request. The error names the header that cannot be sent.
pub(crate) fn headers(provider: &Provider, secret: Option<&Secret>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if provider.api == Api::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(secret) = secret {
        let (name, value) = match provider.api {
            Api::Anthropic => (HeaderName::from_static("x-api-key"), secret.expose().to_owned()),
            Api::OpenAiChat | Api::OpenAiResponses | Api::Ollama => {
                (AUTHORIZATION, format!("Bearer {}", secret.expose()))
            }
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            format!(
                "the key from {} contains characters that cannot be sent",
                provider.key.describe()
            )
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value).ok());
        let (name, value) = parsed.ok_or_else(|| {
            format!("the header {name:?} of provider {} cannot be sent", provider.name)
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoKey;

    #[test]
    fn keys_go_where_each_format_wants_them_and_own_headers_win() {
        let secret = Secret::new("sk-1");
        let mut provider = Provider {
            name: "x".to_owned(),
            api: Api::Anthropic,
            base_url: url::Url::parse("http://localhost:1/v1").unwrap(),
            key: Arc::new(NoKey),
            headers: vec![("anthropic-version".to_owned(), "new".to_owned())],
        };
        let sent = headers(&provider, Some(&secret)).unwrap();
        assert_eq!(sent["x-api-key"], "sk-1");
        assert_eq!(sent["anthropic-version"], "new");
        assert!(!sent.contains_key(AUTHORIZATION));
        provider.api = Api::OpenAiChat;
        assert_eq!(headers(&provider, Some(&secret)).unwrap()[AUTHORIZATION], "Bearer sk-1");
        assert!(!headers(&provider, None).unwrap().contains_key(AUTHORIZATION));
        assert!(headers(&provider, Some(&Secret::new("a\nb"))).is_err());
    }
}
