//! `redeliver table`: makes an application's own table, or looks whether one that is there can be used.

use anyhow::bail;
use redeliver_core::{Name, Route};

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
            let count = wanted(&config, name.as_deref())?.len();
            check(&config, name.as_deref())?;
            print(&format!("ok: {}\n", crate::config::problem::counted(count, "table")))
        }
    }
}

/// Refuses tables that can't be used, and says what each lacks. One that can't be looked at is only mentioned.
pub(super) fn check(config: &Config, name: Option<&str>) -> anyhow::Result<()> {
    let mut refused = Vec::new();
    for (name, table, route) in wanted(config, name)? {
        let opened =
            reach::run(async { Ok(wire::open_table(config, table, table.mapping(name, &route)).await) })?;
        match opened {
            Ok(_) => {}
            Err(TableTrouble::Unusable(why)) => refused.push(format!("table {name}: {why}")),
            Err(TableTrouble::Unreachable(why)) => {
                print_aside(format!("table {name} was not looked at: {why}"))
            }
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => bail!("{}", refused.join("\n")),
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
        routes.find(|route| route.table.as_ref() == Some(name)).cloned()
    };
    let all = config.tables.iter().filter(|(known, _)| name.is_none_or(|name| &***known == name));
    Ok(all.filter_map(|(name, table)| Some((name, table, route(name)?))).collect())
}
