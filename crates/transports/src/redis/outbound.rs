//! Writes messages, hundreds at once over one connection, and believes nothing but the server's word on each.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::outcome::Until;
use redeliver_core::{Failure, Name, Outcome};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};

use super::classify::{self, No};
use super::config::{OnConfirm, RedisConfig};
use super::dial::Dial;
use super::entry::{Parcel, is_taken};
use super::line::{Line, Trouble};
use super::ways::{NoWay, Ways};

/// What a transport without a server lacks.
pub const UNCONFIGURED: &str = "no server is configured: set REDIS_URL, or url of the transport";

/// How long a message waits where nothing but a config can help.
const UNCONFIGURED_WAIT: Duration = Duration::from_secs(60);
/// How long a message waits for a server that could not be reached; doubles with each failure.
const AWAY_WAIT: Duration = Duration::from_millis(500);
/// The longest of these waits.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a message waits for a key that has moved, or for a connection that took too long.
const SHORT_WAIT: Duration = Duration::from_millis(200);
/// How long a message waits while the server takes nothing.
const NOT_READY_WAIT: Duration = Duration::from_secs(2);
/// What is kept back, at most, for saying what came of a carrying before others give it up.
const RESERVE: Duration = Duration::from_millis(500);

/// Writes to the keys of one server or cluster.
pub struct RedisTransport {
    name: Name,
    config: RedisConfig,
    clock: Arc<dyn Clock>,
    ways: Option<Ways>,
}

impl RedisTransport {
    /// A transport to the server of this config. Nothing is connected yet; an error says what is wrong with the config.
    pub fn new(name: impl Into<Name>, config: RedisConfig, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let dial = Dial::new(&config.server)?;
        let ways = dial.map(|dial| Ways::new(Arc::new(dial), Arc::clone(&clock)));
        Ok(Self { name: name.into(), config, clock, ways })
    }

    fn put_off(&self, wait: Duration, reason: &str) -> Outcome {
        Outcome::Deferred { until: Until::At(self.clock.now().plus(wait)), reason: reason.into() }
    }

    /// A server out of reach costs no try; one that knows us and lets us not in holds everything that goes there.
    fn away(&self, NoWay { trouble, failures }: &NoWay) -> Outcome {
        if classify::is_login(trouble) {
            return Outcome::Failed(classify::login(trouble));
        }
        let wait = AWAY_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(AWAY_WAIT_MAX);
        self.put_off(wait, &format!("the server cannot be reached: {trouble}"))
    }

    /// Writes over an open connection and waits for the server's word.
    async fn write(&self, ways: &Ways, line: &Line, parcel: &Parcel<'_>, within: Duration) -> Outcome {
        let within = within.min(self.config.server.reply_timeout);
        let trouble = match line.ask(&parcel.command, within).await {
            Ok(answer) if is_taken(self.config.structure, &answer) => {
                return match self.config.on_confirm {
                    OnConfirm::Delivered => Outcome::Delivered { receipt: None },
                    OnConfirm::HandedOff => Outcome::HandedOff,
                };
            }
            Ok(_) => Trouble::Away("it answered something else".to_owned()),
            Err(trouble) => trouble,
        };
        match classify::no(&trouble) {
            No::Message(outcome) => outcome,
            No::NotReady => {
                self.put_off(NOT_READY_WAIT, &format!("the server takes nothing for now: {trouble}"))
            }
            No::Moved => {
                ways.forget_slots();
                if trouble.code() == Some(classify::DEMOTED) {
                    line.leave();
                }
                self.put_off(SHORT_WAIT, &format!("another server has it now: {trouble}"))
            }
            No::Unknown => Outcome::Lost { reason: format!("the server did not confirm: {trouble}").into() },
        }
    }
}

#[async_trait]
impl Transport for RedisTransport {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        let Some(ways) = &self.ways else { return self.put_off(UNCONFIGURED_WAIT, UNCONFIGURED) };
        let parcel = match Parcel::of(envelope, &self.config) {
            Ok(parcel) => parcel,
            Err(wrong) => return Outcome::Refused(Failure::new(wrong).with_code(classify::INVALID)),
        };
        let end = self.clock.uptime() + within.saturating_sub(RESERVE.min(within / 10));
        let left = || end.saturating_sub(self.clock.uptime());
        match tokio::time::timeout(left(), ways.to(parcel.key)).await {
            Ok(Ok(line)) => self.write(ways, &line, &parcel, left()).await,
            Ok(Err(no_way)) => self.away(&no_way),
            Err(_) => self.put_off(SHORT_WAIT, "connecting took too long"),
        }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        self.fixed_destination().unwrap_or_else(|| self.name.clone())
    }

    fn fixed_destination(&self) -> Option<Name> {
        Some(self.ways.as_ref().map_or_else(|| self.name.clone(), |ways| ways.dial.name().into()))
    }

    fn lacks(&self) -> Option<Arc<str>> {
        self.ways.is_none().then(|| UNCONFIGURED.into())
    }
}
