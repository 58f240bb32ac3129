//! The one client of all tools.
//!
//! Names are looked up here, once for each connection, and the connection is made to the addresses
//! that were checked: a name that changes its mind in between changes nothing. For addresses that a
//! model chose, proxies from the environment are not used, because behind one nobody can tell where a
//! connection leads; services that the configuration names are reached through them, as models are.
//! No cookies are kept, and no credentials sent but a service's own key.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::causes;
use mainstay_store::lock;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use url::{Host, Url};

use super::address::closed;
use super::place;
use crate::aside::aside;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// Looks up the addresses of a name.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The way to the web. Clones share their connections' settings.
#[derive(Clone)]
pub struct Web {
    parts: Arc<Parts>,
}

struct Parts {
    /// Hosts with ports that are reached although their addresses are not public.
    allowed: Vec<Allowed>,
    lookup: Lookup,
    clients: Mutex<HashMap<Route, reqwest::Client>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    host: String,
    port: u16,
}

/// A place in the configuration that is none.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a valid host and port; write HOST:PORT")]
pub struct PlaceError(String);

/// What kind of connection an address needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Route {
    encrypted: bool,
    way: Way,
}

/// How far an address is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// A model chose it: it must be public.
    Guarded,
    /// A model chose it, and the configuration allows it.
    Allowed,
    /// The configuration names it.
    Service,
    /// The configuration names it, and it is on this machine or near, where no proxy belongs in between.
    OwnService,
}

impl Web {
    /// A way to the public internet, and to these places besides, each written as `host:port`.
    pub fn new<S: AsRef<str>>(allow_private: &[S]) -> Result<Self, PlaceError> {
        let allowed =
            allow_private.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok(Self::with_lookup(allowed, Arc::new(|name| Box::pin(system_lookup(name)))))
    }

    fn with_lookup(allowed: Vec<Allowed>, lookup: Lookup) -> Self {
        let clients = Mutex::default();
        Self { parts: Arc::new(Parts { allowed, lookup, clients }) }
    }

    /// One that finds names like this.
    #[cfg(test)]
    pub(super) fn looking_up(
        lookup: impl Fn(String) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self::with_lookup(
            Vec::new(),
            Arc::new(move |name| Box::pin(std::future::ready(lookup(name)))),
        )
    }

    /// A request to an address that a model chose. The error says why it is not made.
    pub(super) fn request(&self, url: &Url) -> Result<reqwest::RequestBuilder, String> {
        let way = if self.parts.is_allowed(url) {
            Way::Allowed
        } else {
            refuse_closed(url)?;
            Way::Guarded
        };
        Ok(self.parts.client(Route::to(url, way))?.get(url.clone()))
    }

    /// Whether a request would be refused, as far as the address alone tells.
    pub(super) fn refuses(&self, url: &Url) -> Option<String> {
        if self.parts.is_allowed(url) { None } else { refuse_closed(url).err() }
    }

    /// A client for an address that the configuration names.
    pub(crate) fn trusted(&self, url: &Url) -> Result<reqwest::Client, String> {
        let own = place::host(url) == "localhost" || refuse_closed(url).is_err();
        self.parts.client(Route::to(url, if own { Way::OwnService } else { Way::Service }))
    }
}

impl Route {
    fn to(url: &Url, way: Way) -> Self {
        Self { encrypted: url.scheme() == "https", way }
    }
}

impl Parts {
    fn is_allowed(&self, url: &Url) -> bool {
        let (host, port) = (place::host(url), place::port(url));
        self.allowed.iter().any(|allowed| allowed.host == host && allowed.port == port)
    }

    fn client(&self, route: Route) -> Result<reqwest::Client, String> {
        // A panic elsewhere leaves a map of whole clients.
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(&route) {
            return Ok(client.clone());
        }
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(route.encrypted)?)
            .connect_timeout(CONNECT)
            .user_agent(concat!("mainstay/", env!("CARGO_PKG_VERSION")))
            // Each step is checked like the first.
            .redirect(reqwest::redirect::Policy::none())
            // What is packed is unpacked within bounds.
            .no_gzip()
            .referer(false)
            .pool_max_idle_per_host(0);
        if route.way == Way::Guarded {
            builder = builder.dns_resolver(Guarded(self.lookup.clone()));
        }
        if route.way != Way::Service {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| format!("could not create an HTTP client: {}", causes(&error)))?;
        clients.insert(route, client.clone());
        Ok(client)
    }
}

/// Refuses an IP address that is not public; names are checked when they are looked up.
fn refuse_closed(url: &Url) -> Result<(), String> {
    let address: IpAddr = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    match closed(address) {
        Some(what) => Err(refusal(&address.to_string(), address, what)),
        None => Ok(()),
    }
}

fn refusal(name: &str, address: IpAddr, what: &str) -> String {
    if name == address.to_string() {
        format!("not allowed: {name} is {what}, not the public internet")
    } else {
        format!("not allowed: {name} leads to {address}, which is {what}, not the public internet")
    }
}

/// Looks names up and passes on public addresses only.
struct Guarded(Lookup);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let looking = (self.0)(name.clone());
        Box::pin(async move {
            let found = looking.await?;
            // A name that leads to both is no name of the public internet.
            for address in &found {
                if let Some(what) = closed(*address) {
                    return Err(refusal(&name, *address, what).into());
                }
            }
            let found: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(found)
        })
    }
}

async fn system_lookup(name: String) -> io::Result<Vec<IpAddr>> {
    let look = move || (name.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let found = aside("names", look).await.map_err(io::Error::other)??;
    Ok(found.into_iter().map(|address| address.ip()).collect())
}

fn tls(encrypted: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("could not set up TLS: {error}"))?;
    // Certificates are megabytes: they are loaded when they are needed.
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

impl FromStr for Allowed {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let wrong = || PlaceError(text.to_owned());
        let (_, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        // Read like an address, so that both are written alike.
        let url = place::read(&format!("http://{}/", text.trim())).map_err(|_| wrong())?;
        if url.path() != "/" || url.query().is_some() || text.contains('*') {
            return Err(wrong());
        }
        Ok(Self { host: place::host(&url).to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_configuration_are_read_like_addresses() {
        let read = |text: &str| text.parse::<Allowed>().ok().map(|place| (place.host, place.port));
        assert_eq!(read("localhost:8080"), Some(("localhost".to_owned(), 8080)));
        assert_eq!(read("127.1:80"), Some(("127.0.0.1".to_owned(), 80)));
        assert_eq!(read("[::1]:3000"), Some(("[::1]".to_owned(), 3000)));
        assert_eq!(read("Wiki.Intra.:443"), Some(("wiki.intra".to_owned(), 443)));
        for wrong in
            ["", "localhost", ":80", "a:b:c", "localhost:http", "x:1/path", "u@x:1", "*:80"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_allowed_place_is_one_host_with_one_port() {
        let web = Web::new(&["localhost:8080"]).unwrap();
        let allowed = |text: &str| web.parts.is_allowed(&place::read(text).unwrap());
        assert!(allowed("http://localhost:8080/x") && allowed("http://LOCALHOST.:8080"));
        assert!(!allowed("http://localhost/") && !allowed("http://localhost:8081/"));
        assert!(!allowed("http://127.0.0.1:8080/"));
    }

    #[tokio::test]
    async fn a_name_is_refused_if_one_of_its_addresses_is_not_public() {
        let cases: [(&[&str], bool); 5] = [
            (&["93.184.216.34"], true),
            (&["127.0.0.1"], false),
            (&["93.184.216.34", "10.0.0.1"], false),
            (&["2606:4700::1111", "::ffff:127.0.0.1"], false),
            (&["64:ff9b::a9fe:a9fe"], false),
        ];
        for (addresses, passes) in cases {
            let found: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            let given = found.clone();
            let lookup: Lookup = Arc::new(move |_| {
                let found = given.clone();
                Box::pin(async move { Ok(found) })
            });
            let resolved = Guarded(lookup).resolve("example.org".parse().unwrap()).await;
            match resolved {
                Ok(passed) => {
                    assert!(passes, "{addresses:?}");
                    assert_eq!(passed.map(|address| address.ip()).collect::<Vec<_>>(), found);
                }
                Err(error) => {
                    assert!(!passes, "{addresses:?}: {error}");
                    assert!(
                        error.to_string().contains("not allowed: example.org leads to"),
                        "{error}"
                    );
                }
            }
        }
    }
}
