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
    /// How many rows of applications' tables are due, where there are such tables.
    rows_due: Option<u64>,
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
    let of_tables: Vec<&Name> =
        engine.routes().filter(|route| route.table.is_some()).map(|route| &route.name).collect();
    let rows = counts.iter().filter(|count| of_tables.contains(&&count.route));
    let rows_due = (!of_tables.is_empty()).then(|| rows.map(|count| count.due).sum());
    Ok(Counted { at: uptime, counts, overdue, closed, rows_due })
}

impl Counted {
    /// All of it, as Prometheus reads it.
    pub(super) fn write(&self, text: &mut String) {
        write_counts(text, &self.counts);
        write_overdue(text, &self.overdue);
        write_closed(text, &self.closed);
        if let Some(due) = self.rows_due {
            let name = "email_retries_due";
            let _ = writeln!(
                text,
                "# HELP {name} Rows of applications' tables that are due.\n# TYPE {name} gauge\n{name} {due}"
            );
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
    format!("route=\"{}\",lane=\"{}\"", route.replace(['\\', '"', '\n'], "_"), lane.name())
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
