//! A model that says what a script tells it to, on a real socket: the only thing in the tests that
//! is not real.
//!
//! [`ModelServer`] speaks four [`Shape`]s, streams as their own servers do, and can be told to break
//! anywhere: a [`Reply`] says what and how. It judges each request as the strictest server of its
//! shape would; [`check`] is that judgement alone, for tests without sockets.
//!
//! ```
//! use mainstay_testkit::model::{ModelServer, Reply, rounds};
//! use serde_json::json;
//!
//! // Twenty rounds of one call, then a text; the client may die and come back at any time.
//! let server = ModelServer::start(rounds(20, |k| ("shell", json!({"command": format!("echo {k}")}))));
//!
//! // An answer that is cut in the middle of its third event, then a whole one.
//! let server = ModelServer::replies([
//!     Reply::text("never heard").cut_inside_event(2),
//!     Reply::text("heard").usage(100, 50, 3),
//! ]);
//! ```

mod catalogue;
mod check;
mod delivery;
mod gate;
pub(crate) mod http;
pub(crate) mod listener;
mod prepared;
mod program;
mod render;
mod reply;
mod request;
mod script;
mod seal;
mod server;
mod shape;

pub use catalogue::{Catalogue, Offered};
pub use check::check;
pub use gate::Gate;
pub use prepared::{Checking, PreparedServer};
pub use program::ModelProgram;
pub use reply::Reply;
pub use request::{ModelRequest, RequestedCall};
pub use script::{Replies, Rounds, Script, rounds};
pub use seal::{sealed, signature};
pub use server::ModelServer;
pub use shape::Shape;
