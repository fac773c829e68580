//! A route: a named way for messages to travel, with everything that decides how they do.

use std::time::Duration;

use crate::breaker::BreakerConfig;
use crate::limit::Rate;
use crate::message::{Lane, Message, Name};
use crate::policy::Policy;

/// A named way for messages to travel.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its name.
    pub name: Name,
    /// How each priority travels, by `Lane as usize`.
    pub lanes: [Travel; 4],
    /// What happens when nobody knows whether a carrying succeeded.
    pub on_lost: OnLost,
    /// What happens when the destination doesn't accept our login.
    pub on_auth_error: OnAuthError,
    /// How long an outside worker has to report, where it must.
    pub report_within: Option<Duration>,
    /// The application's table whose rows it carries, where it has one. Nothing else is accepted on it then.
    pub table: Option<Name>,
    /// The route that takes word of this one's dead.
    pub dead_letter: Option<Name>,
    /// Leases that may run out on one message before it counts as poison.
    pub losses_max: u32,
    /// How long a claim lasts.
    pub lease: Duration,
    /// How long one carrying may take.
    pub send_timeout: Duration,
    /// Whether the budget counts a try before the caller's eyes: a message that comes without one has one try less.
    pub inline_first: bool,
    /// Messages in the air at once, all lanes together, on each instance.
    pub concurrency_max: usize,
    /// The longest wait that a destination may ask for.
    pub retry_after_max: Duration,
    /// The breaker of each destination, if the route has one.
    pub breaker: Option<BreakerConfig>,
    /// Carryings a second to each destination, if limited.
    pub rate: Option<Rate>,
    /// Carryings at once to each destination, if limited.
    pub destination_concurrency_max: Option<usize>,
    /// How long delivered, cancelled and dismissed messages stay.
    pub retention: Duration,
    /// How long after its end a key still answers; `None` = for ever.
    pub key_retention: Option<Duration>,
}

/// How one priority of a route travels.
#[derive(Clone, Debug, PartialEq)]
pub struct Travel {
    /// The transport that carries it.
    pub transport: Name,
    /// Where to, where the route says so.
    pub target: Option<Name>,
    /// How it is retried.
    pub policy: Policy,
    /// Its share of the permits, relative to the other lanes.
    pub weight: u32,
}

/// What happens when nobody knows whether a carrying succeeded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnLost {
    /// Again, under the same attempt id.
    Retry,
    /// Nothing more until a person decides.
    Hold,
}

/// What happens when the destination doesn't accept our login.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnAuthError {
    /// The destination is held; messages wait and lose nothing.
    Hold,
    /// The destination is held, and the message that found out is refused.
    RefuseAndHold,
}

/// The lanes' shares of the permits unless a route says otherwise, by `Lane as usize`.
pub const LANE_WEIGHTS: [u32; 4] = [8, 4, 2, 1];

impl Route {
    /// A route over one transport with one policy, and the defaults for everything else.
    pub fn new(name: impl Into<Name>, transport: impl Into<Name>, policy: Policy) -> Self {
        let transport = transport.into();
        let travel =
            |weight| Travel { transport: transport.clone(), target: None, policy: policy.clone(), weight };
        Self {
            name: name.into(),
            lanes: LANE_WEIGHTS.map(travel),
            on_lost: OnLost::Retry,
            on_auth_error: OnAuthError::Hold,
            report_within: None,
            table: None,
            dead_letter: None,
            losses_max: 5,
            lease: Duration::from_secs(60),
            send_timeout: Duration::from_secs(10),
            inline_first: false,
            concurrency_max: 256,
            retry_after_max: Duration::from_secs(24 * 3_600),
            breaker: None,
            rate: None,
            destination_concurrency_max: None,
            retention: Duration::from_secs(7 * 24 * 3_600),
            key_retention: Some(Duration::from_secs(7 * 24 * 3_600)),
        }
    }

    /// How messages of this priority travel.
    pub fn travel(&self, lane: Lane) -> &Travel {
        &self.lanes[lane as usize]
    }

    /// How this message is retried.
    pub fn policy(&self, message: &Message) -> &Policy {
        &self.travel(message.lane).policy
    }

    /// The message's budget of tries: its own, or its policy's.
    pub fn max_attempts(&self, message: &Message) -> u32 {
        message.max_attempts.unwrap_or(self.policy(message).max_attempts).max(1)
    }

    /// Whether the start of this message's carrying is recorded first: where a loss is final, and for a message
    /// that was lost before, so that only its own crashes count against it.
    pub fn records_start(&self, message: &Message) -> bool {
        self.on_lost == OnLost::Hold || message.is_suspect()
    }
}
