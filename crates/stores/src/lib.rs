//! Remembers messages: the databases behind the engine's store port. Writes what core decided, and decides nothing.

pub mod adopted;
mod asked;
mod encode;
pub mod mails;
pub mod mapping;
pub mod notes;
pub mod postgres;
pub mod sqlite;
mod standing;
pub mod table;

pub use postgres::Postgres;
pub use sqlite::{
    Durability, Integrity, OpenError, OpenOptions, Role, SQLITE_MIN, Sqlite, SqliteVersion, SyncSqlite,
    is_held, oldest_writer,
};
