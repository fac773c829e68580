//! `[routes.NAME]`: the ways that messages travel.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redeliver_core::breaker::BreakerConfig;
use redeliver_core::limit::Rate;
use redeliver_core::route::{
    LANE_WEIGHTS, OnAuthError, OnLost, Route, Travel, cut_timeouts, send_timeout_for,
};
use redeliver_core::time::show_span;
use redeliver_core::{Lane, Name, Policy};
use redeliver_gates::eligibility::EligibilityConfig;

use super::problem::{Findings, did_you_mean};
use super::reader::{Located, Reader};
use super::source::Node;
use super::tables::TableConfig;
use super::transports::TransportConfig;
use super::value::{AGE, DAY, HOUR, MS, SECOND};
use super::{eligibility, policies};

/// A route, and what its policies are called.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteConfig {
    /// The route, ready to be served.
    pub route: Route,
    /// The name of each lane's policy, by `Lane as usize`.
    pub policies: [Name; 4],
    /// Who is asked before each try whether a message's receiver is active, if anybody is.
    pub eligibility: Option<EligibilityConfig>,
}

/// What routes refer to.
pub(super) struct Parts<'a> {
    pub(super) transports: &'a BTreeMap<Name, Located<TransportConfig>>,
    pub(super) policies: &'a BTreeMap<Name, Located<Policy>>,
    pub(super) tables: &'a BTreeMap<Name, Located<TableConfig>>,
}

/// How one lane travels, by the names that the config gives its parts.
#[derive(Clone)]
struct Way {
    transport: Name,
    target: Option<Name>,
    policy: Name,
    weight: u32,
}

/// Where the priority stands in a target.
const PRIORITY: &str = "{priority}";

pub(super) fn read(reader: &Reader<'_>, parts: &Parts<'_>) -> BTreeMap<Name, RouteConfig> {
    let routes = reader.named("routes", |name, reader| {
        let place = reader.place_of("dead_letter").clone();
        Located { value: read_one(name, reader, parts), place }
    });
    let routes = routes.into_iter().map(|(name, found)| (name, found.value)).collect();
    check_dead_letters(&routes, reader.findings());
    check_tables(&routes, parts.tables, reader.findings());
    routes.into_iter().map(|(name, found)| (name, found.value)).collect()
}

fn read_one(name: &Name, reader: &Reader<'_>, parts: &Parts<'_>) -> RouteConfig {
    reader.require("transport", "transport = \"NAME\" for [transports.NAME]");
    reader.require("policy", "policy = \"NAME\" for [policies.NAME]");
    let nowhere = Way { transport: "".into(), target: None, policy: "".into(), weight: 1 };
    let way = Way::read(reader, nowhere, parts);
    let ways = reader.section("lanes", |lanes| {
        Lane::ALL.map(|lane| {
            lanes.section(lane.name(), |reader| {
                let own = Way { weight: LANE_WEIGHTS[lane as usize], ..way.clone() };
                let weight = reader.get("weight", own.weight, |node| node.count(1..=1_000));
                Way { weight, ..Way::read(reader, own, parts) }
            })
        })
    });
    let transports = || ways.iter().filter_map(|way| parts.transports.get(&way.transport));
    let patience = transports().map(|found| send_timeout_for(&found.value.timeouts())).max();
    let unconfirmed_max = transports().map(|found| found.value.unconfirmed_max()).min();
    let route = Route::new(name.clone(), way.transport.clone(), way.travel(None, parts).policy);
    let route = Route {
        lanes: Lane::ALL.map(|lane| ways[lane as usize].travel(Some(lane), parts)),
        send_timeout: patience.unwrap_or(route.send_timeout),
        unconfirmed_max: unconfirmed_max.unwrap_or(route.unconfirmed_max),
        ..route
    };
    let table = reader.get("table", None, |node| match node.text()?.as_str() {
        "" => Ok(None),
        name if parts.tables.contains_key(name) => Ok(Some(name.into())),
        name => Err(format!("names no table \"{name}\": {}", hint(name, parts.tables.keys()))),
    });
    let route = Route { table, ..settings(reader, route) };
    check(reader, &route, parts);
    let eligibility = eligibility::read(reader);
    RouteConfig { route, policies: ways.map(|way| way.policy), eligibility }
}

/// Checks where the word of each route's dead goes. The places are those of the key.
fn check_dead_letters(routes: &BTreeMap<Name, Located<RouteConfig>>, findings: &Findings) {
    let after = |name: &Name| routes.get(name).and_then(|found| found.value.route.dead_letter.clone());
    for (name, Located { value, place }) in routes {
        let Some(letter) = &value.route.dead_letter else { continue };
        if !routes.contains_key(letter) {
            let hint = hint(letter, routes.keys());
            findings.error(place, format!("dead_letter names no route \"{letter}\": {hint}"));
        }
        // A loop is reported once, by the first of its routes.
        let mut path = vec![name.clone()];
        while let Some(next) = path.last().and_then(after) {
            if next == *name && path.iter().all(|other| name <= other) {
                path.push(next);
                let shown: Vec<&str> = path.iter().map(|name| &**name).collect();
                findings.error(place, format!("dead letters go round in a loop: {}", shown.join(" -> ")));
                break;
            }
            if path.contains(&next) {
                break;
            }
            path.push(next);
        }
    }
}

/// A table's rows have one way to go.
fn check_tables(
    routes: &BTreeMap<Name, Located<RouteConfig>>,
    tables: &BTreeMap<Name, Located<TableConfig>>,
    findings: &Findings,
) {
    let mut taken: BTreeMap<&Name, &Name> = BTreeMap::new();
    for (name, Located { value, place }) in routes {
        let Some(table) = &value.route.table else { continue };
        if let Some(other) = taken.insert(table, name) {
            findings.error(place, format!("table \"{table}\" has two routes, {other} and {name}"));
        }
        let has_queued_at =
            tables.get(table).is_none_or(|found| found.value.columns.last_queued_at.is_some());
        if value.route.report_within.is_some() && !has_queued_at {
            let wrong = format!("needs last_queued_at in [tables.{table}.columns]: it is counted from there");
            findings.error(place, format!("report_within of route {name} {wrong}"));
        }
        if value.route.lanes.iter().any(|way| way.policy.expires_after.is_some()) {
            let wrong =
                "carries the rows of a table, which never expire: remove expires_after from its policy";
            findings.error(place, format!("route {name} {wrong}"));
        }
    }
}

impl Way {
    fn read(reader: &Reader<'_>, default: Self, parts: &Parts<'_>) -> Self {
        Self {
            transport: refer(reader, "transport", parts.transports).unwrap_or(default.transport),
            target: reader.get("target", default.target, name_or_empty),
            policy: refer(reader, "policy", parts.policies).unwrap_or(default.policy),
            weight: default.weight,
        }
    }

    /// How a lane travels. A target may have a place for its priority.
    fn travel(&self, lane: Option<Lane>, parts: &Parts<'_>) -> Travel {
        let fill = |target: &Name| match lane {
            Some(lane) => target.replace(PRIORITY, lane.name()).into(),
            None => target.clone(),
        };
        let policy = parts.policies.get(&self.policy);
        Travel {
            transport: self.transport.clone(),
            target: self.target.as_ref().map(fill),
            policy: policy.map_or_else(policies::stand_in, |found| found.value.clone()),
            weight: self.weight,
        }
    }
}

fn settings(reader: &Reader<'_>, default: Route) -> Route {
    Route {
        on_lost: reader.get("on_lost", default.on_lost, |node| {
            node.word(&[("retry", OnLost::Retry), ("hold", OnLost::Hold)])
        }),
        on_auth_error: reader.get("on_auth_error", default.on_auth_error, |node| {
            node.word(&[("hold", OnAuthError::Hold), ("refuse_and_hold", OnAuthError::RefuseAndHold)])
        }),
        report_within: reader.get("report_within", default.report_within, |node| {
            node.unless("never", |node| node.span(SECOND..=AGE))
        }),
        dead_letter: reader.get("dead_letter", default.dead_letter, name_or_empty),
        losses_max: reader.get("losses_max", default.losses_max, |node| node.count(1..=1_000)),
        unconfirmed_max: reader.get("unconfirmed_max", default.unconfirmed_max, |node| node.count(1..=1_000)),
        lease: reader.get("lease", default.lease, |node| node.span(SECOND..=DAY)),
        send_timeout: reader.get("send_timeout", default.send_timeout, |node| node.span(MS..=HOUR * 8)),
        inline_first: reader
            .get("first_try", default.inline_first, |node| node.word(&[("worker", false), ("inline", true)])),
        concurrency_max: reader.get("concurrency_max", default.concurrency_max, permits),
        retry_after_max: reader
            .get("retry_after_max", default.retry_after_max, |node| node.span(SECOND..=AGE)),
        breaker: breaker(reader),
        rate: reader
            .get("rate", default.rate, |node| node.unless("unlimited", |node| node.parsed(Rate::parse))),
        destination_concurrency_max: reader.get(
            "destination_concurrency_max",
            default.destination_concurrency_max,
            |node| node.unless("unlimited", permits),
        ),
        retention: reader.get("retention", default.retention, |node| node.span(Duration::ZERO..=AGE)),
        key_retention: reader.get("key_retention", default.key_retention, |node| {
            node.unless("forever", |node| node.span(Duration::ZERO..=AGE))
        }),
        table: default.table,
        name: default.name,
        lanes: default.lanes,
    }
}

fn check(reader: &Reader<'_>, route: &Route, parts: &Parts<'_>) {
    let findings = reader.findings();
    let transports: BTreeSet<&Name> = route.lanes.iter().map(|travel| &travel.transport).collect();
    for transport in transports {
        let Some(found) = parts.transports.get(transport) else { continue };
        if let Some(wrong) = cut(route.send_timeout, reader.path(), transport, &found.value) {
            findings.error(reader.place_of("send_timeout"), wrong);
        }
    }
    if let Some(max) = route.destination_concurrency_max
        && max > route.concurrency_max
    {
        findings.warning(
            reader.place_of("destination_concurrency_max"),
            format!(
                "destination_concurrency_max ({max}) is never reached: concurrency_max is {}",
                route.concurrency_max
            ),
        );
    }
}

/// What is wrong with a send_timeout that ends a send before its transport has its answer.
pub(super) fn cut(
    send_timeout: Duration,
    section: &str,
    transport: &Name,
    config: &TransportConfig,
) -> Option<String> {
    let (cut, least) = cut_timeouts(send_timeout, &config.timeouts())?;
    Some(format!(
        "send_timeout ({}) in [{section}] is too short for {cut} in [transports.{transport}]: a message that was taken \
         would be sent again; make it at least {}, or shorten those",
        show_span(send_timeout),
        show_span(least)
    ))
}

fn breaker(reader: &Reader<'_>) -> Option<BreakerConfig> {
    if !reader.holds_table("breaker") {
        let wrong = "must be a table such as { failures_max = 5 }";
        return reader.get("breaker", None, |node| {
            node.unless("off", |node| Err(format!("{wrong}, not {}", node.value.kind())))
        });
    }
    let default = BreakerConfig::default();
    reader.section("breaker", |reader| {
        let breaker = BreakerConfig {
            failures_max: reader.get("failures_max", default.failures_max, |node| node.count(1..=1_000_000)),
            open_for: reader.get("open_for", default.open_for, |node| node.span(MS..=DAY)),
            open_for_max: reader.get("open_for_max", default.open_for_max, |node| node.span(MS..=DAY)),
            recover_per_s: reader
                .get("recover_per_s", default.recover_per_s, |node| node.count(1..=1_000_000)),
        };
        if breaker.open_for > breaker.open_for_max {
            let (min, max) = (show_span(breaker.open_for), show_span(breaker.open_for_max));
            let wrong = format!("open_for ({min}) must not be above open_for_max ({max})");
            reader.findings().error(reader.place_of("open_for"), wrong);
        }
        Some(breaker)
    })
}

/// The name of a part that must be there.
fn refer<T>(reader: &Reader<'_>, key: &'static str, known: &BTreeMap<Name, Located<T>>) -> Option<Name> {
    let found = reader.find(key, |node| {
        let name: Name = node.text()?.into();
        if known.contains_key(&name) {
            return Ok(name);
        }
        Err(format!("names no {key} \"{name}\": {}", hint(&name, known.keys())))
    });
    found.map(|found| found.value)
}

fn hint<'a>(name: &str, known: impl Iterator<Item = &'a Name> + Clone) -> String {
    did_you_mean(name, known.clone().map(|name| &**name)).unwrap_or_else(|| {
        let known: Vec<&str> = known.map(|name| &**name).collect();
        if known.is_empty() { "there are none".to_owned() } else { format!("known are {}", known.join(", ")) }
    })
}

/// A name; the empty text is none.
fn name_or_empty(node: &Node) -> Result<Option<Name>, String> {
    let text = node.text()?;
    Ok((!text.is_empty()).then(|| text.into()))
}

fn permits(node: &Node) -> Result<usize, String> {
    Ok(node.count(1..=100_000)? as usize)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::{Loaded, Sources, load};

    fn loaded(route: &str) -> Result<Loaded, String> {
        let text = format!(
            "[transports.mail]\nkind = 'smtp'\n[transports.mq]\nkind = 'rabbitmq'\n\
             [policies.p]\nbackoff = ['1s']\nmax_attempts = 2\n[routes.r]\npolicy = 'p'\n{route}"
        );
        let sources = Sources { file: Some(("f".into(), text)), ..Sources::default() };
        load(&sources).map_err(|wrong| format!("{wrong:?}"))
    }

    #[test]
    fn a_route_is_as_patient_as_its_most_patient_transport_and_repeats_as_its_strictest() {
        let check = |route: &str, send_timeout_s: u64, unconfirmed_max: u32| {
            let route = &loaded(route).unwrap().config.routes["r"].route;
            assert_eq!(route.send_timeout, Duration::from_secs(send_timeout_s));
            assert_eq!(route.unconfirmed_max, unconfirmed_max);
        };
        check("transport = 'mail'", 705, 3);
        check("transport = 'mq'", 40, 20);
        check("transport = 'mq'\nlanes = { low = { transport = 'mail' } }", 705, 3);
        check("transport = 'mail'\nunconfirmed_max = 1", 705, 1);
    }

    #[test]
    fn a_send_timeout_that_cuts_its_transport_is_refused_by_both_names() {
        let wrong = loaded("transport = 'mail'\nsend_timeout = '60s'").unwrap_err();
        for part in
            ["send_timeout (1m) in [routes.r]", "data_timeout (10m) in [transports.mail]", "at least 10m41s"]
        {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        assert!(loaded("transport = 'mail'\nsend_timeout = '641s'").is_ok());
        let lane = loaded("transport = 'mq'\nsend_timeout = '1m'\nlanes = { low = { transport = 'mail' } }");
        assert!(lane.unwrap_err().contains("[transports.mail]"));
    }
}
