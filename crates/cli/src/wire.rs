//! Builds an engine from a config. The only file that names every adapter.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::anyhow;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::Observer;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line};
use redeliver_stores::{Durability as SqliteDurability, OpenError, OpenOptions, Role, Sqlite};
use redeliver_transports::scripted::ScriptedTransport;

use crate::config::{Config, Durability, StoreConfig, StoreUrl, TransportConfig};

/// An engine over everything that the config names. It does nothing yet.
pub fn wire(config: &Config, observer: Arc<dyn Observer>) -> anyhow::Result<Arc<Engine>> {
    let (store, last_time) = open_store(&config.store)?;
    let clock: Arc<dyn Clock> = WallClock::new(last_time);
    let transports: HashMap<Name, Arc<dyn Transport>> = config
        .transports
        .iter()
        .map(|(name, config)| (name.clone(), transport(name, config, &clock)))
        .collect();
    let line = |route: &redeliver_core::Route| {
        Line::new(route.clone(), &transports, Vec::new())
            .map_err(|missing| anyhow!("route {} names no transport {missing}", route.name))
    };
    let lines = config.routes.values().map(|config| line(&config.route)).collect::<anyhow::Result<_>>()?;
    Ok(Arc::new(Engine::new(store, clock, observer, config.engine.clone(), lines)))
}

/// The store, opened to carry messages out of it, and the latest time that it has seen.
fn open_store(config: &StoreConfig) -> anyhow::Result<(Arc<dyn Store>, Timestamp)> {
    match &config.url {
        StoreUrl::Memory => Ok((Arc::new(MemoryStore::default()), Timestamp::default())),
        StoreUrl::Sqlite(path) => {
            let durability = match config.durability {
                Durability::Full => SqliteDurability::Full,
                Durability::Relaxed => SqliteDurability::Relaxed,
            };
            let options = OpenOptions { role: Role::Engine, durability, ..OpenOptions::default() };
            let store = Sqlite::open(path, options).map_err(with_advice)?;
            let last_time = store.last_time().unwrap_or_default();
            Ok((Arc::new(store), last_time))
        }
    }
}

fn transport(name: &Name, config: &TransportConfig, clock: &Arc<dyn Clock>) -> Arc<dyn Transport> {
    match config {
        TransportConfig::Scripted(config) => {
            Arc::new(ScriptedTransport::new(name.clone(), config.clone(), Arc::clone(clock)))
        }
    }
}

/// What is wrong, with what whoever started us can do about it where the error doesn't say so itself.
fn with_advice(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Taken { .. } => {
            anyhow!(
                "{error}; stop that one first, or give this one a store of its own (store.url, DATABASE_URL)"
            )
        }
        OpenError::Locked { .. } => {
            anyhow!("{error}; end whatever has a transaction open on it, then try again")
        }
        OpenError::Full { .. } => anyhow!("{error}; make room, nothing that was accepted is lost"),
        OpenError::Unreachable { .. } | OpenError::Damaged { .. } | OpenError::OtherVersion { .. } => {
            error.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_cannot_open_a_store_is_told_what_to_do() {
        let path = || "x.db".into();
        let check = |error: OpenError, words: &str| {
            let said = with_advice(error).to_string();
            assert!(said.starts_with("cannot open store sqlite:x.db: ") && said.contains(words), "{said}");
        };
        check(OpenError::Taken { path: path(), lock: "x.db.lock".into() }, "stop that one first");
        check(OpenError::Locked { path: path() }, "is another redeliver running?");
        check(OpenError::Locked { path: path() }, "end whatever has a transaction open");
        check(OpenError::Full { path: path() }, "make room");
        check(OpenError::Damaged { path: path(), why: "bad".into() }, "restore it from a backup");
    }
}
