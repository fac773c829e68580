//! A route: a named way for messages to travel, with everything that decides how they do.

use std::time::Duration;

use crate::breaker::BreakerConfig;
use crate::limit::{Limits, Rate};
use crate::message::{Lane, Message, Name};
use crate::policy::Policy;
use crate::time::show_span;

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
    /// Sends of one message that may stay unconfirmed before it is dead as uncertain, in each generation.
    pub unconfirmed_max: u32,
    /// How long a claim lasts. It is renewed while the message is being sent.
    pub lease: Duration,
    /// How long one send may take. It may be longer than the lease.
    pub send_timeout: Duration,
    /// Whether the budget counts a try before the caller's eyes: a message that comes without one has one try less.
    pub inline_first: bool,
    /// Messages in the air at once, all lanes together, on each instance.
    pub concurrency_max: usize,
    /// The longest wait that a destination may ask for.
    pub retry_after_max: Duration,
    /// The breaker of each destination, if the route has one.
    pub breaker: Option<BreakerConfig>,
    /// Sends a second to each destination by the whole fleet, if limited.
    pub rate: Option<Rate>,
    /// Sends at once to each destination by the whole fleet, if limited.
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

/// Unconfirmed sends where the receiver can't recognise a repeat: each may be one more copy of a mail.
pub const UNCONFIRMED_MAX: u32 = 3;

/// Unconfirmed sends where the receiver recognises a repeat by its attempt id.
pub const UNCONFIRMED_MAX_RECOGNISED: u32 = 20;

/// The default for `send_timeout` where the transport itself has no time-outs.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// What a send needs besides the time-outs of its transport.
const SEND_SLACK: Duration = Duration::from_secs(1);

/// The time-outs of a transport that one send can use up one after another, by their keys.
pub type Timeouts = [(&'static str, Duration)];

/// The default for `send_timeout` over a transport with these time-outs: they fit, with a tenth to spare.
pub fn send_timeout_for(timeouts: &Timeouts) -> Duration {
    let waits: Duration = timeouts.iter().map(|(_, timeout)| *timeout).sum();
    let in_steps_of_five_s = (waits * 11 / 10).as_millis().div_ceil(5_000) * 5;
    SEND_TIMEOUT.max(Duration::from_secs(in_steps_of_five_s as u64))
}

/// What is wrong with a `send_timeout` that would end a send while its transport still waits for an answer: the
/// receiver may have taken the message. Says what is cut, and the least that fits.
pub fn cut_timeouts(send_timeout: Duration, timeouts: &Timeouts) -> Option<(String, Duration)> {
    let least = timeouts.iter().map(|(_, timeout)| *timeout).sum::<Duration>() + SEND_SLACK;
    let named = || timeouts.iter().map(|(key, timeout)| format!("{key} ({})", show_span(*timeout)));
    (!timeouts.is_empty() && send_timeout < least).then(|| (named().collect::<Vec<_>>().join(" + "), least))
}

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
            unconfirmed_max: UNCONFIRMED_MAX,
            lease: Duration::from_secs(60),
            send_timeout: SEND_TIMEOUT,
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

    /// The limits of its sends to each destination, if it has any.
    pub fn limits(&self) -> Option<Limits> {
        let limits =
            Limits { gap_us: self.rate.map(Rate::gap_us), at_once_max: self.destination_concurrency_max };
        (limits != Limits::default()).then_some(limits)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SMTP: [(&str, Duration); 2] =
        [("command_timeout", Duration::from_secs(30)), ("data_timeout", Duration::from_secs(600))];

    #[test]
    fn a_send_timeout_is_long_enough_for_its_transport_unless_it_is_told_otherwise() {
        assert_eq!(send_timeout_for(&[]), SEND_TIMEOUT);
        assert_eq!(send_timeout_for(&SMTP), Duration::from_secs(695));
        assert_eq!(cut_timeouts(send_timeout_for(&SMTP), &SMTP), None);
        assert_eq!(cut_timeouts(Duration::ZERO, &[]), None);
    }

    #[test]
    fn a_send_timeout_that_cuts_a_transport_is_told_by_both_names() {
        assert_eq!(cut_timeouts(Duration::from_secs(631), &SMTP), None);
        let (cut, least) = cut_timeouts(Duration::from_secs(60), &SMTP).unwrap();
        assert_eq!(cut, "command_timeout (30s) + data_timeout (10m)");
        assert_eq!(least, Duration::from_secs(631));
    }
}
