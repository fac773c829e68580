//! The gate itself: remembers, asks, and says what that means for a message.

use std::sync::Arc;

use async_trait::async_trait;
use redeliver_core::gate::Verdict;
use redeliver_core::outcome::Until;
use redeliver_core::{Content, Failure, Message, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::gate::Gate;
use reqwest::redirect::Policy;

use super::answer::{Standing, read};
use super::breaker::Breaker;
use super::cache::{Cache, Heard};
use super::config::EligibilityConfig;
use super::template::Filled;

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// What a message is cancelled for whose receiver isn't active.
const INELIGIBLE: &str = "ineligible";

/// Asks before each try whether whoever a message is for is active.
pub struct EligibilityGate {
    config: EligibilityConfig,
    /// Where the service is, without a slash at its end.
    base: String,
    /// What people call the service: its host.
    service: String,
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
    cache: Cache,
    breaker: Breaker,
}

impl EligibilityGate {
    /// A gate over the service of this config; `None` if it names none. Nobody is asked yet.
    pub fn new(config: EligibilityConfig, clock: Arc<dyn Clock>) -> Result<Option<Self>, String> {
        let Some(url) = &config.url else { return Ok(None) };
        let parsed = reqwest::Url::parse(url).map_err(|_| "its url is no URL".to_owned())?;
        let host = parsed.host_str().ok_or("its url has no host")?;
        let service = parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let base = url.trim_end_matches('/').to_owned();
        // Whoever came first has set it up, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(Policy::none()).no_proxy().timeout(config.timeout);
        let client = client.build().map_err(|error| format!("no client for it: {error}"))?;
        let breaker = Breaker::new(config.breaker.clone(), config.timeout * 2);
        Ok(Some(Self { base, service, client, clock, cache: Cache::default(), breaker, config }))
    }

    /// Asks the service, and remembers what it said.
    async fn ask(&self, path: String) -> (Timestamp, Heard) {
        let heard = self.hear(&path).await;
        let now = self.clock.now();
        match &heard {
            Ok(_) => self.breaker.answered(now),
            Err(why) => {
                if self.breaker.failed(now) {
                    tracing::warn!(
                        event = "gate.closed",
                        gate = self.name(),
                        service = self.service,
                        "the service that is asked about receivers is left alone for a while: {why}"
                    );
                }
            }
        }
        let span = if heard.is_ok() { self.config.cache_for } else { self.config.again_after };
        self.cache.put(path, heard.clone(), now, span);
        (now.plus(span), heard)
    }

    async fn hear(&self, path: &str) -> Heard {
        // An error of the client would repeat the address, and with it whom the message is for.
        let unheard = |error: reqwest::Error| match error.is_timeout() {
            true => "it did not answer in time".to_owned(),
            false if error.is_connect() => "it cannot be reached".to_owned(),
            false => "its answer broke off".to_owned(),
        };
        let mut answer = self.client.get(format!("{}{path}", self.base)).send().await.map_err(unheard)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unheard)? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(format!("its answer has more than {ANSWER_BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        read(&self.config, answer.status().as_u16(), &body)
    }

    /// What something heard means for a message.
    fn verdict(&self, (until, heard): (Timestamp, Heard)) -> Verdict {
        match heard {
            Ok(Standing::Active) => Verdict::Pass,
            Ok(Standing::Inactive) => Verdict::Skip { reason: INELIGIBLE.into() },
            Err(why) => Verdict::Defer {
                until: Until::At(until),
                reason: format!("{} was asked whether its receiver is active: {why}", self.service).into(),
            },
        }
    }

    fn left_alone(&self, until: Timestamp) -> Verdict {
        let reason = format!("{}, which says whether its receiver is active, does not answer", self.service);
        Verdict::Defer { until: Until::At(until), reason: reason.into() }
    }
}

#[async_trait]
impl Gate for EligibilityGate {
    fn name(&self) -> &str {
        "eligibility"
    }

    async fn check(&self, _: &Message, content: &Content, now: Timestamp) -> Verdict {
        let path = match self.config.path.fill(&content.attributes) {
            Filled::Path(path) => path,
            // There is nobody to ask about.
            Filled::Lacks(_) => return Verdict::Pass,
            Filled::Astray(name) => {
                let wrong = format!("the attribute {name} can be no part of an address");
                return Verdict::Refuse(Failure::new(wrong).with_code("BAD_ATTRIBUTE"));
            }
        };
        if let Some(heard) = self.cache.get(&path, now) {
            return self.verdict(heard);
        }
        match self.breaker.admit(now) {
            Ok(()) => self.verdict(self.ask(path).await),
            Err(until) => self.left_alone(until),
        }
    }

    fn known(&self, _: &Message, content: &Content, now: Timestamp) -> Option<Verdict> {
        let Filled::Path(path) = self.config.path.fill(&content.attributes) else { return None };
        match self.cache.get(&path, now) {
            Some(heard) => Some(self.verdict(heard)),
            None => self.breaker.closed_until(now).map(|until| self.left_alone(until)),
        }
    }
}
