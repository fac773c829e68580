//! `redeliver check`: says whether a config can be used, and the applications' tables that it names; and sums it up.

use std::fmt::Write;

use redeliver_core::route::Route;
use redeliver_core::{Lane, Name};

use super::{load_config, print, show};
use crate::args::CheckArgs;
use crate::config::problem::counted;
use crate::config::{Config, RouteConfig};
use crate::exit::print_aside;

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = load_config(&args.config)?;
    for warning in &loaded.warnings {
        print_aside(warning);
    }
    for unseen in super::table::check(&loaded.config)? {
        print_aside(unseen);
    }
    print(&summary(&loaded.config, loaded.warnings.len())?)
}

fn summary(config: &Config, warnings: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    write!(
        text,
        "ok: {}, {}, {}, store {}",
        counted(config.routes.len(), "route"),
        counted(config.transports.len(), "transport"),
        counted(config.policies.len(), "policy"),
        config.store.url.show()
    )?;
    if warnings > 0 {
        write!(text, "; {}", counted(warnings, "warning"))?;
    }
    text.push('\n');
    for config in config.routes.values() {
        writeln!(text, "  route {}: {}", config.route.name, travels(config).join("; "))?;
    }
    for (name, policy) in &config.policies {
        let last = policy.timetable(policy.max_attempts).last().map_or_else(
            || "no retries".to_owned(),
            |slot| format!("the last {} after the first", show::bounds(slot.since_first)),
        );
        writeln!(text, "  policy {name}: {}, {last}", counted(policy.max_attempts as usize, "try"))?;
    }
    Ok(text)
}

/// How the lanes of a route travel; those that travel alike are said together.
pub(super) fn travels(config: &RouteConfig) -> Vec<String> {
    let describe = |lane: Lane| describe(&config.route, &config.policies, lane);
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for lane in Lane::ALL {
        let text = describe(lane);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, lanes)) => lanes.push(lane.name()),
            None => groups.push((text, vec![lane.name()])),
        }
    }
    match groups.as_slice() {
        [(text, _)] => vec![text.clone()],
        _ => groups.into_iter().map(|(text, lanes)| format!("{}: {text}", lanes.join(", "))).collect(),
    }
}

fn describe(route: &Route, policies: &[Name; 4], lane: Lane) -> String {
    let travel = route.travel(lane);
    let target = travel.target.as_ref().map(|target| format!(" to {target}")).unwrap_or_default();
    format!("by {}{target}, policy {}", travel.transport, policies[lane as usize])
}
