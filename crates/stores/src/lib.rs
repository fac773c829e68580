//! Remembers messages: the databases behind the engine's store port. Writes what core decided, and decides nothing.

mod asked;
mod encode;
pub mod postgres;
pub mod sqlite;
mod standing;

pub use postgres::Postgres;
pub use sqlite::{Durability, Integrity, OpenError, OpenOptions, Role, Sqlite, SyncSqlite, is_held};
