//! Builds an engine from a config. The only file that names every adapter.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::anyhow;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::access::Access;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::{Observer, Telemetry};
use redeliver_engine::intake::Intake;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line};
use redeliver_stores::postgres::{Durability as PostgresDurability, OpenOptions as PostgresOptions};
use redeliver_stores::{Durability as SqliteDurability, OpenError, OpenOptions, Postgres, Role, Sqlite};
use redeliver_transports::rabbitmq::{
    RabbitmqConfig, RabbitmqIntake, RabbitmqIntakeConfig, RabbitmqTransport,
};
use redeliver_transports::scripted::ScriptedTransport;
use redeliver_transports::smtp::SmtpTransport;

use crate::config::{Config, Durability, IntakeConfig, StoreConfig, StoreUrl, TransportConfig};

/// An engine over everything that the config names. It does nothing yet.
pub async fn wire(config: &Config, observer: Arc<dyn Observer>) -> anyhow::Result<Arc<Engine>> {
    let opened = open_store(&config.store, Role::Engine).await?;
    let clock = Arc::clone(&opened.clock);
    engine(config, &opened, observer, clock)
}

/// The same by a clock of the caller's, if it has one, and with what the store knows of keys and sessions.
pub async fn wire_with_access(
    config: &Config,
    observer: Arc<dyn Observer>,
    clock: Option<Arc<dyn Clock>>,
) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>)> {
    let opened = open_store(&config.store, Role::Engine).await?;
    let clock = clock.unwrap_or_else(|| Arc::clone(&opened.clock));
    Ok((engine(config, &opened, observer, clock)?, opened.access))
}

/// An engine to accept messages, to look at them and to operate on them, but to carry none; and who may come in.
pub async fn wire_beside(config: &Config) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>)> {
    let opened = open_store(&config.store, Role::Client).await?;
    let clock = Arc::clone(&opened.clock);
    Ok((engine(config, &opened, Arc::new(Telemetry), clock)?, opened.access))
}

/// Who may come in, beside whoever works on the store, and the time.
pub async fn wire_access(config: &StoreConfig) -> anyhow::Result<(Arc<dyn Access>, Arc<dyn Clock>)> {
    let opened = open_store(config, Role::Client).await?;
    Ok((opened.access, opened.clock))
}

/// Makes the tables of a store, or brings them up to date. Says how many steps that took, where it can be told.
pub async fn migrate(config: &StoreConfig) -> anyhow::Result<Option<usize>> {
    match &config.url {
        StoreUrl::Postgres(url) => {
            Ok(Some(Postgres::migrate(url.expose(), &postgres_options(config)).await?))
        }
        StoreUrl::Memory | StoreUrl::Sqlite(_) => {
            open_store(config, Role::Client).await?;
            Ok(None)
        }
    }
}

/// Looks whether a database has this version's tables, and makes none.
pub async fn check_current(config: &StoreConfig) -> anyhow::Result<()> {
    if let StoreUrl::Postgres(url) = &config.url {
        Postgres::check_current(url.expose(), &postgres_options(config)).await?;
    }
    Ok(())
}

/// How a database is opened.
pub fn postgres_options(config: &StoreConfig) -> PostgresOptions {
    let limits = config.limits.clone();
    PostgresOptions {
        direct_url: config.direct_url.as_ref().map(|url| url.expose().to_owned()),
        durability: match config.durability {
            Durability::Full => PostgresDurability::Full,
            Durability::Relaxed => PostgresDurability::Relaxed,
        },
        connections_max: limits.connections_max,
        connect_timeout: limits.connect_timeout,
        call_timeout: limits.call_timeout,
        statement_timeout: limits.statement_timeout,
        lock_timeout: limits.lock_timeout,
        idle_in_transaction_timeout: limits.idle_in_transaction_timeout,
    }
}

/// A store, as the ports have it.
struct Opened {
    store: Arc<dyn Store>,
    access: Arc<dyn Access>,
    /// The time that counts: this machine's, never behind what the store has seen, or the database's.
    clock: Arc<dyn Clock>,
}

fn engine(
    config: &Config,
    opened: &Opened,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<Engine>> {
    let transports: HashMap<Name, Arc<dyn Transport>> = config
        .transports
        .iter()
        .map(|(name, own)| Ok((name.clone(), transport(name, own, config, &clock)?)))
        .collect::<anyhow::Result<_>>()?;
    let line = |route: &redeliver_core::Route| {
        Line::new(route.clone(), &transports, Vec::new())
            .map_err(|missing| anyhow!("route {} names no transport {missing}", route.name))
    };
    let lines = config.routes.values().map(|config| line(&config.route)).collect::<anyhow::Result<_>>()?;
    let store = Arc::clone(&opened.store);
    Ok(Arc::new(Engine::new(store, clock, observer, config.engine.clone(), lines)))
}

/// What feeds messages in, under its name.
pub fn intakes(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Vec<(Name, Arc<dyn Intake>)>> {
    let intake = |(name, own): (&Name, &IntakeConfig)| match own {
        IntakeConfig::Rabbitmq(own) => {
            // Word of the dead may have to wait for its first connection; its queue is there from the start.
            let queues = config.transports.iter().filter_map(|(name, transport)| match transport {
                TransportConfig::Rabbitmq(it) if it.declare && it.broker.broker == own.broker.broker => {
                    Some(dead_letter_queues(name, config))
                }
                _ => None,
            });
            let own = RabbitmqIntakeConfig { queues: queues.flatten().collect(), ..(**own).clone() };
            let intake = RabbitmqIntake::new(name.clone(), own, Arc::clone(clock));
            let intake = intake.map_err(|wrong| anyhow!("intake {name}: {wrong}"))?;
            Ok((name.clone(), Arc::new(intake) as Arc<dyn Intake>))
        }
    };
    config.intakes.iter().map(intake).collect()
}

async fn open_store(config: &StoreConfig, role: Role) -> anyhow::Result<Opened> {
    match &config.url {
        StoreUrl::Memory => {
            let store = Arc::new(MemoryStore::default());
            let clock = WallClock::new(Timestamp::default());
            Ok(Opened { store: store.clone(), access: store, clock })
        }
        StoreUrl::Sqlite(path) => {
            let durability = match config.durability {
                Durability::Full => SqliteDurability::Full,
                Durability::Relaxed => SqliteDurability::Relaxed,
            };
            let options = OpenOptions { role, durability, ..OpenOptions::default() };
            let store = Arc::new(Sqlite::open(path, options).map_err(with_advice)?);
            let clock = WallClock::new(store.last_time().unwrap_or_default());
            Ok(Opened { store: store.clone(), access: store, clock })
        }
        // Any number of engines and clients share it: nobody has a role.
        StoreUrl::Postgres(url) => {
            let store = Arc::new(Postgres::open(url.expose(), postgres_options(config)).await?);
            let clock = store.clock();
            Ok(Opened { store: store.clone(), access: store, clock })
        }
    }
}

fn transport(
    name: &Name,
    own: &TransportConfig,
    config: &Config,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn Transport>> {
    let clock = Arc::clone(clock);
    match own {
        TransportConfig::Rabbitmq(own) => {
            let queues = if own.declare { dead_letter_queues(name, config) } else { Vec::new() };
            let transport =
                RabbitmqTransport::new(name.clone(), RabbitmqConfig { queues, ..(**own).clone() }, clock);
            Ok(Arc::new(transport.map_err(|wrong| anyhow!("transport {name}: {wrong}"))?))
        }
        TransportConfig::Scripted(config) => {
            Ok(Arc::new(ScriptedTransport::new(name.clone(), config.clone(), clock)))
        }
        TransportConfig::Smtp(config) => {
            let transport = SmtpTransport::new(name.clone(), (**config).clone(), clock);
            Ok(Arc::new(transport.map_err(|wrong| anyhow!("transport {name}: {wrong}"))?))
        }
    }
}

/// The queues of dead letters that this transport publishes to: ours to make, as nobody else would.
pub fn dead_letter_queues(transport: &Name, config: &Config) -> Vec<String> {
    let letters: BTreeSet<_> =
        config.routes.values().filter_map(|config| config.route.dead_letter.clone()).collect();
    let travels =
        letters.iter().filter_map(|name| config.routes.get(name)).flat_map(|config| &config.route.lanes);
    let queues: BTreeSet<_> = travels
        .filter(|travel| travel.transport == *transport)
        .filter_map(|travel| travel.target.as_deref().map(str::to_owned))
        .collect();
    queues.into_iter().collect()
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
