//! `GET /v1/stats`: how many messages stand where.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use redeliver_core::Timestamp;
use redeliver_engine::pulse::Minute;
use redeliver_engine::store::Count;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Server;
use crate::auth::Caller;
use crate::input::Params;
use crate::openapi::Looked;
use crate::problem::Problem;

/// How many messages stand where, in one snapshot.
#[derive(Serialize, ToSchema)]
pub struct Stats {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// All routes together.
    pub total: Standing,
    /// Each route with messages.
    pub routes: BTreeMap<String, Standing>,
    /// Each route's priorities with messages.
    pub lanes: Vec<LaneStanding>,
}

/// How many messages stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Standing {
    /// Waiting: due, held or for later.
    pub waiting: u64,
    /// Those of them whose time has come. On PostgreSQL they are counted up to 10,000 for each route and priority: beyond
    /// that, at least so many.
    pub due: u64,
    /// Those of them that wait for a gate.
    pub held: u64,
    /// With a worker.
    pub sending: u64,
    /// With an outside worker.
    pub handed_off: u64,
    /// Delivered, while they are kept.
    pub delivered: u64,
    /// Given up and not put away.
    pub dead: u64,
    /// Cancelled, while they are kept.
    pub cancelled: u64,
    /// The dead by reason.
    pub dead_by_reason: BTreeMap<String, u64>,
}

/// How many messages of one priority stand where.
#[derive(Serialize, ToSchema)]
pub struct LaneStanding {
    /// Of which route.
    pub route: String,
    /// Of which priority.
    pub priority: &'static str,
    /// How many.
    #[serde(flatten)]
    pub standing: Standing,
}

impl Standing {
    /// Counts these too.
    pub fn add(&mut self, count: &Count) {
        let place = match count.state {
            "waiting" => &mut self.waiting,
            "claimed" => &mut self.sending,
            "handed_off" => &mut self.handed_off,
            "delivered" => &mut self.delivered,
            "dead" => &mut self.dead,
            _ => &mut self.cancelled,
        };
        *place += count.count;
        self.due += count.due;
        self.held += count.parked;
        if let Some(reason) = count.reason {
            *self.dead_by_reason.entry(reason.to_owned()).or_default() += count.count;
        }
    }
}

impl Stats {
    /// The sums of these counts.
    pub fn of(counts: &[Count], now: Timestamp) -> Self {
        let mut total = Standing::default();
        let mut routes: BTreeMap<String, Standing> = BTreeMap::new();
        let mut lanes: BTreeMap<(String, _), Standing> = BTreeMap::new();
        for count in counts {
            total.add(count);
            routes.entry(count.route.to_string()).or_default().add(count);
            lanes.entry((count.route.to_string(), count.lane)).or_default().add(count);
        }
        let lane = |((route, lane), standing): ((String, redeliver_core::Lane), Standing)| LaneStanding {
            route,
            priority: lane.name(),
            standing,
        };
        Self { at: now.to_string(), total, routes, lanes: lanes.into_iter().map(lane).collect() }
    }
}

/// What this instance has done, minute by minute.
#[derive(Serialize, ToSchema)]
pub struct Minutes {
    /// The last three hours, oldest first, those minutes included in which nothing happened.
    pub items: Vec<MinuteView>,
}

/// What happened in one minute.
#[derive(Serialize, ToSchema)]
pub struct MinuteView {
    /// When it began.
    #[schema(format = DateTime)]
    pub at: String,
    /// Messages that the other side took, or that were reported so.
    pub delivered: u32,
    /// Messages that a broker took, for somebody who will report: not delivered yet.
    pub handed_off: u32,
    /// Tries that failed and will be made again.
    pub retried: u32,
    /// Messages given up.
    pub dead: u32,
    /// How late half of what was carried was, at most; null if nothing was.
    pub lateness_p50_ms: Option<u64>,
    /// How late 99 of 100 were, at most.
    pub lateness_p99_ms: Option<u64>,
}

impl MinuteView {
    fn of(minute: &Minute) -> Self {
        let late_ms = |share| minute.lateness(share).map(|late| late.as_millis() as u64);
        Self {
            at: minute.at.to_string(),
            delivered: minute.delivered,
            handed_off: minute.handed_off,
            retried: minute.retried,
            dead: minute.dead,
            lateness_p50_ms: late_ms(0.5),
            lateness_p99_ms: late_ms(0.99),
        }
    }
}

/// Look at what this instance has done, minute by minute
///
/// Of the instance that answers, since it started: `/metrics` of each has what lasts longer.
#[utoipa::path(get, path = "/v1/stats/minutes", operation_id = "list_minutes", tag = "stats",
    responses((status = 200, description = "The last three hours", body = Minutes), Looked))]
pub async fn minutes(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Minutes>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    let minutes = server.engine.pulse().minutes(server.engine.clock().now());
    Ok(Json(Minutes { items: minutes.iter().map(MinuteView::of).collect() }))
}

/// Count messages
#[utoipa::path(get, path = "/v1/stats", tag = "stats",
    responses((status = 200, description = "How many stand where", body = Stats), Looked))]
pub async fn stats(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Stats>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    let now = server.engine.clock().now();
    Ok(Json(Stats::of(&server.engine.store().counts(now).await?, now)))
}
