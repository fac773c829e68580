//! Opens the store that an application names.

use std::path::PathBuf;
use std::sync::Arc;

use redeliver_core::Timestamp;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_stores::{OpenOptions, Sqlite};
use tokio::runtime::Handle;

use crate::error::{Error, no_runtime};

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// `memory:`: in this process, gone with it.
    Memory,
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
}

impl StoreUrl {
    /// Reads `memory:` or `sqlite:PATH`. The error names only the scheme: what follows may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match (scheme, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("sqlite", path) if !path.is_empty() => {
                Ok(Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            ("sqlite", _) => Err(Error::Misused("sqlite: needs a path, such as sqlite:outbox.db".to_owned())),
            _ => Err(Error::Misused(format!("stores are sqlite:PATH and memory:, not {scheme}:"))),
        }
    }

    /// Opens it, making the file if there is none. Gives the latest time that it has seen, too.
    pub(crate) async fn open(&self, options: OpenOptions) -> Result<(Arc<dyn Store>, Timestamp), Error> {
        match self {
            Self::Memory => Ok((Arc::new(MemoryStore::default()), Timestamp::default())),
            Self::Sqlite(path) => {
                let path = path.clone();
                // Opening waits for the disk, and for whoever else is writing.
                let opening = Handle::try_current()
                    .map_err(no_runtime)?
                    .spawn_blocking(move || Sqlite::open(path, options));
                let store = opening.await.map_err(|error| Error::Misused(error.to_string()))??;
                let last_time = store.last_time().unwrap_or_default();
                Ok((Arc::new(store), last_time))
            }
        }
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
        let wrong = StoreUrl::parse("mysql://ada:secret@db").unwrap_err().to_string();
        assert!(!wrong.contains("secret"), "{wrong}");
    }
}
