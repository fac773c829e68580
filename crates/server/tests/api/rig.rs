//! A whole server in this process: the real engine over the reference store, and a receiver that does as it is told.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use redeliver_core::change::Audit;
use redeliver_core::email::Email;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Failure, Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::access::{Access, Role};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use redeliver_server::auth::secret::{AdminKey, NewKey};
use redeliver_server::limits::Limits;
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability, Server, router};
use serde_json::Value;
use tower::ServiceExt;

/// The first key.
pub const ADMIN: &str = "the-first-key-of-all";

/// Does what the payload or an e-mail's text says: `refuse`, `fail`, `hand_off`, `hang`; anything else arrives.
struct Peer {
    takes_mails: bool,
}

#[async_trait]
impl Transport for Peer {
    async fn carry(&self, envelope: &Envelope<'_>, _: Duration) -> Outcome {
        let email = Email::of_content(envelope.content).and_then(Result::ok);
        let said = email.and_then(|email| email.text).map(|text| format!("\"{text}\"").into_bytes());
        match said.as_deref().unwrap_or(&envelope.content.bytes) {
            b"\"refuse\"" => Outcome::Refused(Failure::new("no such user").with_code("550")),
            b"\"fail\"" => Outcome::Failed(Failure::new("try later").with_code("451")),
            b"\"hand_off\"" => Outcome::HandedOff,
            b"\"hang\"" => std::future::pending().await,
            _ => Outcome::Delivered { receipt: Some("250 ok".into()) },
        }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "peer".into()
    }

    fn carries_emails(&self) -> bool {
        self.takes_mails
    }
}

/// A server, and whoever stops what runs in it.
pub struct Rig {
    pub server: Server,
    pub store: Arc<MemoryStore>,
    router: Router,
    _stopper: Option<Stopper>,
}

/// What a call came to.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Rig {
    /// A server whose engine carries nothing.
    pub fn still() -> Self {
        Self::with(Limits::default(), Some(ADMIN))
    }

    pub fn with(limits: Limits, admin_key: Option<&str>) -> Self {
        Self::at(WallClock::new(Timestamp::default()), limits, admin_key)
    }

    /// A server whose engine carries nothing, by this clock.
    pub fn at(clock: Arc<dyn Clock>, limits: Limits, admin_key: Option<&str>) -> Self {
        let policy = Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(60)]),
            jitter: Jitter::None,
            max_attempts: 3,
            expires_after: None,
        };
        let peer = |name: &str| {
            let peer: Arc<dyn Transport> = Arc::new(Peer { takes_mails: name != "sms" });
            HashMap::<Name, _>::from([("peer".into(), peer)])
        };
        let line = |name: &str| {
            let route =
                Route { send_timeout: Duration::from_secs(20), ..Route::new(name, "peer", policy.clone()) };
            Line::new(route, &peer(name), Vec::new()).unwrap()
        };
        let store = Arc::new(MemoryStore::new());
        let mut campaign = line("campaign");
        campaign.route.key_retention = None;
        let lines = vec![line("email"), line("sms"), campaign];
        let engine = Engine::new(store.clone(), clock, Arc::new(Silence), Settings::default(), lines);
        let engine = engine.with_campaigns(store.clone());
        let server = Server::new(
            Arc::new(engine),
            store.clone(),
            admin_key.map(|text| AdminKey::new(text).unwrap()),
            Durability::Memory,
            limits,
            Metrics::default(),
        );
        Self { router: router(server.clone()), server, store, _stopper: None }
    }

    /// A server whose engine carries.
    pub async fn running() -> Self {
        let mut rig = Self::still();
        let (stopper, stop) = stop_pair();
        tokio::spawn(Arc::clone(&rig.server.engine).bulks(stop.clone()));
        for part in Arc::clone(&rig.server.engine).parts(stop).await {
            tokio::spawn(part);
        }
        rig._stopper = Some(stopper);
        rig
    }

    /// Makes a key.
    pub async fn key(&self, role: Role, workspace: Option<&str>) -> String {
        let now = self.server.engine.clock().now();
        let new = NewKey::make(role.name(), role, workspace.map(Into::into), now).unwrap();
        let audit = Audit {
            actor: "test".into(),
            action: "create_key",
            subject: new.record.id.clone(),
            at: now,
            detail: None,
        };
        assert!(self.store.add_key(new.record, audit).await.unwrap());
        new.text
    }

    /// Asks with the first key.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Some(ADMIN), "").await
    }

    /// Sends JSON with the first key.
    pub async fn post(&self, path: &str, json: &str) -> Answer {
        self.call("POST", path, Some(ADMIN), json).await
    }

    pub async fn call(&self, method: &str, path: &str, key: Option<&str>, json: &str) -> Answer {
        self.call_with(method, path, key, &[("content-type", "application/json")], json.to_owned()).await
    }

    pub async fn call_with(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    /// Has a message accepted, and gives its id.
    pub async fn accept(&self, json: &str) -> String {
        let answer = self.post("/v1/messages", json).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a message has this status.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        self.until_so(&format!("/v1/messages/{id}"), |message| message["status"] == status).await
    }

    /// Asks again and again, until the answer is as it should be.
    pub async fn until_so(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut told = Value::Null;
        for _ in 0..6_000 {
            told = self.get(path).await.json();
            if is_so(&told) {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{path} never became what it should be: {told}")
    }
}
