//! `redeliver policy`: shows when messages are retried, and when they are given up.

use redeliver_core::policy::{Backoff, Bounds, Slot};
use redeliver_core::time::show_span;
use redeliver_core::{Name, Policy};
use serde::Serialize;

use super::{load_config, print, print_json, show};
use crate::args::PolicyCommand;
use crate::config::policy_warnings;
use crate::config::problem::{counted, did_you_mean};
use crate::exit::Usage;

/// The most lines of a timetable that are printed for people.
const LINES_MAX: usize = 40;

pub(super) fn run(command: &PolicyCommand) -> anyhow::Result<()> {
    match command {
        PolicyCommand::List { config, json } => {
            let policies = load_config(config)?.config.policies;
            if *json {
                let all: Vec<Described> =
                    policies.iter().map(|(name, policy)| describe(name, policy)).collect();
                return print_json(&all);
            }
            print(&list(policies.iter()))
        }
        PolicyCommand::Show { name, config, json } => {
            let policies = load_config(config)?.config.policies;
            let Some((name, policy)) = policies.get_key_value(name.as_str()) else {
                return Err(unknown(name, policies.keys()).into());
            };
            if *json {
                return print_json(&describe(name, policy));
            }
            print(&timetable(name, policy))
        }
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a Name> + Clone) -> Usage {
    let hint = did_you_mean(name, known.clone().map(|name| &**name)).unwrap_or_else(|| {
        let known: Vec<&str> = known.map(|name| &**name).collect();
        if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) }
    });
    Usage(format!("the config has no policy \"{name}\": {hint}"))
}

fn list<'a>(policies: impl Iterator<Item = (&'a Name, &'a Policy)>) -> String {
    let rows = policies.map(|(name, policy)| {
        vec![
            name.to_string(),
            policy.max_attempts.to_string(),
            show::backoff(&policy.backoff),
            policy.jitter.show(),
            show::bounds(span(policy)),
        ]
    });
    show::table(&["policy", "tries", "waits", "jitter", "first to last"], &[1], rows.collect())
}

fn timetable(name: &str, policy: &Policy) -> String {
    let slots = policy.timetable(policy.max_attempts);
    let whole = span(policy);
    let row = |slot: &Slot| {
        vec![
            slot.attempt.to_string(),
            show::bounds(slot.wait),
            show::bounds(slot.since_first),
            show::bar(slot.since_first, whole.max),
        ]
    };
    let mut rows = vec![vec!["1".to_owned(), "at once".to_owned(), "0s".to_owned(), String::new()]];
    if slots.len() > LINES_MAX {
        rows.extend(slots[..LINES_MAX - 2].iter().map(row));
        rows.push(vec!["…".to_owned(), String::new(), String::new(), String::new()]);
        rows.extend(slots.last().map(row));
    } else {
        rows.extend(slots.iter().map(row));
    }
    let table = show::table(&["try", "wait", "since first", ""], &[0], rows);
    format!("{}\n\n{table}\n{}", headline(name, policy), ending(policy))
}

fn headline(name: &str, policy: &Policy) -> String {
    let mut parts = vec![counted(policy.max_attempts as usize, "try")];
    parts.push(format!("waits {}", show::backoff(&policy.backoff)));
    parts.extend(show::jitter(policy.jitter));
    format!("policy {name}: {}", parts.join("; "))
}

fn ending(policy: &Policy) -> String {
    let mut text = match policy.max_attempts {
        1 => "dead after try 1, without a retry\n".to_owned(),
        n => format!("dead after try {n}, {} after the first\n", show::bounds(span(policy))),
    };
    if let Some(after) = policy.expires_after {
        text.push_str(&format!("dead sooner if it expires, {} after it was accepted\n", show_span(after)));
    }
    for warning in policy_warnings(policy) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

/// From the first try to the last.
fn span(policy: &Policy) -> Bounds {
    let zero = Bounds { min: std::time::Duration::ZERO, max: std::time::Duration::ZERO };
    policy.timetable(policy.max_attempts).last().map_or(zero, |slot| slot.since_first)
}

/// A policy as programs read it.
#[derive(Serialize)]
struct Described {
    name: String,
    max_attempts: u32,
    backoff: DescribedBackoff,
    jitter: String,
    expires_after_ms: Option<u64>,
    span_min_ms: u64,
    span_max_ms: u64,
    timetable: Vec<DescribedSlot>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum DescribedBackoff {
    Table(Vec<String>),
    Exponential { base: String, factor: f64, cap: String },
}

#[derive(Serialize)]
struct DescribedSlot {
    attempt: u32,
    wait_min_ms: u64,
    wait_max_ms: u64,
    since_first_min_ms: u64,
    since_first_max_ms: u64,
}

fn describe(name: &str, policy: &Policy) -> Described {
    let ms = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let slot = |slot: Slot| DescribedSlot {
        attempt: slot.attempt,
        wait_min_ms: ms(slot.wait.min),
        wait_max_ms: ms(slot.wait.max),
        since_first_min_ms: ms(slot.since_first.min),
        since_first_max_ms: ms(slot.since_first.max),
    };
    let whole = span(policy);
    Described {
        name: name.to_owned(),
        max_attempts: policy.max_attempts,
        backoff: match &policy.backoff {
            Backoff::Table(entries) => {
                DescribedBackoff::Table(entries.iter().map(|wait| show_span(*wait)).collect())
            }
            Backoff::Exponential { base, factor, cap } => DescribedBackoff::Exponential {
                base: show_span(*base),
                factor: *factor,
                cap: show_span(*cap),
            },
        },
        jitter: policy.jitter.show(),
        expires_after_ms: policy.expires_after.map(ms),
        span_min_ms: ms(whole.min),
        span_max_ms: ms(whole.max),
        timetable: policy.timetable(policy.max_attempts).into_iter().map(slot).collect(),
        warnings: policy_warnings(policy),
    }
}
