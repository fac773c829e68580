//! Leases due messages to this instance.

use std::time::Duration;

use redeliver_core::{Lane, Timestamp};
use tokio::sync::SemaphorePermit;

use crate::engine::{Engine, Line};
use crate::stop::Stop;
use crate::store::{ClaimKind, ClaimRequest, Claims, StoreError};

/// What one claim brought.
pub(crate) struct Claimed<'a> {
    pub(crate) lane: Lane,
    pub(crate) kind: ClaimKind,
    /// How many permits were taken for it.
    pub(crate) limit: usize,
    /// When it was asked for: leases are counted from before the claim was made.
    pub(crate) asked: Asked,
    pub(crate) result: Result<Claims, StoreError>,
    /// What keeps other suspects waiting while this one is in the air.
    pub(crate) alone: Option<SemaphorePermit<'a>>,
}

/// When a claim was asked for, by both clocks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Asked {
    /// The time, for people.
    pub(crate) at: Timestamp,
    /// Uptime, which the lease is counted from.
    pub(crate) uptime: Duration,
}

impl Asked {
    /// The moment at which something is claimed now.
    pub(crate) fn now(engine: &Engine) -> Self {
        let uptime = engine.clock.uptime();
        Self { at: engine.clock.now(), uptime }
    }
}

/// Claims up to `limit` messages of a lane; a suspect only when no other one is in the air.
pub(crate) async fn claim<'a>(
    engine: &'a Engine,
    line: &'a Line,
    lane: Lane,
    kind: ClaimKind,
    limit: usize,
    stop: Stop,
) -> Claimed<'a> {
    let alone = match kind {
        ClaimKind::Trusted => None,
        ClaimKind::Suspect => engine.suspects.acquire().await.ok(),
    };
    let asked = Asked::now(engine);
    // Much may have happened while it waited for its turn.
    if stop.is_stopped() || !engine.life.is_fresh(asked.uptime, line.route.send_timeout) {
        return Claimed { lane, kind, limit, asked, result: Ok(Claims::default()), alone };
    }
    let request = ClaimRequest {
        route: line.route.name.clone(),
        lane,
        limit,
        kind,
        instance: engine.instance,
        now: asked.at,
        lease: line.route.lease,
        keeps_first_send: line.transport(lane).carries_emails(),
    };
    let result = engine.store.claim(request).await;
    Claimed { lane, kind, limit, asked, result, alone }
}
