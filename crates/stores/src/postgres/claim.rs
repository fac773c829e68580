//! Leases due messages, and keeps the leases.

use std::collections::HashSet;

use redeliver_core::{Lane, Lease, Message, State, Timestamp};
use redeliver_engine::store::{ClaimKind, ClaimRef, ClaimRequest, Claims};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::errors::{Fault, own};
use super::limit;
use super::rows::{content, count, get, id, number, text_if_any, time, time_if_any};
use crate::encode::{failure_from_text, recipients_from_text};
use crate::standing::Names;

pub(super) async fn claim(db: &Client, request: &ClaimRequest) -> Result<Claims, Fault> {
    let sql = match request.kind {
        ClaimKind::Trusted => include_str!("sql/claim_trusted.sql"),
        ClaimKind::Suspect => include_str!("sql/claim_suspect.sql"),
    };
    let until_at = request.now.plus(request.lease);
    let first_sent_at = request.keeps_first_send.then(|| request.now.as_ms());
    let params = [
        (&&*request.route as _, Type::TEXT),
        (&(request.lane as i16) as _, Type::INT2),
        (&request.now.as_ms() as _, Type::INT8),
        (&limit(request.limit) as _, Type::INT8),
        (&(request.instance.0 as i64) as _, Type::INT8),
        (&until_at.as_ms() as _, Type::INT8),
        (&first_sent_at as _, Type::INT8),
    ];
    let rows = db.query_typed(sql, &params).await?;
    let mut claims = Claims::default();
    let mut names = Names::default();
    for row in &rows {
        claims.next_due_at = time_if_any(row, CLAIMED_COLUMNS + 5)?;
        // Where nothing was claimed, there is still a row with what is due next.
        if get::<Option<Uuid>>(row, 0)?.is_some() {
            claims.claimed.push((claimed(row, request, &mut names)?, content(row, CLAIMED_COLUMNS)?));
        }
    }
    // RETURNING promises no order.
    claims.claimed.sort_by(|(a, _), (b, _)| (a.due_at, &a.id).cmp(&(b.due_at, &b.id)));
    Ok(claims)
}

/// How many columns a claim says of a message, and so where its content begins.
const CLAIMED_COLUMNS: usize = 20;

/// The message in a row of a claim, which leaves out what the request says already.
fn claimed(row: &Row, request: &ClaimRequest, names: &mut Names) -> Result<Message, Fault> {
    let fence = number(row, 3)?;
    let lease = Lease {
        instance: request.instance,
        claim: fence,
        until_at: request.now.plus(request.lease),
        started_at: None,
        cancel_requested: false,
    };
    Ok(Message {
        id: id(row, 0)?,
        workspace: names.workspace(get(row, 1)?),
        route: request.route.clone(),
        lane: request.lane,
        state: State::Claimed(lease),
        due_at: time(row, 2)?,
        fence,
        attempts: count(row, 4)?,
        losses: count(row, 5)?,
        key: text_if_any(row, 6)?,
        scheduled_for: time(row, 7)?,
        created_at: time(row, 8)?,
        expires_at: time_if_any(row, 9)?,
        generation: count(row, 10)?,
        attempts_before: count(row, 11)?,
        max_attempts: get::<Option<i32>>(row, 12)?.map(|count| count as u32),
        unconfirmed: count(row, 13)?,
        possible_duplicates: count(row, 14)?,
        settled_claim: get::<Option<i64>>(row, 15)?.map(|claim| claim as u64),
        last_error: get::<Option<&str>>(row, 16)?.map(failure_from_text).transpose()?,
        recipients: get::<Option<&str>>(row, 17)?.map(recipients_from_text).transpose()?.unwrap_or_default(),
        is_dead_letter: get(row, 18)?,
        first_sent_at: time_if_any(row, 19)?,
    })
}

pub(super) async fn next_due_at(db: &Client, route: &str, lane: Lane) -> Result<Option<Timestamp>, Fault> {
    let mut first = None;
    for sql in [include_str!("sql/next_due_trusted.sql"), include_str!("sql/next_due_suspect.sql")] {
        let params = [(&route as _, Type::TEXT), (&(lane as i16) as _, Type::INT2)];
        let found = db.query_typed_opt(sql, &params).await?;
        let at = found.map(|row| time_if_any(&row, 0)).transpose()?.flatten();
        first = first.into_iter().chain(at).min();
    }
    Ok(first)
}

pub(super) async fn start(db: &Client, claim: &ClaimRef, now: Timestamp) -> Result<bool, Fault> {
    let params = [
        (&own(&claim.id) as _, Type::UUID),
        (&(claim.claim as i64) as _, Type::INT8),
        (&now.as_ms() as _, Type::INT8),
    ];
    Ok(db.execute_typed(include_str!("sql/start.sql"), &params).await? == 1)
}

pub(super) async fn renew(db: &Client, claims: &[ClaimRef], until_at: Timestamp) -> Result<Vec<bool>, Fault> {
    let held = |claim: &ClaimRef| Some((own(&claim.id)?, claim.claim as i64));
    let (ids, numbers): (Vec<Uuid>, Vec<i64>) = claims.iter().filter_map(held).unzip();
    if ids.is_empty() {
        return Ok(vec![false; claims.len()]);
    }
    let params = [
        (&ids as _, Type::UUID_ARRAY),
        (&numbers as _, Type::INT8_ARRAY),
        (&until_at.as_ms() as _, Type::INT8),
    ];
    let rows = db.query_typed(include_str!("sql/renew.sql"), &params).await?;
    let renewed: HashSet<(Uuid, i64)> =
        rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect::<Result<_, Fault>>()?;
    Ok(claims.iter().map(|claim| held(claim).is_some_and(|held| renewed.contains(&held))).collect())
}
