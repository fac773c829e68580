//! Opens the store that an application names.

use std::path::PathBuf;
use std::sync::Arc;

use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_stores::postgres::{self, PostgresUrl};
use redeliver_stores::{Durability, OpenOptions, Postgres, Sqlite};
use tokio::runtime::Handle;

use crate::error::{Error, no_runtime};

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// `memory:`: in this process, gone with it.
    Memory,
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
    /// `postgres://…`: a database that any number of processes share.
    Postgres(PostgresUrl),
}

/// A store that is open, and the time that counts for it.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The same store, where it is a database.
    pub(crate) postgres: Option<Arc<Postgres>>,
}

impl StoreUrl {
    /// Reads `memory:`, `sqlite:PATH` or `postgres://…`. The error names only the scheme: what follows may hold a
    /// password.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match (scheme, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("sqlite", path) if !path.is_empty() => {
                Ok(Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            ("sqlite", _) => Err(Error::Misused("sqlite: needs a path, such as sqlite:outbox.db".to_owned())),
            (scheme, _) if PostgresUrl::SCHEMES.contains(&scheme) => {
                Ok(Self::Postgres(PostgresUrl::parse(text)?))
            }
            _ => Err(Error::Misused(format!(
                "stores are sqlite:PATH, postgres://… and memory:, not {scheme}:"
            ))),
        }
    }

    /// Opens it, making the file or the tables if there are none.
    pub(crate) async fn open(
        &self,
        options: OpenOptions,
        direct_url: Option<&PostgresUrl>,
    ) -> Result<Opened, Error> {
        let runtime = Handle::try_current().map_err(no_runtime)?;
        match self {
            Self::Memory => Ok(Opened {
                store: Arc::new(MemoryStore::default()),
                clock: WallClock::new(redeliver_core::Timestamp::default()),
                postgres: None,
            }),
            Self::Sqlite(path) => {
                let path = path.clone();
                // Opening waits for the disk, and for whoever else is writing.
                let opening = runtime.spawn_blocking(move || Sqlite::open(path, options));
                let store = opening.await.map_err(|error| Error::Misused(error.to_string()))??;
                let clock = WallClock::new(store.last_time().unwrap_or_default());
                Ok(Opened { store: Arc::new(store), clock, postgres: None })
            }
            Self::Postgres(url) => {
                let options = postgres::OpenOptions {
                    direct_url: direct_url.map(|url| url.expose().to_owned()),
                    durability: worth(options.durability),
                    ..postgres::OpenOptions::default()
                };
                let store = Arc::new(Postgres::open(url.expose(), options).await?);
                Ok(Opened { store: store.clone(), clock: store.clock(), postgres: Some(store) })
            }
        }
    }
}

/// What a commit is worth, in the database's own word.
pub(crate) fn worth(durability: Durability) -> postgres::Durability {
    match durability {
        Durability::Full => postgres::Durability::Full,
        Durability::Relaxed => postgres::Durability::Relaxed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_a_url() {
        let check = |text: &str, expected: StoreUrl| assert_eq!(StoreUrl::parse(text).unwrap(), expected);
        check("memory:", StoreUrl::Memory);
        check("sqlite:outbox.db", StoreUrl::Sqlite("outbox.db".into()));
        check("sqlite:///var/outbox.db", StoreUrl::Sqlite("/var/outbox.db".into()));
        for text in ["", "sqlite:", "memory:x", "outbox.db"] {
            assert!(StoreUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_url_is_not_repeated_with_its_password() {
        for url in ["mysql://ada:secret@db", "postgres://ada:secret@db:x/mail"] {
            let wrong = StoreUrl::parse(url).unwrap_err().to_string();
            assert!(!wrong.contains("secret"), "{wrong}");
        }
        let url = StoreUrl::parse("postgres://ada:secret@db/mail").unwrap();
        assert_eq!(format!("{url:?}"), "Postgres(postgres://db:5432/mail)");
    }
}
