//! `redeliver table`: makes an application's own table, or looks whether one that is there can be used.

use anyhow::bail;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Name, Policy, Route};

use super::{load_config, print};
use crate::args::TableCommand;
use crate::config::problem::did_you_mean;
use crate::config::{Config, TableConfig};
use crate::exit::{Usage, print_aside};
use crate::reach;
use crate::wire::{self, TableTrouble};

pub(super) fn run(command: &TableCommand) -> anyhow::Result<()> {
    match command {
        TableCommand::Init { name, apply, config } => {
            let config = load_config(config)?.config;
            for (name, table, route) in wanted(&config, name.as_deref())? {
                let mapping = table.mapping(name, &route);
                let ddl = wire::table_ddl(&config, table, &mapping)?;
                if *apply {
                    reach::run(wire::init_table(&config, table, &mapping))?;
                    print_aside(format!("table {} is there, with its index", mapping.table.quoted()));
                } else {
                    print(&ddl)?;
                }
            }
            Ok(())
        }
        TableCommand::Check { name, config } => {
            let config = load_config(config)?.config;
            let tables = wanted(&config, name.as_deref())?;
            let count = tables.len();
            let unseen = look_at(&config, tables)?;
            if !unseen.is_empty() {
                bail!("{}", unseen.join("\n"));
            }
            print(&format!("ok: {}\n", crate::config::problem::counted(count, "table")))
        }
    }
}

/// Looks at the tables whose rows somebody takes, as [`look_at`] does.
pub(super) fn check(config: &Config) -> anyhow::Result<Vec<String>> {
    let is_taken = |name: &Name| config.routes.values().any(|it| it.route.table.as_ref() == Some(name));
    let tables = wanted(config, None)?.into_iter().filter(|(name, ..)| is_taken(name)).collect();
    look_at(config, tables)
}

/// Refuses tables that can't be used, and says what each lacks; and says which could not be looked at.
fn look_at(config: &Config, tables: Vec<(&Name, &TableConfig, Route)>) -> anyhow::Result<Vec<String>> {
    let (mut refused, mut unseen) = (Vec::new(), Vec::new());
    for (name, table, route) in tables {
        let opened =
            reach::run(async { Ok(wire::open_table(config, table, table.mapping(name, &route)).await) })?;
        match opened {
            Ok(_) => {}
            Err(TableTrouble::Unusable(why)) => refused.push(format!("table {name}: {why}")),
            Err(TableTrouble::Unreachable(why)) => {
                unseen.push(format!("table {name} was not looked at: {why}"));
            }
        }
    }
    match refused.is_empty() {
        true => Ok(unseen),
        false => {
            refused.extend(unseen);
            bail!("{}", refused.join("\n"))
        }
    }
}

/// The tables that are meant, each with its route; one that has none is looked at as if it had.
fn wanted<'a>(
    config: &'a Config,
    name: Option<&str>,
) -> anyhow::Result<Vec<(&'a Name, &'a TableConfig, Route)>> {
    if let Some(name) = name
        && !config.tables.contains_key(name)
    {
        let known = config.tables.keys().map(|name| &**name);
        let hint = did_you_mean(name, known).map(|hint| format!(": {hint}")).unwrap_or_default();
        return Err(Usage(format!("the config has no table {name:?}{hint}")).into());
    }
    let route = |name: &Name| {
        let mut routes = config.routes.values().map(|config| &config.route);
        let route = routes.find(|route| route.table.as_ref() == Some(name)).cloned();
        route.unwrap_or_else(|| Route::new(name.clone(), "", no_policy()))
    };
    let all = config.tables.iter().filter(|(known, _)| name.is_none_or(|name| &***known == name));
    Ok(all.map(|(name, table)| (name, table, route(name))).collect())
}

/// The policy of a table whose rows nobody takes.
fn no_policy() -> Policy {
    Policy { backoff: Backoff::Table(Vec::new()), jitter: Jitter::None, max_attempts: 1, expires_after: None }
}
