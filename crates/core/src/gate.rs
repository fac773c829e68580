//! What can stand between a due message and its try, and how long.
//!
//! A gate with a known end moves the due time. A gate without one parks the message under the gate's key, out of
//! the due index, until the gate opens.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::breaker::BreakerState;
use crate::content::Content;
use crate::message::Message;
use crate::outcome::{Failure, Outcome, Until};
use crate::time::Timestamp;

/// The name of a gate: `what:scope:name`, such as `pause:route:email` or `breaker:destination:mx.example.org`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GateKey(Arc<str>);

/// What a gate stands before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every message of a route.
    Route,
    /// Every message to a destination.
    Destination,
    /// Every message of a sender.
    Sender,
    /// Every message of a campaign.
    Campaign,
    /// Every message to one prospect of a campaign.
    Prospect,
    /// Every message of a workspace.
    Workspace,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] =
        [Self::Route, Self::Destination, Self::Sender, Self::Campaign, Self::Prospect, Self::Workspace];

    /// The scope's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Destination => "destination",
            Self::Sender => "sender",
            Self::Campaign => "campaign",
            Self::Prospect => "prospect",
            Self::Workspace => "workspace",
        }
    }
}

impl GateKey {
    /// The gate that a person closes and opens.
    pub fn pause(scope: Scope, name: &str) -> Self {
        Self(format!("pause:{}:{name}", scope.name()).into())
    }

    /// The gate that a credential error closes.
    pub fn hold(scope: Scope, name: &str) -> Self {
        Self(format!("hold:{}:{name}", scope.name()).into())
    }

    /// The gate that failing connections close.
    pub fn breaker(destination: &str) -> Self {
        Self(format!("breaker:destination:{destination}").into())
    }

    /// The gate that the destination itself closes for a while.
    pub fn throttle(destination: &str) -> Self {
        Self(format!("throttle:destination:{destination}").into())
    }

    /// What messages wait for that find a destination's rate or concurrency used up.
    pub fn limit(destination: &str) -> Self {
        Self(format!("limit:destination:{destination}").into())
    }

    /// Whether this is a destination's rate or concurrency.
    pub fn is_limit(&self) -> bool {
        self.0.starts_with("limit:")
    }

    /// The gate before those of a workspace who want no more.
    pub fn suppression(workspace: &str) -> Self {
        Self(format!("suppression:workspace:{workspace}").into())
    }

    /// The gate before one prospect of a campaign whom a person paused. Without a prospect, how those of a campaign begin.
    pub fn prospect(campaign: &str, prospect: &str) -> Self {
        Self::pause(Scope::Prospect, &format!("{campaign}:{prospect}"))
    }

    /// Whether somebody waits here whom a person paused.
    pub fn is_prospect(&self) -> bool {
        self.parts().1 == Scope::Prospect.name()
    }

    /// Whether somebody waits here who wants no more.
    pub fn is_suppression(&self) -> bool {
        self.0.starts_with("suppression:")
    }

    /// The key that is written like this.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// What it is, what it stands before, and the name of that: `pause`, `route`, `email`.
    pub fn parts(&self) -> (&str, &str, &str) {
        let mut parts = self.0.splitn(3, ':');
        let mut part = || parts.next().unwrap_or_default();
        (part(), part(), part())
    }

    /// Whether a refused login closes this gate.
    pub(crate) fn is_hold(&self) -> bool {
        self.0.starts_with("hold:")
    }

    /// How the key is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The gates that people and refused logins close, in the order in which a message comes before them.
pub fn on_the_way(message: &Message, content: &Content, destination: Option<&str>) -> Vec<GateKey> {
    let attribute = |name: &str| content.attributes.get(name).map(String::as_str);
    let scopes = [
        (Scope::Workspace, Some(&*message.workspace)),
        (Scope::Route, Some(&*message.route)),
        (Scope::Campaign, attribute("campaign")),
        (Scope::Sender, attribute("sender")),
        (Scope::Destination, destination),
    ];
    let named = scopes.into_iter().filter_map(|(scope, name)| Some((scope, name?)));
    named.flat_map(|(scope, name)| [GateKey::pause(scope, name), GateKey::hold(scope, name)]).collect()
}

/// A gate that isn't simply open, as the whole fleet sees it. An open gate has no record.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// Which gate.
    pub key: GateKey,
    /// Goes up with every change; a change names the one it read (0: there was no record).
    pub version: u64,
    /// Since when.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: Arc<str>,
    /// What kind of closed it is.
    pub closed: Closed,
}

/// The ways a gate can be closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closed {
    /// A person paused it.
    Paused,
    /// Those behind it want no more: each waits until a person takes them off the list.
    Suppressed,
    /// Its login was refused: nothing goes until a person or a good login opens it.
    Held {
        /// When one message may find out whether the login is good again; `None` if only a person opens it.
        probe_at: Option<Timestamp>,
    },
    /// The destination asked to be left alone until then.
    Throttled(Timestamp),
    /// Its breaker has tripped.
    Breaker(BreakerState),
}

impl GateRecord {
    /// Whether messages wait parked for this gate, rather than until a known time.
    pub fn parks(&self) -> bool {
        match &self.closed {
            Closed::Paused | Closed::Suppressed | Closed::Held { .. } => true,
            Closed::Throttled(_) => false,
            Closed::Breaker(state) => state.parks(),
        }
    }

    /// Whether it lets nothing through at this time.
    pub fn is_shut(&self, now: Timestamp) -> bool {
        match &self.closed {
            Closed::Throttled(until) => *until > now,
            Closed::Paused | Closed::Suppressed | Closed::Held { .. } | Closed::Breaker(_) => self.parks(),
        }
    }

    /// When it opens, or when one message finds out whether it does; `None` if only a person opens it.
    pub fn again_at(&self) -> Option<Timestamp> {
        match &self.closed {
            Closed::Paused | Closed::Suppressed => None,
            Closed::Held { probe_at } => *probe_at,
            Closed::Throttled(until) => Some(*until),
            Closed::Breaker(state) => Some(state.look_at()),
        }
    }
}

impl Closed {
    /// The word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Suppressed => "suppressed",
            Self::Held { .. } => "held",
            Self::Throttled(_) => "throttled",
            Self::Breaker(BreakerState::Open { .. } | BreakerState::Probing { .. }) => "breaker_open",
            Self::Breaker(BreakerState::Recovering { .. }) => "recovering",
        }
    }
}

/// What a gate says about one message before one try.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Go.
    Pass,
    /// Not now.
    Defer {
        /// Until when.
        until: Until,
        /// Why.
        reason: Arc<str>,
    },
    /// Never mind.
    Skip {
        /// Why.
        reason: Arc<str>,
    },
    /// Never.
    Refuse(Failure),
}

impl Verdict {
    /// The outcome that stands in for the try, unless the gate lets it pass.
    pub fn into_outcome(self) -> Option<Outcome> {
        match self {
            Self::Pass => None,
            Self::Defer { until, reason } => Some(Outcome::Deferred { until, reason }),
            Self::Skip { reason } => Some(Outcome::Skipped { reason }),
            Self::Refuse(failure) => Some(Outcome::Refused(failure)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_like_what_they_are() {
        assert_eq!(GateKey::pause(Scope::Route, "email").as_str(), "pause:route:email");
        assert_eq!(GateKey::hold(Scope::Sender, "a@b").to_string(), "hold:sender:a@b");
        assert_eq!(GateKey::breaker("mx"), GateKey::from_text("breaker:destination:mx"));
        assert_eq!(GateKey::throttle("mx").as_str(), "throttle:destination:mx");
        assert_eq!(GateKey::breaker("smtp://mx:25").parts(), ("breaker", "destination", "smtp://mx:25"));
        assert!(GateKey::suppression("w").is_suppression() && !GateKey::breaker("mx").is_suppression());
        assert_eq!(GateKey::prospect("c", "p-1").parts(), ("pause", "prospect", "c:p-1"));
        assert!(
            GateKey::prospect("c", "p-1").is_prospect() && !GateKey::suppression("prospect").is_prospect()
        );
    }

    #[test]
    fn only_a_gate_without_a_known_end_parks() {
        let record = |closed| GateRecord {
            key: GateKey::pause(Scope::Route, "r"),
            version: 1,
            since: Timestamp::default(),
            reason: "".into(),
            closed,
        };
        assert!(record(Closed::Paused).parks());
        assert!(record(Closed::Held { probe_at: None }).parks());
        assert!(!record(Closed::Throttled(Timestamp::MAX)).parks());
        let throttled = record(Closed::Throttled(Timestamp::from_ms(5)));
        assert!(throttled.is_shut(Timestamp::from_ms(4)) && !throttled.is_shut(Timestamp::from_ms(5)));
        assert_eq!(throttled.again_at(), Some(Timestamp::from_ms(5)));
        assert_eq!(record(Closed::Paused).again_at(), None);
    }

    #[test]
    fn a_closed_gate_is_written_and_read() {
        for closed in [
            Closed::Paused,
            Closed::Suppressed,
            Closed::Held { probe_at: Some(Timestamp::from_ms(3)) },
            Closed::Held { probe_at: None },
            Closed::Throttled(Timestamp::from_ms(5)),
        ] {
            let text = serde_json::to_string(&closed).unwrap();
            assert_eq!(serde_json::from_str::<Closed>(&text).unwrap(), closed);
        }
    }
}
