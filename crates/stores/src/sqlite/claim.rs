//! Leases due messages, and keeps the leases.

use redeliver_core::planted::{self, Bug};
use redeliver_core::{Content, Lane, Lease, Message, State, Timestamp};
use redeliver_engine::store::{ClaimKind, ClaimRef, ClaimRequest, Claims};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::{Fault, own};
use super::limit;
use super::rows::{CONTENT, NUMBER, content, message};
use crate::standing::Names;

pub(super) fn claim(db: &Connection, request: &ClaimRequest) -> Result<Claims, Fault> {
    let due = due(db, request)?;
    let until_at = request.now.plus(request.lease);
    let mut claim = db.prepare_cached(match request.kind {
        ClaimKind::Trusted => include_str!("sql/claim_trusted.sql"),
        ClaimKind::Suspect => include_str!("sql/claim_suspect.sql"),
    })?;
    let mut claimed = Vec::with_capacity(due.len());
    for (number, mut message, content) in due {
        if !planted::is(Bug::ClaimKeepsFence) {
            message.fence += 1;
        }
        if request.keeps_first_send {
            message.first_sent_at.get_or_insert(request.now);
        }
        claim.execute(params![
            number,
            message.fence as i64,
            request.instance.0 as i64,
            until_at.as_ms(),
            message.first_sent_at.map(Timestamp::as_ms)
        ])?;
        message.state = State::Claimed(Lease {
            instance: request.instance,
            claim: message.fence,
            until_at,
            started_at: None,
            cancel_requested: false,
        });
        claimed.push((message, content));
    }
    Ok(Claims { claimed, next_due_at: next_due_at(db, request.kind, &request.route, request.lane)? })
}

/// What is due, each with its number.
fn due(db: &Connection, request: &ClaimRequest) -> Result<Vec<(i64, Message, Content)>, Fault> {
    let now = if planted::is(Bug::ClaimsBeforeDue) { Timestamp::MAX } else { request.now };
    let mut due = db.prepare_cached(match request.kind {
        ClaimKind::Trusted => include_str!("sql/due_trusted.sql"),
        ClaimKind::Suspect => include_str!("sql/due_suspect.sql"),
    })?;
    let mut rows =
        due.query(params![&*request.route, request.lane as u8, now.as_ms(), limit(request.limit)])?;
    let mut names = Names::default();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(NUMBER)?, message(row, &mut names)?, content(row, CONTENT)?));
    }
    Ok(found)
}

pub(super) fn next_due_at(
    db: &Connection,
    kind: ClaimKind,
    route: &str,
    lane: Lane,
) -> Result<Option<Timestamp>, Fault> {
    let mut next = db.prepare_cached(match kind {
        ClaimKind::Trusted => include_str!("sql/next_due_trusted.sql"),
        ClaimKind::Suspect => include_str!("sql/next_due_suspect.sql"),
    })?;
    let at = next.query_row(params![route, lane as u8], |row| row.get(0)).optional()?;
    Ok(at.map(Timestamp::from_ms))
}

pub(super) fn start(db: &Connection, claim: &ClaimRef, now: Timestamp) -> Result<bool, Fault> {
    let mut start = db.prepare_cached(include_str!("sql/start.sql"))?;
    Ok(start.execute(params![own(&claim.id), claim.claim as i64, now.as_ms()])? == 1)
}

pub(super) fn renew(db: &Connection, claims: &[ClaimRef], until_at: Timestamp) -> Result<Vec<bool>, Fault> {
    let mut renew = db.prepare_cached(include_str!("sql/renew.sql"))?;
    let mut one = |claim: &ClaimRef| -> Result<bool, Fault> {
        Ok(renew.execute(params![own(&claim.id), claim.claim as i64, until_at.as_ms()])? == 1)
    };
    claims.iter().map(&mut one).collect()
}
