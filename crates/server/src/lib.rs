//! Answers: the HTTP API, and the console where it is built in.
//!
//! [`router`] makes the whole face of a [`Server`]; [`serve::serve`] runs it on a socket. Nothing here decides what
//! becomes of a message: it asks the engine, and tells callers in JSON.

pub mod api;
pub mod auth;
pub mod console;
mod doors;
pub mod input;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod problem;
mod router;
pub mod search;
pub mod serve;
mod span;
mod write_timeout;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use redeliver_engine::Engine;
use redeliver_engine::access::Access;

use auth::secret::AdminKey;
use auth::throttle::Throttle;
use input::parse::Parsing;
use limits::{Limits, Room};
use metrics::Metrics;

pub use router::router;

/// Everything that a request may need, behind one handle: each layer of the router has its own.
#[derive(Clone)]
pub struct Server(Arc<Parts>);

/// What a server is made of.
pub struct Parts {
    /// What does the work.
    pub engine: Arc<Engine>,
    /// Who may come in.
    pub access: Arc<dyn Access>,
    /// The first key, if the environment has one.
    pub admin_key: Option<AdminKey>,
    /// What a commit of the store is worth.
    pub durability: Durability,
    /// How much, how long, how many.
    pub limits: Arc<Limits>,
    /// Room for what is being accepted.
    pub room: Room,
    /// Slows down clients that guess keys.
    pub(crate) throttle: Throttle,
    /// Lets few large bodies be read at once.
    pub parsing: Parsing,
    /// What `/metrics` tells.
    pub metrics: Metrics,
    /// What `/openapi.json` tells, once there is a router.
    description: OnceLock<Bytes>,
}

/// What a commit of the store is worth, as people are told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    Full,
    /// It survives the end of the process.
    Relaxed,
    /// It is gone with the process.
    Memory,
}

impl Durability {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Relaxed => "relaxed",
            Self::Memory => "memory",
        }
    }
}

impl Deref for Server {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Server {
    /// A server over these parts.
    pub fn new(
        engine: Arc<Engine>,
        access: Arc<dyn Access>,
        admin_key: Option<AdminKey>,
        durability: Durability,
        limits: Limits,
        metrics: Metrics,
    ) -> Self {
        let room = Room::new(limits.accepting_bytes_max);
        let limits = Arc::new(limits);
        let (throttle, parsing, description) = (Throttle::default(), Parsing::default(), OnceLock::new());
        Self(Arc::new(Parts {
            engine,
            access,
            admin_key,
            durability,
            limits,
            room,
            throttle,
            parsing,
            metrics,
            description,
        }))
    }
}
