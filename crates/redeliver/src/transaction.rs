//! Accepts inside the application's own transaction: the message is there if and only if what it tells of is.

use redeliver_core::accept::{NewMessage, Repeat, admit, repeat};
use redeliver_engine::Engine;
use redeliver_engine::store::Inserted;
use redeliver_stores::Durability;
use redeliver_stores::sqlite::insert_in;
use rusqlite::Transaction;

use crate::error::Error;
use crate::handle::no_route;
use crate::sent::Kept;

/// Writes one message in the caller's transaction. Nobody else sees it before the commit, so that it can't be tried
/// at once; the worker looks for such commits several times a second.
pub(crate) fn accept_in(
    engine: &Engine,
    transaction: &Transaction<'_>,
    new: NewMessage,
    durability: Durability,
) -> Result<Kept, Error> {
    let route = engine.route(&new.route).ok_or_else(|| no_route(&new.route))?;
    let now = engine.clock().now();
    let source = new.source;
    let row = admit(new, route, engine.clock().message_id(now), None, now);
    let id = row.message.id.clone();
    match insert_in(transaction, vec![row.clone()], durability)?.pop() {
        Some(Inserted::New) | None => Ok(Kept { id, duplicate: false }),
        Some(Inserted::Known(known)) => match repeat(&known, row, source, route, now) {
            Repeat::Conflict => Err(Error::Conflict(known.id)),
            // Only what a broker brought comes back, and an application is no broker.
            Repeat::Duplicate | Repeat::Reenters(_) | Repeat::Revives(_) => {
                Ok(Kept { id: known.id, duplicate: true })
            }
        },
    }
}
