//! Carries mails to an SMTP server, each once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::email::Email;
use redeliver_core::outcome::Until;
use redeliver_core::{Failure, Name, Outcome};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};

use super::config::{Server, SmtpConfig};
use super::deadline::Deadline;
use super::mime::{self, Written};
use super::pool::Pool;
use super::reply::Stage;
use super::session::{Handed, Session};
use super::tls::Encryption;
use super::trouble::Trouble;
use super::verdict::{self, Places};

/// Why mails wait that have no server to go to.
pub const UNCONFIGURED: &str = "no SMTP server is configured: set SMTP_URL";

/// How long a mail waits before it is looked at again, where there is no server.
const UNCONFIGURED_WAIT: Duration = Duration::from_secs(30);
/// How long a mail waits that found every connection in use.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// A transport to one SMTP server.
pub struct SmtpTransport {
    name: Name,
    config: SmtpConfig,
    clock: Arc<dyn Clock>,
    server: Option<(Server, Encryption)>,
    pool: Pool,
}

impl SmtpTransport {
    /// A transport with this name. It connects when it has something to carry; an error says what is wrong with the
    /// config.
    pub fn new(name: impl Into<Name>, config: SmtpConfig, clock: Arc<dyn Clock>) -> Result<Self, String> {
        if let Some(problem) = config.problem() {
            return Err(problem);
        }
        let server = match &config.server {
            Some(server) => Some((server.clone(), Encryption::new(&config, &server.host)?)),
            None => None,
        };
        let pool = Pool::new(Arc::clone(&clock), config.connections_max, config.idle_timeout);
        Ok(Self { name: name.into(), config, clock, server, pool })
    }

    fn put_off(&self, wait: Duration, reason: &str) -> Outcome {
        Outcome::Deferred { until: Until::At(self.clock.now().plus(wait)), reason: reason.into() }
    }

    /// The mail that a message carries; what it comes to if it carries none that can be sent.
    fn write(&self, envelope: &Envelope<'_>) -> Result<Written, Outcome> {
        let refused = |text: String| Outcome::Refused(Failure::new(text).with_code("INVALID_MAIL"));
        let email = Email::of_content(envelope.content)
            .ok_or_else(|| refused("what the message carries is no e-mail".to_owned()))?
            // Where, but not what: the error would repeat a part of the mail.
            .map_err(|error| refused(format!("the e-mail cannot be read beyond byte {}", error.column())))?;
        let message = envelope.message;
        // Every try is the same mail: it is dated when it was first sent.
        let sent_at = message.first_sent_at.unwrap_or_else(|| self.clock.now());
        mime::write(&email, &self.config.from, &message.id, sent_at)
            .map_err(|wrong| refused(format!("the mail cannot be sent: {wrong}")))
    }

    async fn hand_over(
        &self,
        (server, encryption): &(Server, Encryption),
        mail: &Written,
        to: &[&str],
        deadline: &Deadline,
    ) -> Result<Handed, Trouble> {
        let kept = self.pool.take();
        let was_kept = kept.is_some();
        let mut begun = false;
        let first = async {
            let mut session = match kept {
                Some(session) => session,
                None => Session::open(&self.config, server, encryption, deadline).await?,
            };
            let handed = session.hand_over(mail, to, deadline).await;
            begun = session.has_begun;
            self.pool.give_back(session);
            handed
        };
        match first.await {
            Err(trouble) if deserves_a_fresh_connection(&trouble, was_kept && !begun) => {}
            result => return result,
        }
        let mut session = Session::open(&self.config, server, encryption, deadline).await?;
        let handed = session.hand_over(mail, to, deadline).await;
        self.pool.give_back(session);
        handed
    }
}

/// Whether the trouble lies with the connection rather than with the server: one that was kept too long, or on which
/// both sides no longer talk about the same thing. Nothing was handed over yet, so this is still the same try.
fn deserves_a_fresh_connection(trouble: &Trouble, was_kept_and_unused: bool) -> bool {
    match trouble {
        Trouble::Nonsense(..) => true,
        Trouble::Broken(_) => was_kept_and_unused,
        Trouble::Said(Stage::Mail, reply) => was_kept_and_unused && reply.code == 421,
        Trouble::Said(..) | Trouble::Unable(_) => false,
    }
}

#[async_trait]
impl Transport for SmtpTransport {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        let Some(server) = &self.server else {
            return self.put_off(UNCONFIGURED_WAIT, UNCONFIGURED);
        };
        let deadline = Deadline::new(&self.clock, within, self.config.data_timeout);
        let mail = match self.write(envelope) {
            Ok(mail) => mail,
            Err(outcome) => return outcome,
        };
        let count = u32::try_from(mail.to.len()).unwrap_or(u32::MAX);
        let (to, places) = addresses(&mail, &envelope.recipients_left(count));
        if to.is_empty() {
            // Everybody has a verdict already: together they are the message's.
            return Outcome::Partial(Vec::new());
        }
        let Ok(Some(_permit)) = deadline.wait(within, self.pool.permit()).await else {
            return self.put_off(BUSY_WAIT, "all connections to the server are in use");
        };
        match self.hand_over(server, &mail, &to, &deadline).await {
            Ok(handed) => verdict::outcome(envelope.message, count, &places, &handed),
            Err(trouble) => trouble.outcome(),
        }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        self.fixed_destination().unwrap_or_else(|| self.name.clone())
    }

    fn fixed_destination(&self) -> Option<Name> {
        Some(self.server.as_ref().map_or_else(|| self.name.clone(), |(server, _)| server.name().into()))
    }

    fn carries_emails(&self) -> bool {
        true
    }

    fn lacks(&self) -> Option<Arc<str>> {
        self.server.is_none().then(|| UNCONFIGURED.into())
    }
}

/// The addresses of those recipients, each once, and which of them each recipient has.
fn addresses<'a>(mail: &'a Written, left: &[u32]) -> (Vec<&'a str>, Places) {
    let mut to: Vec<&str> = Vec::new();
    let mut places = Places::new();
    for index in left {
        let Some(address) = mail.to.get(*index as usize) else { continue };
        let at = to.iter().position(|known| known == address).unwrap_or_else(|| {
            to.push(address);
            to.len() - 1
        });
        places.push((*index, at));
    }
    (to, places)
}
