//! Accepts inside the application's own transaction: the message is there if and only if what it tells of is.

use redeliver_core::Timestamp;
use redeliver_core::accept::{NewMessage, Repeat, Source, admit, repeat};
use redeliver_core::change::NewRow;
use redeliver_core::route::Route;
use redeliver_engine::Engine;
use redeliver_engine::store::Inserted;
use redeliver_stores::Durability;
use redeliver_stores::postgres;
use redeliver_stores::sqlite::insert_in;
use rusqlite::Transaction;

use crate::error::Error;
use crate::handle::no_route;
use crate::sent::Kept;
use crate::store::worth;

/// Writes one message in the caller's transaction. Nobody else sees it before the commit, so that it can't be tried
/// at once; the worker looks for such commits several times a second.
pub(crate) fn accept_in(
    engine: &Engine,
    transaction: &Transaction<'_>,
    new: NewMessage,
    durability: Durability,
) -> Result<Kept, Error> {
    let accepting = Accepting::new(engine, new)?;
    let inserted = insert_in(transaction, vec![accepting.row.clone()], durability)?.pop();
    accepting.kept(inserted)
}

/// The same on PostgreSQL.
pub(crate) async fn accept_in_postgres(
    engine: &Engine,
    transaction: &tokio_postgres::Transaction<'_>,
    new: NewMessage,
    durability: Durability,
) -> Result<Kept, Error> {
    let accepting = Accepting::new(engine, new)?;
    let rows = vec![accepting.row.clone()];
    let inserted = postgres::accept_in(transaction, rows, worth(durability)).await?.pop();
    accepting.kept(inserted)
}

/// One message on its way in.
struct Accepting<'a> {
    row: NewRow,
    source: Source,
    route: &'a Route,
    now: Timestamp,
}

impl<'a> Accepting<'a> {
    fn new(engine: &'a Engine, new: NewMessage) -> Result<Self, Error> {
        let route = engine.route(&new.route).ok_or_else(|| no_route(&new.route))?;
        let now = engine.clock().now();
        let source = new.source;
        let row = admit(new, route, engine.clock().message_id(now), None, now);
        Ok(Self { row, source, route, now })
    }

    /// What the application is told.
    fn kept(self, inserted: Option<Inserted>) -> Result<Kept, Error> {
        let Self { row, source, route, now } = self;
        match inserted {
            Some(Inserted::New) | None => Ok(Kept { id: row.message.id, duplicate: false }),
            Some(Inserted::Known(known)) => match repeat(&known, None, row, source, route, now) {
                Repeat::Conflict => Err(Error::Conflict(known.id)),
                // Only what a broker brought comes back, and an application is no broker.
                Repeat::Duplicate
                | Repeat::Reenters(_)
                | Repeat::Revives(_)
                | Repeat::Apart(_)
                | Repeat::DependsOnContent => Ok(Kept { id: known.id, duplicate: true }),
            },
        }
    }
}
