//! Judges what was seen, and says what to do. Looks at nothing itself.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::gate::Closed;
use redeliver_core::time::show_span;
use redeliver_engine::store::{Count, StoreError};
use redeliver_stores::{Integrity, OpenError, SQLITE_MIN, SqliteVersion};

use super::look::{Facts, Inside, LAPSED_COUNTED_MAX, Open, Room};
use super::{Finding, database};
use crate::config::problem::counted;
use crate::config::{Config, Loaded};

const MIB: u64 = 1024 * 1024;
/// Less room than this beside the file will soon be none.
const FREE_BYTES_LOW: u64 = 1024 * MIB;
/// Less than this, and the next burst of messages is refused.
const FREE_BYTES_MIN: u64 = 100 * MIB;
/// A log that is written back in time never grows to this.
const LOG_BYTES_MAX: u64 = 256 * MIB;
/// A message that is due for longer than this has been left lying.
const LATENESS_MAX: Duration = Duration::from_secs(60);
/// How far the store may be ahead of this machine's clock before it is worth a word.
const AHEAD_MAX: Duration = Duration::from_secs(5);

pub(super) fn judge(loaded: &Loaded, facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![config(loaded)];
    match facts {
        Facts::Memory => findings.push(Finding::warning(
            "store",
            "messages are kept in the memory of their process, where nobody else can look",
            "set store.url to sqlite:FILE or postgres://… to keep them",
        )),
        Facts::Missing { path, room } => {
            let missing = format!("there is no file {}", path.display());
            findings.push(Finding::problem(
                "store",
                missing,
                "start `redeliver serve`, which makes it; or correct store.url",
            ));
            findings.push(disk(*room));
        }
        Facts::Closed { error, room } => {
            findings.push(closed(error));
            findings.push(disk(*room));
        }
        Facts::Open(open) => findings.extend(opened(&loaded.config, open)),
        Facts::Unreached { error } => findings.push(database::unreached(error)),
        Facts::Database(seen) => {
            findings.extend(database::judge(seen));
            match &seen.inside {
                Ok(inside) => findings.extend(messages(&loaded.config, inside)),
                Err(error) => findings.push(unread("messages", error)),
            }
        }
    }
    findings
}

fn config(Loaded { config, warnings, .. }: &Loaded) -> Finding {
    let routes = counted(config.routes.len(), "route");
    match warnings.len() {
        0 => Finding::ok("config", routes),
        count => Finding::warning(
            "config",
            format!("{routes}, {}", counted(count, "warning")),
            "`redeliver check` prints them",
        ),
    }
}

fn closed(error: &OpenError) -> Finding {
    let advice = match error {
        OpenError::Taken { .. } | OpenError::Locked { .. } => "end whatever has a transaction open on it",
        OpenError::Unreachable { .. } => "correct the path or its permissions",
        OpenError::Full { .. } => "make room; nothing that was accepted is lost",
        OpenError::Damaged { .. } => DAMAGED_ADVICE,
        OpenError::OtherVersion { .. } => "use the redeliver that fits it, or another file",
    };
    Finding::problem("store", error.to_string(), advice)
}

const DAMAGED_ADVICE: &str =
    "stop redeliver, keep a copy of the file with its -wal, then restore a backup or try sqlite3's .recover";

fn opened(config: &Config, open: &Open) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(
        "store",
        format!("{} and a log of {}", size(open.room.file_bytes), size(open.room.log_bytes)),
    )];
    findings.extend(log(open.room));
    findings.push(disk(open.room));
    findings.extend(open.oldest_writer.and_then(old_writer));
    findings.push(integrity(&open.integrity));
    findings.extend(clock(open.last_time, open.wall));
    match &open.inside {
        Ok(inside) => findings.extend(messages(config, inside)),
        Err(error) => findings.push(unread("messages", error)),
    }
    findings
}

/// A program that writes to the file with a SQLite that can damage it.
fn old_writer(version: SqliteVersion) -> Option<Finding> {
    (version < SQLITE_MIN).then(|| {
        Finding::warning(
            "sqlite",
            format!("another program wrote to the file with SQLite {version}, which can damage it"),
            format!("use SQLite {SQLITE_MIN} or newer there: older ones can lose commits while the log is written back"),
        )
    })
}

pub(super) fn unread(what: &'static str, error: &StoreError) -> Finding {
    let advice = match error {
        StoreError::Damaged(_) => DAMAGED_ADVICE,
        StoreError::Full(_) => "make room",
        StoreError::Broken(_) => "check the disk, then start redeliver again",
        StoreError::Unavailable(_) | StoreError::Unfit(_) => "try again; if it stays so, restart redeliver",
    };
    Finding::problem(what, error.to_string(), advice)
}

fn log(room: Room) -> Option<Finding> {
    (room.log_bytes > LOG_BYTES_MAX).then(|| {
        Finding::warning(
            "log",
            format!("the log has grown to {} and is not being written back", size(room.log_bytes)),
            "end whatever has kept a read transaction open on the file for long",
        )
    })
}

fn disk(room: Room) -> Finding {
    let Some(free) = room.free_bytes else {
        return Finding::warning("disk", "the free room can't be told", "look at the file system yourself");
    };
    let text = format!("{} free beside it", size(free));
    match free {
        0..FREE_BYTES_MIN => Finding::problem("disk", text, "make room now: without it nothing is accepted"),
        FREE_BYTES_MIN..FREE_BYTES_LOW => Finding::warning("disk", text, "make room soon"),
        _ => Finding::ok("disk", text),
    }
}

fn integrity(integrity: &Result<Integrity, StoreError>) -> Finding {
    let found = match integrity {
        Ok(found) => found,
        Err(error) => return unread("integrity", error),
    };
    if found.is_whole() {
        return Finding::ok("integrity", "the file is whole, and every message has its content");
    }
    if let Some(first) = found.damages.first() {
        let text = format!("the file is damaged ({}): {first}", counted(found.damages.len(), "damage"));
        return Finding::problem("integrity", text, DAMAGED_ADVICE);
    }
    let missing = found.missing_contents + found.orphan_keys;
    let wasted = found.orphan_contents + found.orphan_attempts;
    if missing > 0 {
        let text = format!(
            "{} without content, {} of messages that are gone",
            counted(count(found.missing_contents), "message"),
            counted(count(found.orphan_keys), "key"),
        );
        return Finding::problem("integrity", text, "somebody else has written to it: compare with a backup");
    }
    let text = format!("{wasted} rows of messages that are gone take room");
    Finding::warning("integrity", text, "somebody else has deleted messages; they are harmless")
}

fn clock(last_time: Option<Timestamp>, wall: Timestamp) -> Option<Finding> {
    let ahead = last_time?.since(wall);
    (ahead > AHEAD_MAX).then(|| {
        Finding::warning(
            "clock",
            format!("the store has seen a time {} ahead of this machine's clock", show_span(ahead)),
            "set the clock right; until it has caught up, an engine's time goes at half pace",
        )
    })
}

fn messages(config: &Config, inside: &Inside) -> Vec<Finding> {
    let due: u64 = inside.counts.iter().map(|count| count.due).sum();
    let mut findings = vec![engine(inside.instances, due)];
    let mut routes: BTreeMap<&str, Vec<&Count>> =
        config.routes.keys().map(|name| (&**name, Vec::new())).collect();
    for count in &inside.counts {
        routes.entry(&count.route).or_default().push(count);
    }
    for (name, counts) in &routes {
        findings.push(route(name, counts, config.routes.contains_key(*name)));
    }
    findings.push(lateness(inside));
    findings.extend(leases(inside));
    findings.extend(reports(inside));
    findings.extend(gates(inside));
    findings
}

fn engine(instances: u64, due: u64) -> Finding {
    match (instances, due) {
        (0, 0) => Finding::ok("engine", "none is running, and nothing is due"),
        (0, _) => Finding::problem(
            "engine",
            format!("none is running, and {}", counted(count(due), "message") + " due"),
            "start `redeliver serve`",
        ),
        _ => Finding::ok("engine", counted(count(instances), "instance") + " alive"),
    }
}

fn route(name: &str, counts: &[&Count], known: bool) -> Finding {
    let sum = |state: &str, of: fn(&Count) -> u64| -> u64 {
        counts.iter().filter(|count| count.state == state).map(|count| of(count)).sum()
    };
    let all = |state| sum(state, |count| count.count);
    let (due, parked) = (sum("waiting", |count| count.due), sum("waiting", |count| count.parked));
    let text = format!(
        "{name}: {} waiting ({due} due, {parked} parked), {} claimed, {} handed off, {} delivered, {} dead{}, \
         {} cancelled",
        all("waiting"),
        all("claimed"),
        all("handed_off"),
        all("delivered"),
        all("dead"),
        reasons(counts),
        all("cancelled"),
    );
    let unended = all("waiting") + all("claimed") + all("handed_off");
    if !known && unended > 0 {
        let advice = format!("the config doesn't know it, so they wait for ever: add [routes.{name}]");
        return Finding::problem("route", text, advice);
    }
    match all("dead") {
        0 => Finding::ok("route", text),
        _ => Finding::warning("route", text, "look at the dead: retry them, or put them away"),
    }
}

/// Why the dead of a route were given up, most often first.
fn reasons(counts: &[&Count]) -> String {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for count in counts {
        if let Some(reason) = count.reason {
            *reasons.entry(reason).or_default() += count.count;
        }
    }
    let mut reasons: Vec<(&str, u64)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

fn lateness(inside: &Inside) -> Finding {
    let Some((route, at)) = inside.next_due.iter().min_by_key(|(_, at)| *at) else {
        return Finding::ok("due", "nothing waits for its time");
    };
    let late = inside.now.since(*at);
    if *at > inside.now {
        let next = show_span(at.since(inside.now));
        return Finding::ok("due", format!("nothing is due; the next is in {next}, on route {route}"));
    }
    let text = format!("the oldest is due for {}, on route {route}", show_span(late));
    match (late > LATENESS_MAX, inside.instances) {
        (true, 0) => Finding::warning("due", text, "nobody carries it: start `redeliver serve`"),
        (true, _) => Finding::warning(
            "due",
            text,
            "the engine can't keep up or doesn't know the route: see its log, concurrency_max and rate",
        ),
        (false, _) => Finding::ok("due", text),
    }
}

fn leases(inside: &Inside) -> Option<Finding> {
    let lapsed = match inside.lapsed {
        0 => return None,
        LAPSED_COUNTED_MAX => format!("{LAPSED_COUNTED_MAX} or more messages are"),
        1 => "1 message is".to_owned(),
        count => format!("{count} messages are"),
    };
    let text = format!("{lapsed} with a worker that vanished");
    Some(match inside.instances {
        0 => Finding::warning("leases", text, "start `redeliver serve`, which takes them up at once"),
        _ => {
            Finding::warning("leases", text, "the engine settles them in a moment; if they stay, see its log")
        }
    })
}

fn reports(inside: &Inside) -> Option<Finding> {
    let overdue = match inside.overdue {
        0 => return None,
        LAPSED_COUNTED_MAX => format!("{LAPSED_COUNTED_MAX} or more messages"),
        count => counted(count, "message"),
    };
    let text = format!("of {overdue} handed off, no report came in time");
    let advice = "an engine tries them again; see why their worker doesn't report";
    Some(Finding::warning("reports", text, advice))
}

fn gates(inside: &Inside) -> Vec<Finding> {
    let closed =
        inside.gates.iter().filter(|gate| !gate.key.is_prospect() && (gate.parks() || inside.parked.contains(&gate.key))).map(|gate| {
            let since = show_span(inside.now.since(gate.since));
            let text = format!("{} is closed since {since} ago: {}", gate.key, gate.reason);
            let advice = match gate.closed {
                Closed::Paused => "resume it when its messages may go",
                Closed::Suppressed => {
                    "mails to whoever wants no more wait here: `redeliver suppressions remove` lets them go"
                }
                Closed::Held { .. } if gate.key.parts().1 == "sender" => {
                    "mend what the reason says, then resume it: `redeliver senders resume`"
                }
                Closed::Held { .. } => {
                    "mend what the reason says; a good login opens it, or resume it by `redeliver destinations resume`"
                }
                Closed::Throttled(_) => "it opens by itself",
                Closed::Breaker(_) => "it opens by itself once the destination answers",
            };
            Finding::warning("gate", text, advice)
        });
    let opened =
        inside.parked.iter().filter(|key| inside.gates.iter().all(|gate| gate.key != **key)).map(|key| {
            Finding::ok("gate", format!("messages wait for {key}, which is open: an engine releases them"))
        });
    closed.chain(opened).chain(paused_prospects(inside)).collect()
}

/// Those who are paused one by one and have a mail that waits. There may be many, and a person meant each of them.
fn paused_prospects(inside: &Inside) -> Option<Finding> {
    let paused = inside.gates.iter().filter(|gate| gate.key.is_prospect()).count();
    let text = match paused {
        0 => return None,
        1 => "mails wait for 1 prospect who is paused".to_owned(),
        count => format!("mails wait for {count} prospects who are paused"),
    };
    Some(Finding::ok("prospects", text))
}

/// Bytes in a unit that people read.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{size:.1} {unit}")
}

pub(super) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
