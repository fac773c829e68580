//! A server over the memory store, with a mail relay that is broken until somebody mends it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use redeliver_core::accept::NewMessage;
use redeliver_core::campaign::{CampaignState, Ends, Ledger};
use redeliver_core::change::Audit;
use redeliver_core::email::{Email, Mailbox};
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Failure, Message, MessageId, Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::access::{Access, Role};
use redeliver_engine::campaigns::{CampaignRecord, Campaigns};
use redeliver_engine::clock::{Clock, ManualClock, WallClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use redeliver_server::auth::secret::NewKey;
use redeliver_server::limits::Limits;
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability, Server, router};
use serde_json::json;

use crate::reader::Reader;

/// Tries that a mail has in all.
pub const TRIES_MAX: u32 = 6;

/// A server and what is behind it.
pub struct Stage {
    pub store: Arc<MemoryStore>,
    pub engine: Arc<Engine>,
    pub router: Router,
}

/// Takes no message: refuses those that are about `lost`, and asks for the others later.
pub struct Relay {
    pub takes_mails: bool,
}

#[async_trait]
impl Transport for Relay {
    async fn carry(&self, envelope: &Envelope<'_>, _: Duration) -> Outcome {
        match String::from_utf8_lossy(&envelope.content.bytes).contains("lost") {
            true => Outcome::Refused(Failure::new("5.1.1 no such user here").with_code("550")),
            false => Outcome::Failed(Failure::new("4.3.2 try again later").with_code("451")),
        }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "relay.example".into()
    }

    fn carries_emails(&self) -> bool {
        self.takes_mails
    }
}

impl Stage {
    /// A server whose clock is the machine's.
    pub fn new() -> Self {
        Self::at(WallClock::new(Timestamp::default()))
    }

    /// A server whose clock is moved by hand.
    pub fn with_hand_on_clock() -> (Self, Arc<ManualClock>) {
        let clock = ManualClock::at(Timestamp::from_ms(1_796_115_600_000));
        (Self::at(clock.clone()), clock)
    }

    fn at(clock: Arc<dyn Clock>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let policy = Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(1_800)]),
            jitter: Jitter::None,
            max_attempts: TRIES_MAX,
            expires_after: None,
        };
        let relay = |takes_mails| Arc::new(Relay { takes_mails }) as Arc<dyn Transport>;
        let transports = [("relay".into(), relay(true)), ("pager".into(), relay(false))].into();
        let line = |name: &str, transport: &str| {
            Line::new(Route::new(name, transport, policy.clone()), &transports, Vec::new()).unwrap()
        };
        let mut email = line("email", "relay");
        email.route.key_retention = None;
        let lines = vec![email, line("sms", "pager")];
        let engine = Engine::new(store.clone(), clock, Arc::new(Silence), Settings::default(), lines);
        let engine = Arc::new(engine.with_campaigns(store.clone()));
        let server = Server::new(
            engine.clone(),
            store.clone(),
            None,
            Durability::Full,
            Limits::default(),
            Metrics::default(),
        );
        Self { store, engine, router: router(server) }
    }

    /// A new key of this role, for one workspace or all of them.
    pub async fn key(&self, name: &str, role: Role, workspace: Option<&str>) -> NewKey {
        let now = self.engine.clock().now();
        let key = NewKey::make(name, role, workspace.map(Into::into), now).unwrap();
        let audit =
            Audit { actor: "stage".into(), action: "create", subject: name.into(), at: now, detail: None };
        assert!(self.store.add_key(key.record.clone(), audit).await.unwrap());
        key
    }

    /// Somebody who has logged in with a new key of this role.
    pub async fn reader(&self, role: Role, workspace: Option<&str>) -> Reader {
        let key = self.key(role.name(), role, workspace).await;
        let mut reader = Reader::new(&self.router);
        assert_eq!(reader.log_in(&key.text).await.location(), "/admin");
        reader
    }

    /// Has something accepted.
    pub async fn accept(&self, new: NewMessage) -> MessageId {
        match self.engine.accept(vec![new]).await.unwrap().pop() {
            Some(Accepted::New(id)) => id,
            other => panic!("not accepted: {other:?}"),
        }
    }

    /// A mail that waits for its second try.
    pub async fn pending(&self, subject: &str) -> MessageId {
        let error = Some(Failure::new("4.3.2 try again later").with_code("451"));
        self.accept(NewMessage { attempts: 1, error, ..mail(subject) }).await
    }

    /// A mail whose tries are used up.
    pub async fn failed(&self, subject: &str) -> MessageId {
        let error = Some(Failure::new("4.2.2 mailbox full").with_code("452"));
        self.accept(NewMessage { attempts: TRIES_MAX, error, ..mail(subject) }).await
    }

    /// A campaign of two steps for these prospects, launched; a draft if there are none.
    pub async fn campaign(&self, workspace: &str, name: &str, sender: &str, prospects: &[&str]) -> Name {
        let step = |order: u32, days: u32, subject: &str| json!({ "order": order, "delay_days": days, "subject": subject, "text": "Hello" });
        // What would be no template is none.
        let subject = if name.contains('{') { "Again" } else { name };
        let definition = json!({ "name": name, "sequence_id": "seq", "route": "email",
            "from": { "address": sender, "name": name }, "steps": [step(1, 0, "Hi"), step(2, 3, subject)],
            "settings": { "daily_quota": 2, "ramp_up": [1, 2], "zone": "Europe/Paris" } });
        let at = self.engine.clock().now();
        let id: Name = format!("of-{}", prospects.len()).into();
        let record = CampaignRecord {
            id: id.clone(),
            workspace: workspace.into(),
            definition: serde_json::from_value(definition).unwrap(),
            state: CampaignState::Draft,
            ledger: Ledger::default(),
            prospects: 0,
            scheduled: 0,
            last_at: None,
            paused_for: None,
            ends: Ends::default(),
            created_at: at,
        };
        let audit = Audit { actor: "stage".into(), action: "create", subject: name.into(), at, detail: None };
        assert!(self.store.add_campaign(record, audit).await.unwrap());
        let enrolled = prospects.iter().map(|id| json!({ "id": id, "email": "p@example.org" }));
        let enrolled = enrolled.map(|prospect| serde_json::from_value(prospect).unwrap()).collect();
        self.store.enrol(&id, enrolled).await.unwrap();
        if !prospects.is_empty() {
            self.engine.launch_campaign(&id, &"stage".into()).await.unwrap();
        }
        id
    }

    /// A message as it stands.
    pub async fn get(&self, id: &MessageId) -> Message {
        self.store.get(id.clone()).await.unwrap().unwrap()
    }

    /// What people did to a message, newest first: who and what.
    pub async fn deeds(&self, id: &MessageId) -> Vec<(String, &'static str)> {
        let all = self.store.audit(1_000).await.unwrap();
        let of_message = all.into_iter().filter(|audit| *audit.subject == id.to_string());
        of_message.map(|audit| (audit.actor.to_string(), audit.action)).collect()
    }
}

/// A mail about something.
pub fn mail(subject: &str) -> NewMessage {
    let to = Mailbox { address: "ada@example.org".to_owned(), name: Some("Ada Lovelace".to_owned()) };
    let email = Email {
        to: vec![to],
        subject: subject.to_owned(),
        text: Some("Your booking is confirmed.".to_owned()),
        ..Email::default()
    };
    NewMessage::new("email", email.to_content().unwrap())
}

/// Something that is no mail.
pub fn sms() -> NewMessage {
    NewMessage { attempts: TRIES_MAX, ..NewMessage::new("sms", Content::of_bytes("no mail")) }
}
