//! `/admin/live`: tells open pages that something has changed, so that they look again. It says only that: what changed is
//! on the page, which asks for itself and is answered as anybody is.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use redeliver_core::MessageId;
use redeliver_engine::stop::Stop;
use redeliver_engine::store::StoreError;

use super::Console;
use super::guard::Visitor;
use super::refusal::Refusal;
use crate::Server;
use crate::api::messages::find;
use crate::input::Params;

/// How often it looks, for all who listen together.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks before it ends. The browser comes again, and is let in again or not.
const LOOKS_MAX: usize = 60;

/// Bulk operations that are looked at.
const BULKS_MAX: usize = 10;

/// How everything stood when it was looked at last, by how long this process has run.
#[derive(Default)]
pub(super) struct Live(Mutex<Option<(Duration, Arc<str>)>>);

/// Somebody who listens.
struct Listener {
    console: Console,
    message: Option<MessageId>,
    stop: Option<Stop>,
    known: Option<Arc<str>>,
    looks: usize,
}

/// `GET /admin/live`
pub(super) async fn listen(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    stop: Option<Extension<Stop>>,
    mut params: Params,
) -> Result<Response, Refusal> {
    let message =
        params.get("message", |id: &str| id.parse::<MessageId>().map_err(|_| "is no id".to_owned()));
    params.finish()?;
    if let Some(id) = &message {
        find(&console.server, &visitor.caller, id).await?;
    }
    let stop = stop.map(|Extension(stop)| stop);
    let listener = Listener { console, message, stop, known: None, looks: 0 };
    let said = stream::unfold(listener, |mut listener| async {
        let said = listener.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from_static(said.as_bytes())), listener))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((headers, Body::from_stream(said)).into_response())
}

impl Listener {
    /// What to say next; `None` at the end. The first word comes at once: something may have changed since the page was
    /// made.
    async fn next(&mut self) -> Option<&'static str> {
        while self.looks < LOOKS_MAX {
            if self.looks > 0 && !self.wait().await {
                return None;
            }
            self.looks += 1;
            let server = &self.console.server;
            let now = match &self.message {
                Some(id) => one(server, id).await,
                None => self.console.live.all(server).await,
            };
            let now = now.ok()?;
            if self.known.as_ref() != Some(&now) {
                self.known = Some(now);
                return Some("event: changed\ndata:\n\n");
            }
            // Whoever has gone away is noticed by what can't be sent to them.
            if self.looks.is_multiple_of(10) {
                return Some(": still here\n\n");
            }
        }
        None
    }

    /// Waits for the next look; `false` if everything stops.
    async fn wait(&mut self) -> bool {
        let sleep = self.console.server.engine.clock().sleep(LOOK_EVERY);
        match &mut self.stop {
            None => {
                sleep.await;
                true
            }
            Some(stop) => {
                tokio::select! {
                    () = stop.stopped() => false,
                    () = sleep => true,
                }
            }
        }
    }
}

impl Live {
    /// How everything stands, in a text that is the same while nothing changes.
    async fn all(&self, server: &Server) -> Result<Arc<str>, StoreError> {
        let uptime = server.engine.clock().uptime();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, standing)) = known
            && uptime.saturating_sub(at) < LOOK_EVERY / 2
        {
            return Ok(standing);
        }
        let store = server.engine.store();
        let counts = store.counts(server.engine.clock().now()).await?;
        let mut bulks = store.bulks(None, BULKS_MAX).await?;
        bulks.extend(store.running_bulks(None, BULKS_MAX).await?);
        let bulks: Vec<(Arc<str>, u64)> = bulks.into_iter().map(|bulk| (bulk.id, bulk.version)).collect();
        let gates: Vec<(String, u64)> =
            store.gates().await?.into_iter().map(|gate| (gate.key.to_string(), gate.version)).collect();
        let standing: Arc<str> = format!("{counts:?} {bulks:?} {gates:?}").into();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((uptime, Arc::clone(&standing)));
        Ok(standing)
    }
}

/// How one message stands: its fence goes up with every change.
async fn one(server: &Server, id: &MessageId) -> Result<Arc<str>, StoreError> {
    let message = server.engine.store().get(id.clone()).await?;
    Ok(message.map_or_else(|| "gone".into(), |message| message.fence.to_string().into()))
}
