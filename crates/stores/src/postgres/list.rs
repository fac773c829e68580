//! Lists messages, the newest first.
//!
//! A status has an index of its own, and so has each name. Which of them leads to a page sooner depends on what is in
//! them, so that each is tried for a little while before one is walked to its end.

use std::cmp::Reverse;

use redeliver_core::Message;
use redeliver_core::status::Status;
use redeliver_engine::store::Filter;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::columns::Param;
use super::errors::{Fault, own};
use super::limit;
use super::rows::{self, MESSAGE_COLUMNS, get};
use crate::asked::Wanted;
use crate::standing::Names;

/// Messages that are looked at in one index before another one is tried, and at once when there is no other.
const SEEN_FIRST: i64 = 5_000;
const SEEN_FURTHER: i64 = 50_000;

/// Messages that are put in order for one page, at most.
const SORTED_MAX: i64 = 150_000;

pub(super) async fn list(db: &Client, filter: &Filter) -> Result<Vec<Message>, Fault> {
    let Some(wanted) = Wanted::by(filter) else { return Ok(Vec::new()) };
    let asked = Asked { db, filter, rows: RowsWanted::of(&wanted) };
    if filter.key.is_some() {
        return asked.by_key().await;
    }
    let mut walks: Vec<Walk> = asked.indexes(&wanted).iter().map(|sql| Walk::new(sql)).collect();
    if let Some(page) = asked.go_on(&mut walks, SEEN_FIRST).await? {
        return Ok(page);
    }
    if asked.has_names()
        && let Some(page) = asked.go_on(&mut [Walk::new(BY_NAME)], SEEN_FIRST).await?
    {
        return Ok(page);
    }
    if let Some(sql) = by_time(&wanted)
        && let Some(page) = asked.in_order(sql).await?
    {
        return Ok(page);
    }
    loop {
        if let Some(page) = asked.go_on(&mut walks, SEEN_FURTHER).await? {
            return Ok(page);
        }
    }
}

const BY_NAME: &str = include_str!("sql/list_by_name.sql");

/// Where those that wait are found by their time.
fn by_time(wanted: &Wanted) -> Option<&'static str> {
    match wanted {
        Wanted::Due { .. } => Some(include_str!("sql/list_due.sql")),
        Wanted::Waiting { .. } => Some(include_str!("sql/list_later.sql")),
        Wanted::Any | Wanted::State(_) | Wanted::Parked => None,
    }
}

/// A question that is under way.
struct Asked<'a> {
    db: &'a Client,
    filter: &'a Filter,
    rows: RowsWanted,
}

/// What a filter's state and status come to for a row; what is not said may be either.
#[derive(Default)]
struct RowsWanted {
    state: Option<i16>,
    is_parked: Option<bool>,
    is_tried: Option<bool>,
    /// Whether its time has come by `now`.
    is_due: Option<bool>,
    now_ms: i64,
}

/// How far an index has been walked, and what was found there.
struct Walk {
    sql: &'static str,
    found: Vec<Message>,
    /// The first that was not looked at.
    edge: Option<Uuid>,
    is_begun: bool,
}

impl RowsWanted {
    fn of(wanted: &Wanted) -> Self {
        let all = Self { state: wanted.state(), ..Self::default() };
        match wanted {
            Wanted::Any | Wanted::State(_) => all,
            Wanted::Parked => Self { is_parked: Some(true), ..all },
            Wanted::Due { now } => {
                Self { is_parked: Some(false), is_due: Some(true), now_ms: now.as_ms(), ..all }
            }
            Wanted::Waiting { now, tried } => Self {
                is_parked: Some(false),
                is_due: Some(false),
                is_tried: Some(*tried),
                now_ms: now.as_ms(),
                ..all
            },
        }
    }
}

impl Walk {
    fn new(sql: &'static str) -> Self {
        Self { sql, found: Vec::new(), edge: None, is_begun: false }
    }
}

impl Asked<'_> {
    /// The indexes that have between them whatever is wanted.
    fn indexes(&self, wanted: &Wanted) -> &'static [&'static str] {
        const CLAIMED: &str = include_str!("sql/list_claimed.sql");
        const HANDED_OFF: &str = include_str!("sql/list_handed_off.sql");
        const DELIVERED: &str = include_str!("sql/list_delivered.sql");
        const DEAD: &str = include_str!("sql/list_dead.sql");
        const DISMISSED: &str = include_str!("sql/list_dismissed.sql");
        const CANCELLED: &str = include_str!("sql/list_cancelled.sql");
        const PARKED: &str = include_str!("sql/list_parked.sql");
        const WAITING: &str = include_str!("sql/list_waiting.sql");
        const ALL: &str = include_str!("sql/list.sql");
        match wanted {
            Wanted::State("claimed") => &[CLAIMED],
            Wanted::State("handed_off") => &[HANDED_OFF],
            Wanted::State("delivered") => &[DELIVERED],
            Wanted::State("dead") if self.filter.with_dismissed => &[DEAD, DISMISSED],
            Wanted::State("dead") => &[DEAD],
            Wanted::State("cancelled") => &[CANCELLED],
            Wanted::State(_) => &[WAITING, PARKED],
            Wanted::Parked => &[PARKED],
            Wanted::Due { .. } | Wanted::Waiting { .. } => &[WAITING],
            Wanted::Any if self.has_names() => &[BY_NAME],
            Wanted::Any => &[ALL],
        }
    }

    fn has_names(&self) -> bool {
        self.filter.workspace.is_some() || self.filter.route.is_some() || self.filter.lane.is_some()
    }

    /// Goes on with walks that have not ended; a page, if there is one now.
    async fn go_on(&self, walks: &mut [Walk], seen: i64) -> Result<Option<Vec<Message>>, Fault> {
        for walk in walks.iter_mut() {
            if walk.is_begun && walk.edge.is_none() {
                continue;
            }
            let from = match walk.edge {
                // From the edge on, and with it.
                Some(edge) => Some(Uuid::from_u128(edge.as_u128().saturating_add(1))),
                None => self.after(),
            };
            let (found, edge) = self.look(walk.sql, from, seen).await?;
            walk.found.extend(found);
            walk.edge = edge.as_ref().and_then(|message| own(&message.id));
            walk.is_begun = true;
        }
        let edge = walks.iter().filter_map(|walk| walk.edge).max();
        let is_sure = |message: &&Message| edge.is_none_or(|edge| own(&message.id) > Some(edge));
        let mut page: Vec<&Message> = walks.iter().flat_map(|walk| &walk.found).filter(is_sure).collect();
        if edge.is_some() && page.len() < self.filter.limit {
            return Ok(None);
        }
        page.sort_by_key(|message| Reverse(own(&message.id)));
        page.truncate(self.filter.limit);
        Ok(Some(page.into_iter().cloned().collect()))
    }

    /// The page, put in order from whatever fits; nothing, if too much does.
    async fn in_order(&self, sql: &str) -> Result<Option<Vec<Message>>, Fault> {
        let (found, edge) = self.look(sql, self.after(), SORTED_MAX).await?;
        Ok(edge.is_none().then_some(found))
    }

    /// What fits of so many, and the edge beyond which nobody looked.
    async fn look(
        &self,
        sql: &str,
        after: Option<Uuid>,
        seen: i64,
    ) -> Result<(Vec<Message>, Option<Message>), Fault> {
        let Self { filter, rows, .. } = self;
        let params: [Param<'_>; 12] = [
            (&after, Type::UUID),
            (&filter.workspace.as_deref(), Type::TEXT),
            (&filter.route.as_deref(), Type::TEXT),
            (&limit(filter.limit), Type::INT8),
            (&filter.lane.map(|lane| lane as i16), Type::INT2),
            (&seen, Type::INT8),
            (&rows.now_ms, Type::INT8),
            (&rows.state, Type::INT2),
            (&filter.with_dismissed, Type::BOOL),
            (&rows.is_parked, Type::BOOL),
            (&rows.is_tried, Type::BOOL),
            (&rows.is_due, Type::BOOL),
        ];
        let (mut found, mut edge, mut names) = (Vec::new(), None, Names::default());
        for row in self.db.query_typed(sql, &params).await? {
            let message = rows::message(&row, &mut names)?;
            match get(&row, MESSAGE_COLUMNS)? {
                true => edge = Some(message),
                false => found.push(message),
            }
        }
        Ok((found, edge))
    }

    async fn by_key(&self) -> Result<Vec<Message>, Fault> {
        let Self { filter, rows, .. } = self;
        let params: [Param<'_>; 8] = [
            (&self.after(), Type::UUID),
            (&rows.state, Type::INT2),
            (&filter.with_dismissed, Type::BOOL),
            (&limit(filter.limit), Type::INT8),
            (&filter.lane.map(|lane| lane as i16), Type::INT2),
            (&filter.workspace.as_deref(), Type::TEXT),
            (&filter.route.as_deref(), Type::TEXT),
            (&filter.key.as_deref(), Type::TEXT),
        ];
        let sql = include_str!("sql/list_by_key.sql");
        let mut found = rows::messages(&self.db.query_typed(sql, &params).await?)?;
        // A key has one message in each workspace, so that this leaves no page half empty.
        found.retain(|message| filter.status.is_none_or(|at| at.status == Status::of(message, at.now)));
        Ok(found)
    }

    fn after(&self) -> Option<Uuid> {
        self.filter.after.as_ref().and_then(own)
    }
}
