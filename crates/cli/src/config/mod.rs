//! The configuration: a profile, a file over it, and the environment over both.
//!
//! [`source`] and [`environment`] make one tree of them, [`reader`] and [`value`] read it, the other files know what
//! its sections mean. All problems are found at once; nothing here opens or connects to anything.

mod eligibility;
mod engine;
pub mod environment;
mod http;
mod intakes;
#[cfg(feature = "kafka")]
mod kafka;
mod log;
mod policies;
pub mod problem;
pub mod profiles;
mod reader;
#[cfg(feature = "redis")]
mod redis;
mod routes;
mod source;
mod store;
mod tables;
mod telemetry;
mod transports;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redeliver_core::{Name, Policy};
use redeliver_engine::engine::Settings;

use environment::Variables;
use problem::{Findings, Problem, Problems};
use profiles::Profile;
use reader::{Located, Reader, Reading};
use source::{Table, Text};

pub use http::HttpConfig;
pub use intakes::IntakeConfig;
pub use log::{LogConfig, LogFormat};
pub use policies::warnings as policy_warnings;
pub use routes::RouteConfig;
pub use store::{Durability, StoreConfig, StoreLimits, StoreUrl};
pub use tables::{MailConfig, TableConfig};
pub use telemetry::TelemetryConfig;
pub use transports::TransportConfig;

/// Everything that can be configured, checked.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// What remembers the messages.
    pub store: StoreConfig,
    /// How an instance paces itself.
    pub engine: Settings,
    /// Where the API answers.
    pub http: HttpConfig,
    /// What is written to standard error.
    pub log: LogConfig,
    /// Where traces go.
    pub telemetry: TelemetryConfig,
    /// What carries messages out.
    pub transports: BTreeMap<Name, TransportConfig>,
    /// How messages are retried.
    pub policies: BTreeMap<Name, Policy>,
    /// Applications' own tables.
    pub tables: BTreeMap<Name, TableConfig>,
    /// The ways that messages travel.
    pub routes: BTreeMap<Name, RouteConfig>,
    /// What feeds messages in, beside the API.
    pub intakes: BTreeMap<Name, IntakeConfig>,
}

/// Where a config comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The lowest layer.
    pub profile: Option<Profile>,
    /// The file's path and text, over the profile.
    pub file: Option<(Arc<str>, String)>,
    /// The environment, over both.
    pub variables: Variables,
}

/// A config that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The config.
    pub config: Config,
    /// What works, but not as somebody may think.
    pub warnings: Vec<Problem>,
    /// Every key that was asked for, as a path with `*` for the names that people choose.
    pub known: BTreeSet<String>,
}

/// Reads and checks a config.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let findings = Findings::default();
    let table = lay(sources, &findings);
    // What isn't TOML is said alone: what was meant can't be told, and would be missed everywhere else.
    findings.into_warnings()?;
    let reading = Reading::default();
    let config = reading.read(&table, read);
    environment::warn_of_slips(&sources.variables, &reading.known.borrow(), &reading.findings);
    let warnings = reading.findings.into_warnings()?;
    Ok(Loaded { config, warnings, known: reading.known.into_inner() })
}

fn lay(sources: &Sources, findings: &Findings) -> Table {
    let mut table = Table::default();
    if let Some(profile) = sources.profile {
        let name = format!("profile {}", profile.name).into();
        table.lay_over(Text { source: 0, name, text: profile.text }.parse(findings));
    }
    if let Some((name, text)) = &sources.file {
        table.lay_over(Text { source: 1, name: name.clone(), text }.parse(findings));
    }
    environment::lay_over(&mut table, &sources.variables);
    table
}

fn read(reader: &Reader<'_>) -> Config {
    let store = reader.section("store", store::read);
    let engine = reader.section("engine", engine::read);
    let http = reader.section("http", http::read);
    let log = reader.section("log", log::read);
    let telemetry = reader.section("telemetry", telemetry::read);
    let transports = reader.named("transports", |_, reader| transports::read(reader));
    let policies = reader.named("policies", |_, reader| policies::read(reader));
    let tables = reader.named("tables", |_, reader| tables::read(reader, &transports));
    let parts = routes::Parts { transports: &transports, policies: &policies, tables: &tables };
    let routes = routes::read(reader, &parts);
    let intakes = reader.named("intakes", |_, reader| intakes::read(reader, &routes));
    intakes::check_sources(&intakes, reader.findings());
    let intakes = values(intakes);
    // What a slip of the pen has left unused isn't worth a warning of its own.
    if !routes.is_empty() && !reader.findings().has_errors() {
        warn_of_unused(&transports, &policies, &tables, &routes, reader.findings());
    }
    let (transports, policies, tables) = (values(transports), values(policies), values(tables));
    Config { store, engine, http, log, telemetry, transports, policies, tables, routes, intakes }
}

fn warn_of_unused(
    transports: &BTreeMap<Name, Located<TransportConfig>>,
    policies: &BTreeMap<Name, Located<Policy>>,
    tables: &BTreeMap<Name, Located<TableConfig>>,
    routes: &BTreeMap<Name, RouteConfig>,
    findings: &Findings,
) {
    let sends = |table: &Located<TableConfig>, name: &Name| {
        table.value.mail.source.is_some() && table.value.mail.transport == *name
    };
    for (name, Located { place, .. }) in transports {
        let used =
            routes.values().any(|config| config.route.lanes.iter().any(|travel| travel.transport == *name));
        if !used && !tables.values().any(|table| sends(table, name)) {
            findings.warning(place, format!("transport \"{name}\" is used by no route"));
        }
    }
    for (name, Located { place, .. }) in policies {
        if !routes.values().any(|config| config.policies.contains(name)) {
            findings.warning(place, format!("policy \"{name}\" is used by no route"));
        }
    }
}

fn values<T>(located: BTreeMap<Name, Located<T>>) -> BTreeMap<Name, T> {
    located.into_iter().map(|(name, found)| (name, found.value)).collect()
}
