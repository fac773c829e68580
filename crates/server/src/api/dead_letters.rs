//! `GET /v1/dead-letters/groups`: what was given up, by the error that did it.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use redeliver_core::fingerprint::{fingerprint, shape};
use redeliver_core::{Lane, Message, Name, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::{Filter, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Server;
use crate::auth::Caller;
use crate::input::Params;
use crate::openapi::Looked;
use crate::problem::Problem;

/// Dead messages that are looked at, the newest, at most.
pub(crate) const LOOKED_AT_MAX: usize = 5_000;

/// Messages that are listed at once.
const PAGE_LEN: usize = 1_000;

/// Messages that are opened to learn where they were to go, at most. Only those are whose transport goes to several places,
/// which none does that speaks to a server.
const OPENED_MAX: usize = 50;

/// Destinations that are told of a group, at most.
const DESTINATIONS_MAX: usize = 20;

/// Hours that are told one by one.
const HOURS: usize = 24;
const HOUR_S: u64 = 3_600;

/// Dead messages by their error.
#[derive(Serialize, ToSchema)]
pub struct Groups {
    /// The largest first.
    pub items: Vec<GroupView>,
    /// How many dead messages were looked at: the newest 5,000 at most.
    pub looked_at: usize,
}

/// Dead messages with the same error.
#[derive(Serialize, ToSchema)]
pub struct GroupView {
    /// What it is found by: `filter.fingerprint` of a bulk operation takes it.
    pub fingerprint: String,
    /// The error, without what differs from message to message.
    pub error: String,
    /// How many.
    pub count: usize,
    /// When the first of them was given up; null if nobody knows that of any.
    #[schema(format = DateTime)]
    pub first_at: Option<String>,
    /// When the last of them was given up; null if nobody knows that of any.
    #[schema(format = DateTime)]
    pub last_at: Option<String>,
    /// Their routes.
    pub routes: Vec<String>,
    /// Where they were to go, as breakers and holds know it: a mail server, a broker. At most 20.
    pub destinations: Vec<String>,
    /// How many were given up in each of the last 24 hours, the oldest first.
    pub hours: Vec<u32>,
    /// One of them.
    pub example: String,
}

/// Dead messages with the same error, as they are counted.
pub(crate) struct Group {
    pub(crate) fingerprint: String,
    pub(crate) error: String,
    pub(crate) count: usize,
    pub(crate) first_at: Option<Timestamp>,
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) routes: BTreeSet<Name>,
    pub(crate) destinations: BTreeSet<Name>,
    pub(crate) hours: Vec<u32>,
    pub(crate) example: String,
}

/// Group dead messages by their error
#[utoipa::path(get, path = "/v1/dead-letters/groups", operation_id = "list_dead_letter_groups", tag = "dead letters",
    params(("route" = Option<String>, Query)),
    responses((status = 200, description = "The largest first", body = Groups), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Groups>, Problem> {
    let route = params.text("route").map(Name::from);
    params.finish()?;
    let (groups, looked_at) = groups(&server, &caller, route).await?;
    Ok(Json(Groups { items: groups.iter().map(GroupView::of).collect(), looked_at }))
}

/// The groups of the newest dead messages that whoever asks may know of, and how many these were.
pub(crate) async fn groups(
    server: &Server,
    caller: &Caller,
    route: Option<Name>,
) -> Result<(Vec<Group>, usize), StoreError> {
    let now = server.engine.clock().now();
    let mut filter = Filter {
        workspace: caller.workspace.clone(),
        route,
        state: Some("dead"),
        limit: PAGE_LEN,
        ..Filter::default()
    };
    let (mut found, mut looked_at) = (BTreeMap::new(), 0);
    let mut places = Places::new(&server.engine);
    loop {
        let page = server.engine.store().list(filter.clone()).await?;
        for message in &page {
            let destination = places.of(message).await?;
            add(&mut found, message, destination, now);
        }
        looked_at += page.len();
        filter.after = page.last().map(|message| message.id.clone());
        if page.len() < PAGE_LEN || looked_at >= LOOKED_AT_MAX {
            break;
        }
    }
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by(|one, other| (other.count, &one.error).cmp(&(one.count, &other.error)));
    Ok((groups, looked_at))
}

/// Where messages were to go.
struct Places<'a> {
    engine: &'a Engine,
    fixed: BTreeMap<(Name, Lane), Option<Name>>,
    opened: usize,
}

impl<'a> Places<'a> {
    fn new(engine: &'a Engine) -> Self {
        Self { engine, fixed: BTreeMap::new(), opened: 0 }
    }

    /// Where a message was to go, if that is known without opening too many.
    async fn of(&mut self, message: &Message) -> Result<Option<Name>, StoreError> {
        let lane = (message.route.clone(), message.lane);
        let fixed = self.fixed.entry(lane);
        let fixed = fixed.or_insert_with(|| self.engine.fixed_destination(&message.route, message.lane));
        if fixed.is_some() || self.opened >= OPENED_MAX {
            return Ok(fixed.clone());
        }
        self.opened += 1;
        let content = self.engine.store().content(message.id.clone()).await?;
        Ok(content.and_then(|content| self.engine.destination(message, &content)))
    }
}

fn add(groups: &mut BTreeMap<String, Group>, message: &Message, destination: Option<Name>, now: Timestamp) {
    let failure = message.last_error.as_ref();
    let at = message.state.ended_at().unwrap_or(message.created_at).known();
    let group = groups.entry(fingerprint(failure)).or_insert_with(|| Group {
        fingerprint: fingerprint(failure),
        error: failure.map_or_else(|| "no error was told".to_owned(), shape),
        count: 0,
        first_at: at,
        last_at: at,
        routes: BTreeSet::new(),
        destinations: BTreeSet::new(),
        hours: vec![0; HOURS],
        example: message.id.to_string(),
    });
    group.count += 1;
    group.first_at = group.first_at.into_iter().chain(at).min();
    group.last_at = group.last_at.max(at);
    group.routes.insert(message.route.clone());
    if group.destinations.len() < DESTINATIONS_MAX {
        group.destinations.extend(destination);
    }
    let hours_ago = at.map(|at| (now.since(at).as_secs() / HOUR_S) as usize);
    let place = hours_ago.and_then(|hours| HOURS.checked_sub(hours + 1));
    if let Some(hour) = place.and_then(|place| group.hours.get_mut(place)) {
        *hour += 1;
    }
}

impl GroupView {
    fn of(group: &Group) -> Self {
        Self {
            fingerprint: group.fingerprint.clone(),
            error: group.error.clone(),
            count: group.count,
            first_at: group.first_at.map(|at| at.to_string()),
            last_at: group.last_at.map(|at| at.to_string()),
            routes: group.routes.iter().map(ToString::to_string).collect(),
            destinations: group.destinations.iter().map(ToString::to_string).collect(),
            hours: group.hours.clone(),
            example: group.example.clone(),
        }
    }
}
