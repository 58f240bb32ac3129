//! Names of hosts are looked up on a thread of their own: where there is none to be had, that is an
//! error of the connection, and not a panic of the runtime's pool.

use std::net::{SocketAddr, ToSocketAddrs};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::oneshot;

/// The system's own way to look up names.
pub(crate) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let (done, found) = oneshot::channel();
            let look = move || {
                let found = (name.as_str(), 0).to_socket_addrs().map(Iterator::collect);
                // A connection that was given up wants none.
                let _ = done.send(found);
            };
            std::thread::Builder::new().name("names".to_owned()).spawn(look)?;
            let addresses: Vec<SocketAddr> = found.await??;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_has_addresses_and_nonsense_has_none() {
        let found = SystemNames.resolve("localhost".parse().unwrap()).await.unwrap();
        assert!(found.map(|address| address.ip()).all(|ip| ip.is_loopback()));
        assert!(SystemNames.resolve("no-such-host.invalid".parse().unwrap()).await.is_err());
    }
}
