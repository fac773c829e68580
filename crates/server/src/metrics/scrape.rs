//! What the store is asked for when somebody scrapes: counts of messages, and the gates that are closed.

use std::fmt::Write as _;
use std::time::Duration;

use redeliver_core::gate::{GateRecord, Scope};
use redeliver_core::{Lane, Name};
use redeliver_engine::Engine;
use redeliver_engine::store::{Count, StoreError};

/// What the store said.
pub(super) struct Counted {
    /// The engine's uptime then.
    pub(super) at: Duration,
    counts: Vec<Count>,
    /// How long the first due message of a lane has been due.
    overdue: Vec<(Name, Lane, Duration)>,
    closed: Vec<GateRecord>,
    /// The routes of applications' tables.
    of_tables: Vec<Name>,
}

/// Asks the store; `uptime` is the engine's.
pub(super) async fn count(engine: &Engine, uptime: Duration) -> Result<Counted, StoreError> {
    let now = engine.clock().now();
    let counts = engine.store().counts(now).await?;
    let mut overdue = Vec::new();
    for count in counts.iter().filter(|count| count.due > 0) {
        if let Some(at) = engine.store().next_due_at(count.route.clone(), count.lane).await? {
            overdue.push((count.route.clone(), count.lane, now.since(at)));
        }
    }
    let closed = engine.store().gates().await?.into_iter().filter(|record| record.is_shut(now)).collect();
    let of_tables =
        engine.routes().filter(|route| route.table.is_some()).map(|route| route.name.clone()).collect();
    Ok(Counted { at: uptime, counts, overdue, closed, of_tables })
}

impl Counted {
    /// All of it, as Prometheus reads it.
    pub(super) fn write(&self, text: &mut String) {
        write_counts(text, &self.counts);
        write_overdue(text, &self.overdue);
        write_closed(text, &self.closed);
        if !self.of_tables.is_empty() {
            self.write_rows(text);
        }
    }

    /// The rows of applications' tables. A table without old rows is a line with 0: an alert needs one.
    fn write_rows(&self, text: &mut String) {
        let of_tables = || self.counts.iter().filter(|count| self.of_tables.contains(&count.route));
        let due: u64 = of_tables().map(|count| count.due).sum();
        let name = "email_retries_due";
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "# HELP {name} Rows of applications' tables that are due.\n# TYPE {name} gauge\n{name} {due}"
        );
        let name = "redeliver_rows_pending_old";
        let _ = writeln!(
            text,
            "# HELP {name} Rows of an application's table that have been with their sender for longer than this.\n\
             # TYPE {name} gauge"
        );
        for route in &self.of_tables {
            for (place, age) in ["1h", "1d", "1w"].into_iter().enumerate() {
                let old = of_tables().filter(|count| count.route == *route).map(|count| count.old[place]);
                let (route, old) = (label(route), old.sum::<u64>());
                let _ = writeln!(text, "{name}{{route=\"{route}\",older_than=\"{age}\"}} {old}");
            }
        }
    }

    /// How many messages of these routes wait, if there are such routes.
    pub(super) fn write_depth(&self, text: &mut String, routes: &[Name]) {
        if routes.is_empty() {
            return;
        }
        let name = "retry_queue_depth";
        let waits = |count: &&Count| count.state == "waiting" && routes.contains(&count.route);
        let depth: u64 = self.counts.iter().filter(waits).map(|count| count.count).sum();
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# HELP {name} Pending retry tasks.\n# TYPE {name} gauge\n{name} {depth}");
    }
}

/// How long ago this instance was last heard of. It grows while a heartbeat is under way, so that one that never ends shows.
pub(super) fn write_heartbeat_age(text: &mut String, engine: &Engine) {
    let Some(age) = engine.heartbeat_age() else { return };
    let name = "redeliver_heartbeat_age_seconds";
    let _ = writeln!(
        text,
        "# HELP {name} Time since the store confirmed a heartbeat of this instance.\n# TYPE {name} gauge\n{name} {}",
        age.as_secs_f64()
    );
}

/// One line for each kind of gate and what it stands before, so that none closed is told as 0. Which one it is may be an
/// address, and is for the API to tell.
fn write_closed(text: &mut String, closed: &[GateRecord]) {
    let name = "redeliver_gates_closed";
    let _ = writeln!(text, "# HELP {name} Gates that let nothing through now.\n# TYPE {name} gauge");
    let any = Scope::ALL.iter().flat_map(|scope| [("pause", *scope), ("hold", *scope)]);
    let destinations = ["throttle", "breaker"].map(|gate| (gate, Scope::Destination));
    let suppressions = [("suppression", Scope::Workspace)];
    for (gate, scope) in any.chain(destinations).chain(suppressions) {
        let prefix = format!("{gate}:{}:", scope.name());
        let count = closed.iter().filter(|record| record.key.as_str().starts_with(&prefix)).count();
        let _ = writeln!(text, "{name}{{gate=\"{gate}\",scope=\"{}\"}} {count}", scope.name());
    }
}

fn write_overdue(text: &mut String, overdue: &[(Name, Lane, Duration)]) {
    let name = "redeliver_oldest_due_seconds";
    // Writing to a text cannot fail.
    let _ = writeln!(text, "# HELP {name} How long the first due message has been due.\n# TYPE {name} gauge");
    for (route, lane, span) in overdue {
        let _ = writeln!(text, "{name}{{{}}} {}", labels(route, *lane), span.as_secs_f64());
    }
}

/// The labels of a lane. A route's name may come from a store that others wrote.
fn labels(route: &str, lane: Lane) -> String {
    format!("route=\"{}\",lane=\"{}\"", label(route), lane.name())
}

/// A text as the value of a label.
fn label(text: &str) -> String {
    text.replace(['\\', '"', '\n'], "_")
}

fn write_counts(text: &mut String, counts: &[Count]) {
    gauge(text, "redeliver_messages", "Messages by state, dismissed ones aside.", counts, |count| {
        Some((format!("state=\"{}\"", count.state), count.count))
    });
    gauge(text, "redeliver_due", "Messages whose time has come.", counts, |count| {
        (count.state == "waiting").then(|| (String::new(), count.due))
    });
    gauge(text, "redeliver_held", "Messages that wait for a gate.", counts, |count| {
        (count.state == "waiting").then(|| (String::new(), count.parked))
    });
    gauge(text, "redeliver_dead", "Messages that were given up, by reason.", counts, |count| {
        Some((format!("reason=\"{}\"", count.reason?), count.count))
    });
}

/// One gauge, a line for each count that has something to say, those of the same labels together.
fn gauge(
    text: &mut String,
    name: &str,
    help: &str,
    counts: &[Count],
    value: impl Fn(&Count) -> Option<(String, u64)>,
) {
    let mut lines: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for count in counts {
        if let Some((label, value)) = value(count) {
            let comma = if label.is_empty() { "" } else { "," };
            let labels = format!("{}{comma}{label}", labels(&count.route, count.lane));
            *lines.entry(labels).or_default() += value;
        }
    }
    // Writing to a text cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, value) in lines {
        let _ = writeln!(text, "{name}{{{labels}}} {value}");
    }
}
