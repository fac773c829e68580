//! The retry policies of the shipped profiles, number by number, and messages that live and die by them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use proptest::prelude::*;
use redeliver_cli::config::{Loaded, Sources, load, profiles};
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::message::{DeadReason, InstanceId, Lease, State};
use redeliver_core::settle::settle;
use redeliver_core::{Content, Failure, Lane, Message, MessageId, Outcome, Policy, Route, Timestamp};

const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);

fn loaded(profile: &str) -> Loaded {
    load(&Sources { profile: profiles::find(profile), ..Sources::default() }).unwrap()
}

fn policy(profile: &str, name: &str) -> Policy {
    loaded(profile).config.policies[name].clone()
}

/// One line of a timetable in seconds: the wait and the time since the first try, each from min to max.
type Line = ((f64, f64), (f64, f64));

fn timetable(policy: &Policy) -> Vec<Line> {
    let s = |span: Duration| span.as_secs_f64();
    let slots = policy.timetable(policy.max_attempts);
    slots
        .iter()
        .map(|slot| {
            ((s(slot.wait.min), s(slot.wait.max)), (s(slot.since_first.min), s(slot.since_first.max)))
        })
        .collect()
}

/// Checks a policy without jitter.
fn check(profile: &str, name: &str, waits_s: &[f64], since_first_s: &[f64], max_attempts: u32) {
    let policy = policy(profile, name);
    let lines: Vec<Line> =
        waits_s.iter().zip(since_first_s).map(|(wait, since)| ((*wait, *wait), (*since, *since))).collect();
    assert_eq!(policy.max_attempts, max_attempts, "{profile} {name}");
    assert_eq!(timetable(&policy), lines, "{profile} {name}");
}

/// Checks a policy with jitter.
fn check_jittered(profile: &str, name: &str, lines: &[Line], max_attempts: u32) {
    let policy = policy(profile, name);
    assert_eq!(policy.max_attempts, max_attempts, "{profile} {name}");
    let shown = timetable(&policy);
    assert_eq!(shown.len(), lines.len(), "{profile} {name}");
    for (shown, line) in shown.iter().zip(lines) {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let same = near(shown.0.0, line.0.0)
            && near(shown.0.1, line.0.1)
            && near(shown.1.0, line.1.0)
            && near(shown.1.1, line.1.1);
        assert!(same, "{profile} {name}: {shown:?} is not {line:?}");
    }
}

#[test]
fn the_library_has_the_route_of_the_outbox_field_by_field() {
    use redeliver::profile::{EMAIL_ROUTE, email_policy, email_route};
    assert_eq!(email_route(email_policy()), loaded("email-outbox").config.routes[EMAIL_ROUTE].route);
}

#[test]
fn the_dispatcher_has_eight_tries_over_its_table() {
    check(
        "email-dispatcher",
        "email-log",
        &[60., 300., 900., 3_600., 10_800., 21_600., 43_200.],
        &[60., 360., 1_260., 4_860., 15_660., 37_260., 80_460.],
        8,
    );
}

#[test]
fn the_dispatchers_day_long_wait_is_never_reached_and_said_so() {
    let warnings: Vec<String> = loaded("email-dispatcher").warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["profile email-dispatcher:43:1: warning: backoff entry 8 (1d) is never reached: \
          after failed try 8 of max_attempts = 8 the message is dead"]
    );
    for profile in profiles::ALL.iter().filter(|profile| profile.name != "email-dispatcher") {
        assert_eq!(loaded(profile.name).warnings, [], "{}", profile.name);
    }
}

#[test]
fn the_broker_has_three_retries_that_double_and_a_second_of_jitter() {
    let lines = [((2., 3.), (2., 3.)), ((4., 5.), (6., 8.)), ((8., 9.), (14., 17.))];
    check_jittered("broker-retry", "broker", &lines, 4);
}

#[test]
fn the_outbox_tries_at_30_90_210_450_and_930_seconds_after_the_inline_failure() {
    check("email-outbox", "email", &[30., 60., 120., 240., 480.], &[30., 90., 210., 450., 930.], 6);
}

/// `30s * 2^attempts` with the inline try counted would begin with a minute.
#[test]
fn the_outbox_does_not_follow_its_documents_formula() {
    let policy = policy("email-outbox", "email");
    for n in 1..=5 {
        let wait = policy.delay(&MessageId::own(7), n);
        assert_eq!(wait, Duration::from_secs(30 << (n - 1)));
        assert_ne!(wait, Duration::from_secs(30 << n));
    }
}

#[test]
fn campaigns_retry_after_1_5_and_15_minutes() {
    check("campaigns", "campaign", &[60., 300., 900.], &[60., 360., 1_260.], 4);
}

#[test]
fn notifications_double_to_their_cap_with_up_to_30_percent_on_top() {
    let critical = [
        ((10., 13.), (10., 13.)),
        ((20., 26.), (30., 39.)),
        ((40., 52.), (70., 91.)),
        ((80., 104.), (150., 195.)),
        ((160., 208.), (310., 403.)),
        ((300., 390.), (610., 793.)),
        ((300., 390.), (910., 1_183.)),
        ((300., 390.), (1_210., 1_573.)),
        ((300., 390.), (1_510., 1_963.)),
        ((300., 390.), (1_810., 2_353.)),
    ];
    let high = [
        ((30., 39.), (30., 39.)),
        ((60., 78.), (90., 117.)),
        ((120., 156.), (210., 273.)),
        ((240., 312.), (450., 585.)),
        ((480., 624.), (930., 1_209.)),
        ((900., 1_170.), (1_830., 2_379.)),
        ((900., 1_170.), (2_730., 3_549.)),
        ((900., 1_170.), (3_630., 4_719.)),
    ];
    let medium = [
        ((120., 156.), (120., 156.)),
        ((240., 312.), (360., 468.)),
        ((480., 624.), (840., 1_092.)),
        ((960., 1_248.), (1_800., 2_340.)),
        ((1_920., 2_496.), (3_720., 4_836.)),
    ];
    let low =
        [((300., 390.), (300., 390.)), ((600., 780.), (900., 1_170.)), ((1_200., 1_560.), (2_100., 2_730.))];
    check_jittered("notifications", "critical", &critical, 11);
    check_jittered("notifications", "high", &high, 9);
    check_jittered("notifications", "medium", &medium, 6);
    check_jittered("notifications", "low", &low, 4);
}

fn route(policy: Policy) -> Route {
    Route::new("route", "transport", policy)
}

/// A message that came in at [`START`] with these tries already made.
fn accepted(route: &Route, id: u128, attempts: u32, max_attempts: Option<u32>) -> Message {
    let new = NewMessage { attempts, max_attempts, ..NewMessage::new("route", Content::default()) };
    admit(new, route, MessageId::own(id), None, START).message
}

/// Claims the message when it is due and has its try fail.
fn fail(message: &Message, route: &Route) -> Message {
    let claim = message.fence + 1;
    let lease = Lease {
        instance: InstanceId(1),
        claim,
        until_at: message.due_at.plus(route.lease),
        started_at: None,
        cancel_requested: false,
    };
    let claimed = Message { state: State::Claimed(lease), fence: claim, ..message.clone() };
    settle(&claimed, &Outcome::Failed(Failure::new("451 try later")), route, message.due_at).message
}

/// The due times from acceptance to death, each since [`START`], and how many tries there were.
fn live(route: &Route, mut message: Message) -> (Vec<Duration>, u32) {
    let mut due = Vec::new();
    for _ in 0..1_000 {
        match &message.state {
            State::Waiting { parked_for: None } => {
                due.push(message.due_at.since(START));
                message = fail(&message, route);
            }
            State::Dead { reason: DeadReason::AttemptsExhausted, at, .. } => {
                assert_eq!(*at, message.due_at, "it dies with its last try");
                assert!(message.last_error.is_some());
                return (due, message.attempts);
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("it never died")
}

fn all_policies() -> Vec<(String, Policy)> {
    let of = |profile: &profiles::Profile| loaded(profile.name).config.policies;
    let all = profiles::ALL.iter().flat_map(|profile| {
        of(profile).into_iter().map(|(name, policy)| (format!("{} {name}", profile.name), policy))
    });
    all.collect()
}

#[test]
fn from_its_first_failure_to_its_death_a_message_keeps_to_the_timetable() {
    for (name, policy) in all_policies() {
        let slots = policy.timetable(policy.max_attempts);
        let route = route(policy.clone());
        for id in 0..50 {
            let (due, tries) = live(&route, accepted(&route, id, 0, None));
            assert_eq!(tries, policy.max_attempts, "{name}");
            assert_eq!(due.len(), policy.max_attempts as usize, "{name}");
            assert_eq!(due[0], Duration::ZERO, "{name}: the first try is at once");
            for ((slot, at), before) in slots.iter().zip(&due[1..]).zip(&due) {
                let wait = *at - *before;
                assert!(slot.wait.min <= wait && wait <= slot.wait.max, "{name}: {slot:?}, waited {wait:?}");
                assert!(
                    slot.since_first.min <= *at && *at <= slot.since_first.max,
                    "{name}: {slot:?} at {at:?}"
                );
            }
        }
    }
}

#[test]
fn a_mail_that_failed_elsewhere_goes_on_where_it_stands() {
    let route = route(policy("email-dispatcher", "email-log"));
    let waits_s = [60, 300, 900, 3_600, 10_800, 21_600, 43_200];
    for attempts in 1..=7u32 {
        let (due, tries) = live(&route, accepted(&route, 1, attempts, None));
        let mut at = 0;
        let expected: Vec<Duration> = waits_s[attempts as usize - 1..]
            .iter()
            .map(|wait| {
                at += wait;
                Duration::from_secs(at)
            })
            .collect();
        assert_eq!((due, tries), (expected, 8), "after {attempts} tries elsewhere");
    }
    let spent = accepted(&route, 1, 8, None);
    assert!(matches!(spent.state, State::Dead { reason: DeadReason::AttemptsExhausted, .. }));
}

#[test]
fn an_inline_failure_leaves_the_outbox_five_tries() {
    let route = route(policy("email-outbox", "email"));
    let (due, tries) = live(&route, accepted(&route, 1, 1, None));
    assert_eq!(due, [30, 90, 210, 450, 930].map(Duration::from_secs));
    assert_eq!(tries, 6);
}

/// A retry count of r means r + 1 attempts made and a wait of 2 s * 2^r, and a message may bring its own budget.
#[test]
fn a_broker_message_waits_by_its_retry_count() {
    let route = route(policy("broker-retry", "broker"));
    for (retry_count, max_retries) in (0..12u32).flat_map(|r| [(r, r + 1), (r, 100)]) {
        let message = accepted(&route, 9, retry_count + 1, Some(max_retries + 1));
        let wait = message.due_at.since(START);
        let base = Duration::from_secs((2u64 << retry_count).min(60));
        assert!(base <= wait && wait <= base + Duration::from_secs(1), "{retry_count}: {wait:?}");
        assert_eq!(message.state.name(), "waiting", "{retry_count} of {max_retries}");
        let spent = accepted(&route, 9, retry_count + 1, Some(retry_count + 1));
        assert_eq!(spent.state.name(), "dead", "{retry_count} of {retry_count}: for manual review");
    }
    assert_eq!(accepted(&route, 9, 3, None).state.name(), "waiting", "2 of 3 retries by default");
    assert_eq!(accepted(&route, 9, 4, None).state.name(), "dead", "3 of 3 retries by default");
}

#[test]
fn each_priority_has_its_own_budget_of_retries() {
    let policies = loaded("notifications").config.policies;
    for (lane, retries) in Lane::ALL.into_iter().zip([10, 8, 5, 3]) {
        let route = route(policies[lane.name()].clone());
        let (due, _) = live(&route, accepted(&route, 3, 1, None));
        assert_eq!(due.len(), retries, "{}", lane.name());
    }
}

proptest! {
    #[test]
    fn every_wait_that_is_drawn_is_inside_its_bounds(id in any::<u128>()) {
        for (name, policy) in all_policies() {
            for slot in policy.timetable(policy.max_attempts) {
                let wait = policy.delay(&MessageId::own(id), slot.attempt - 1);
                prop_assert!(slot.wait.min <= wait && wait <= slot.wait.max, "{}: {:?}, drew {:?}", name, slot, wait);
            }
        }
    }
}
