//! Builds an engine from a config. The only file that names every adapter.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::anyhow;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::access::Access;
#[cfg(any(feature = "kafka", feature = "redis"))]
use redeliver_engine::bring::Bring;
use redeliver_engine::campaigns::Campaigns;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::{Observer, Telemetry};
use redeliver_engine::gate::Gate;
use redeliver_engine::hand_off::HandOff;
#[cfg(feature = "kafka")]
use redeliver_engine::hear::Hear;
use redeliver_engine::intake::Intake;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::sender::{Pace, Sender};
use redeliver_engine::stop::Stop;
use redeliver_engine::store::Store;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line};
use redeliver_gates::eligibility::EligibilityGate;
#[cfg(any(feature = "kafka", feature = "redis"))]
use redeliver_server::api::messages::read_message;
use redeliver_stores::adopted::Rows;
use redeliver_stores::mapping::Mapping;
use redeliver_stores::notes::{MemoryNotes, Notes};
use redeliver_stores::postgres::table::{Clock as TableClock, PostgresTable};
use redeliver_stores::postgres::{
    Durability as PostgresDurability, OpenError as PostgresError, OpenOptions as PostgresOptions,
};
use redeliver_stores::sqlite::table::SqliteTable;
use redeliver_stores::table::{Beside, TableStore};
use redeliver_stores::{Durability as SqliteDurability, OpenError, OpenOptions, Postgres, Role, Sqlite};
#[cfg(feature = "kafka")]
use redeliver_transports::kafka::{KafkaIntake, KafkaTransport, Takes as KafkaTakes};
use redeliver_transports::rabbitmq::{
    RabbitmqConfig, RabbitmqIntake, RabbitmqIntakeConfig, RabbitmqTransport, Takes,
};
#[cfg(feature = "redis")]
use redeliver_transports::redis::{RedisIntake, RedisTransport};
use redeliver_transports::scripted::ScriptedTransport;
use redeliver_transports::smtp::SmtpTransport;

use crate::config::{
    Config, Durability, IntakeConfig, RouteConfig, StoreConfig, StoreUrl, TableConfig, TransportConfig,
};

/// An engine over everything that the config names. It does nothing yet.
pub async fn wire(config: &Config, observer: Arc<dyn Observer>) -> anyhow::Result<Arc<Engine>> {
    let opened = open_store(&config.store, Role::Engine).await?;
    engine(config, &opened, observer, None).await
}

/// The same by a clock of the caller's, if it has one, and with what the store knows of keys and sessions.
pub async fn wire_with_access(
    config: &Config,
    observer: Arc<dyn Observer>,
    clock: Option<Arc<dyn Clock>>,
) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>)> {
    let opened = open_store(&config.store, Role::Engine).await?;
    Ok((engine(config, &opened, observer, clock).await?, opened.access))
}

/// An engine to accept messages, to look at them and to operate on them, but to carry none; and who may come in.
pub async fn wire_beside(config: &Config) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>)> {
    let opened = open_store(&config.store, Role::Client).await?;
    Ok((engine(config, &opened, Arc::new(Telemetry), None).await?, opened.access))
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
    campaigns: Arc<dyn Campaigns>,
    /// What is remembered of applications' rows.
    notes: Arc<dyn Notes>,
    /// The time that counts: this machine's, never behind what the store has seen, or the database's.
    clock: Arc<dyn Clock>,
}

impl Opened {
    fn over<S: Store + Access + Campaigns>(
        store: Arc<S>,
        notes: Arc<dyn Notes>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { store: store.clone(), access: store.clone(), campaigns: store, notes, clock }
    }
}

async fn engine(
    config: &Config,
    opened: &Opened,
    observer: Arc<dyn Observer>,
    clock: Option<Arc<dyn Clock>>,
) -> anyhow::Result<Arc<Engine>> {
    let tables = tables(config, opened, clock.is_some()).await?;
    let clock = clock.unwrap_or_else(|| Arc::clone(&opened.clock));
    let transports: HashMap<Name, Arc<dyn Transport>> = config
        .transports
        .iter()
        .map(|(name, own)| Ok((name.clone(), transport(name, own, config, &clock)?)))
        .collect::<anyhow::Result<_>>()?;
    let line = |own: &RouteConfig| {
        let route = &own.route;
        let transports = match route.table.as_ref().and_then(|name| config.tables.get(name)) {
            Some(table) => &handing_off(&transports, &clock, table),
            None => &transports,
        };
        Line::new(route.clone(), transports, gates(own, &clock)?)
            .map_err(|missing| anyhow!("route {} names no transport {missing}", route.name))
    };
    let lines = config.routes.values().map(line).collect::<anyhow::Result<_>>()?;
    let store: Arc<dyn Store> = match tables.is_empty() {
        true => Arc::clone(&opened.store),
        false => Arc::new(Beside::new(Arc::clone(&opened.store), tables)),
    };
    let engine = Engine::new(store, clock, observer, config.engine.clone(), lines);
    let engine = engine.named(&crate::name::instance_name(), env!("CARGO_PKG_VERSION"));
    Ok(Arc::new(engine.with_campaigns(Arc::clone(&opened.campaigns))))
}

/// What is asked before each try on a route.
fn gates(config: &RouteConfig, clock: &Arc<dyn Clock>) -> anyhow::Result<Vec<Arc<dyn Gate>>> {
    let Some(own) = &config.eligibility else { return Ok(Vec::new()) };
    let gate = EligibilityGate::new(own.clone(), Arc::clone(clock));
    let gate =
        gate.map_err(|wrong| anyhow!("the eligibility check of route {}: {wrong}", config.route.name))?;
    Ok(gate.map(|gate| Arc::new(gate) as Arc<dyn Gate>).into_iter().collect())
}

/// What feeds messages in, under its name.
pub fn intakes(config: &Config, engine: &Engine) -> anyhow::Result<Vec<(Name, Arc<dyn Intake>)>> {
    let clock = engine.clock();
    let intake = |(name, own): (&Name, &IntakeConfig)| match own {
        #[cfg(feature = "kafka")]
        IntakeConfig::Kafka(own) => {
            let workspace = own.workspace.clone();
            let bring = Bring {
                name: name.clone(),
                read: Arc::new(move |bytes| read_message(bytes, workspace.clone())),
                rejects: own.rejects.clone(),
                bytes_max: own.message_bytes_max,
                clock: Arc::clone(clock),
            };
            let (name, own, clock) = (name.clone(), &**own, Arc::clone(clock));
            let intake = match own.takes {
                KafkaTakes::Messages => KafkaIntake::new(name.clone(), own.clone(), bring, clock),
                KafkaTakes::Reports => {
                    let hear = Hear::new(bring, own.workspace.clone());
                    KafkaIntake::new(name.clone(), own.clone(), hear, clock)
                }
            };
            let intake = intake.map_err(|wrong| anyhow!("intake {name}: {wrong}"))?;
            Ok((name, Arc::new(intake) as Arc<dyn Intake>))
        }
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
        #[cfg(feature = "redis")]
        IntakeConfig::Redis(own) => {
            let workspace = own.workspace.clone();
            let bring = Bring {
                name: name.clone(),
                read: Arc::new(move |bytes| read_message(bytes, workspace.clone())),
                rejects: own.rejects.clone(),
                bytes_max: own.message_bytes_max,
                clock: Arc::clone(clock),
            };
            let consumer = engine.instance().to_string();
            let intake = RedisIntake::new(name.clone(), own, &consumer, bring, Arc::clone(clock));
            let intake = intake.map_err(|wrong| anyhow!("intake {name}: {wrong}"))?;
            Ok((name.clone(), Arc::new(intake) as Arc<dyn Intake>))
        }
    };
    config.intakes.iter().map(intake).collect()
}

/// A sender, and what brings to it what was handed off.
pub struct Sending {
    /// The table's name.
    pub name: Name,
    /// What brings.
    pub intake: Arc<dyn Intake>,
    /// What sends.
    pub sender: Arc<Sender>,
}

/// An engine that carries nothing, who may come in, and a sender for each table whose mails can be found.
pub async fn wire_senders(
    config: &Config,
    observer: Arc<dyn Observer>,
    clock: Option<Arc<dyn Clock>>,
    stop: &Stop,
) -> anyhow::Result<(Arc<Engine>, Arc<dyn Access>, Vec<Sending>)> {
    let opened = open_store(&config.store, Role::Client).await?;
    let engine = engine(config, &opened, observer, clock.clone()).await?;
    let mut senders = Vec::new();
    for table in tables(config, &opened, clock.is_some()).await? {
        let name = table.mapping().name.clone();
        let wrong = |why: String| anyhow!("table {name}: {why}");
        if table.mapping().mail.is_some() {
            table.check_mails().await.map_err(|error| wrong(format!("its mails cannot be read: {error}")))?;
            senders.push(sending(config, table, &engine, stop).map_err(wrong)?);
        }
    }
    if senders.is_empty() {
        return Err(anyhow!(
            "there is no table to send mails of: say where they are (tables.NAME.mail.to, .subject, .text, .html)"
        ));
    }
    Ok((engine, opened.access, senders))
}

fn sending(config: &Config, table: TableStore, engine: &Arc<Engine>, stop: &Stop) -> Result<Sending, String> {
    let name = table.mapping().name.clone();
    let clock = engine.clock();
    let route = engine.route(&table.mapping().route).ok_or("it has no route")?;
    let mail = config.tables.get(&name).map(|table| table.mail.clone()).unwrap_or_default();
    let by = config.transports.get(&mail.transport);
    let by = by.ok_or_else(|| format!("mail.transport names no transport \"{}\"", mail.transport))?;
    let by = transport(&mail.transport, by, config, clock).map_err(|error| error.to_string())?;
    if let Some(lacks) = by.lacks() {
        return Err(lacks.to_string());
    }
    let travel = route.travel(redeliver_core::Lane::Medium);
    let (Some(TransportConfig::Rabbitmq(broker)), Some(queue)) =
        (config.transports.get(&travel.transport), travel.target.as_deref())
    else {
        return Err(format!("route {} hands its rows to no queue of a broker", route.name));
    };
    let intake = RabbitmqIntakeConfig {
        broker: broker.broker.clone(),
        queue: queue.to_owned(),
        takes: Takes::HandOffs,
        route: route.name.clone(),
        rejects: route.name.clone(),
        prefetch: mail.concurrency_max,
        declare: broker.declare,
        ..RabbitmqIntakeConfig::default()
    };
    let intake = RabbitmqIntake::new(name.clone(), intake, Arc::clone(clock))?;
    let pace = Pace { lease: mail.lease, send_timeout: mail.send_timeout };
    let sender = Sender::new(Arc::clone(engine), &route.name, (Arc::new(table), by), pace, stop.clone());
    let sender = sender.ok_or_else(|| format!("there is no route {}", route.name))?;
    Ok(Sending { name, intake: Arc::new(intake), sender: Arc::new(sender) })
}

/// What takes a row from its table hands it to the application's own sender.
fn handing_off(
    transports: &HashMap<Name, Arc<dyn Transport>>,
    clock: &Arc<dyn Clock>,
    table: &TableConfig,
) -> HashMap<Name, Arc<dyn Transport>> {
    let wrap = |by: &Arc<dyn Transport>| -> Arc<dyn Transport> {
        Arc::new(HandOff::new(Arc::clone(by), Arc::clone(clock), table.retry_interval))
    };
    transports.iter().map(|(name, by)| (name.clone(), wrap(by))).collect()
}

/// The tables that routes carry the rows of.
async fn tables(config: &Config, opened: &Opened, has_own_clock: bool) -> anyhow::Result<Vec<TableStore>> {
    let mut tables = Vec::new();
    for route in config.routes.values().map(|config| &config.route) {
        let Some((name, table)) = route.table.as_ref().and_then(|name| config.tables.get_key_value(name))
        else {
            continue;
        };
        let mapping = table.mapping(name, route);
        let clock = if has_own_clock { TableClock::Caller } else { TableClock::Database };
        let rows = open_rows(config, table, mapping.clone(), clock).await;
        let rows = rows.map_err(|trouble| anyhow!("table {name}: {trouble}"))?;
        let (notes, own) = (Arc::clone(&opened.notes), Arc::clone(&opened.store));
        tables.push(TableStore::new(mapping, rows, notes, own));
    }
    Ok(tables)
}

/// Why a table's rows can't be had.
#[derive(Debug, thiserror::Error)]
pub enum TableTrouble {
    /// It is there, and has to be changed first.
    #[error("{0}")]
    Unusable(String),
    /// Nobody could look at it.
    #[error("{0}")]
    Unreachable(String),
}

/// An application's table, if it can be used.
pub async fn open_table(
    config: &Config,
    table: &TableConfig,
    mapping: Mapping,
) -> Result<Arc<dyn Rows>, TableTrouble> {
    open_rows(config, table, mapping, TableClock::Database).await
}

async fn open_rows(
    config: &Config,
    table: &TableConfig,
    mapping: Mapping,
    clock: TableClock,
) -> Result<Arc<dyn Rows>, TableTrouble> {
    match table.url.as_ref().unwrap_or(&config.store.url) {
        StoreUrl::Memory => Err(TableTrouble::Unusable("a table is in a database: name its url".to_owned())),
        StoreUrl::Sqlite(path) => match SqliteTable::open(path, mapping) {
            Ok(rows) => Ok(Arc::new(rows)),
            Err(error @ OpenError::OtherVersion { .. }) => Err(TableTrouble::Unusable(error.to_string())),
            Err(error) => Err(TableTrouble::Unreachable(error.to_string())),
        },
        StoreUrl::Postgres(url) => {
            let options = postgres_options(&config.store);
            match PostgresTable::open(url.expose(), options, mapping, clock).await {
                Ok(rows) => Ok(Arc::new(rows)),
                Err(error @ PostgresError::Unfit { .. }) => Err(TableTrouble::Unusable(error.to_string())),
                Err(error) => Err(TableTrouble::Unreachable(error.to_string())),
            }
        }
    }
}

/// Makes an application's table and its index where they aren't there.
pub async fn init_table(config: &Config, table: &TableConfig, mapping: &Mapping) -> anyhow::Result<()> {
    match table.url.as_ref().unwrap_or(&config.store.url) {
        StoreUrl::Memory => Err(anyhow!("a table is in a database: name its url")),
        StoreUrl::Sqlite(path) => Ok(SqliteTable::init(path, mapping)?),
        StoreUrl::Postgres(url) => {
            Ok(PostgresTable::init(url.expose(), &postgres_options(&config.store), mapping).await?)
        }
    }
}

/// The statements that make an application's table in its database.
pub fn table_ddl(config: &Config, table: &TableConfig, mapping: &Mapping) -> anyhow::Result<String> {
    match table.url.as_ref().unwrap_or(&config.store.url) {
        StoreUrl::Memory => Err(anyhow!("a table is in a database: name its url")),
        StoreUrl::Sqlite(_) => Ok(SqliteTable::ddl(mapping)),
        StoreUrl::Postgres(_) => Ok(PostgresTable::ddl(mapping)),
    }
}

async fn open_store(config: &StoreConfig, role: Role) -> anyhow::Result<Opened> {
    match &config.url {
        StoreUrl::Memory => {
            let store = Arc::new(MemoryStore::default());
            let clock = WallClock::new(Timestamp::default());
            let notes = Arc::new(MemoryNotes::default());
            Ok(Opened::over(store, notes, clock))
        }
        StoreUrl::Sqlite(path) => {
            let durability = match config.durability {
                Durability::Full => SqliteDurability::Full,
                Durability::Relaxed => SqliteDurability::Relaxed,
            };
            let options = OpenOptions { role, durability, ..OpenOptions::default() };
            let store = Arc::new(Sqlite::open(path, options).map_err(with_advice)?);
            let clock = WallClock::new(store.last_time().unwrap_or_default());
            Ok(Opened::over(store.clone(), store, clock))
        }
        // Any number of engines and clients share it: nobody has a role.
        StoreUrl::Postgres(url) => {
            let store = Arc::new(Postgres::open(url.expose(), postgres_options(config)).await?);
            let clock = store.clock();
            Ok(Opened::over(store.clone(), store, clock))
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
        #[cfg(feature = "kafka")]
        TransportConfig::Kafka(config) => {
            let transport = KafkaTransport::new(name.clone(), (**config).clone(), clock);
            Ok(Arc::new(transport.map_err(|wrong| anyhow!("transport {name}: {wrong}"))?))
        }
        TransportConfig::Rabbitmq(own) => {
            let queues = if own.declare { dead_letter_queues(name, config) } else { Vec::new() };
            let transport =
                RabbitmqTransport::new(name.clone(), RabbitmqConfig { queues, ..(**own).clone() }, clock);
            Ok(Arc::new(transport.map_err(|wrong| anyhow!("transport {name}: {wrong}"))?))
        }
        #[cfg(feature = "redis")]
        TransportConfig::Redis(config) => {
            let transport = RedisTransport::new(name.clone(), (**config).clone(), clock);
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
mod tests;
