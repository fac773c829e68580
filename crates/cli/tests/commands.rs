//! What the commands print, on the real binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::{Command, Output};

struct Place {
    dir: tempfile::TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

/// What a command said and how it ended.
struct Said {
    out: String,
    err: String,
    code: Option<i32>,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    fn with_file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.dir.path().join(name), text).unwrap();
        self
    }

    fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    fn run(&self, args: &str) -> Said {
        let Output { status, stdout, stderr } = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_redeliver")))
            .args(args.split_whitespace())
            .current_dir(self.dir.path())
            .env_clear()
            .envs(self.variables.iter().copied())
            // Where an instrumented process writes down which lines it reached.
            .envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)))
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { out: text(stdout), err: text(stderr), code: status.code() }
    }
}

const GOOD: &str = r#"
[transports.script]
kind = "scripted"
script = ["fail 451 try later", "deliver"]

[policies.quick]
backoff = ["1s", "5s"]
max_attempts = 3

[policies.slow]
backoff = { base = "1m", cap = "1h" }
jitter = "10%"
max_attempts = 5

[routes.email]
transport = "script"
policy = "quick"
dead_letter = "dead"
lanes.low.policy = "slow"
lanes.low.target = "bulk"

[routes.dead]
transport = "script"
policy = "slow"
"#;

const BAD: &str = r#"[store]
ulr = "sqlite:x.db"
durability = "ful"

[engine]
poll_interval = 1
claim_batch_max = 0

[log]
filter = "info=x=y"

[transports.script]
kind = "scripted"
script = ["deliver", "explode", "defer soon"]
latencyy = "1s"

[transports.Post]
kind = "smtpp"
host = "mx"

[policies.a]
backoff = []
max_attempts = 0

[policies.b]
backoff = { base = "2m", factor = 0.5, cap = "60s", jitter = "1s" }
max_attempts = 3

[policies.c]
backoff = ["1m", "0s", 5]
jitter = "lots"
max_attempts = 2

[policies.d]
jitter = "30%"

[policies.e]
backoff = ["1m", "5m"]
max_attempts = 2

[routes.email]
transport = "scrip"
policy = "aa"
lease = "30s"
losses_max = 0
dead_letter = "gone"
on_lost = "retri"
rate = "fast"
breaker = { failures_max = 0, open_for = "10m" }
target = 3

[routes.email.lanes.urgent]
weight = 1

[routes.email.lanes.low]
weight = 0
policy = "zzz"

[routes.x]
transport = "script"
policy = "a"
dead_letter = "y"
breaker = true

[routes.y]
transport = "script"
policy = "a"
dead_letter = "x"

[routes.self]
transport = "script"
dead_letter = "self"

[rutes.z]
"#;

const BAD_SAID: &str = r#"redeliver.toml:2:1: unknown key "ulr" in [store]: did you mean "url"?
redeliver.toml:3:14: durability must be "full" or "relaxed", not "ful": did you mean "full"?
redeliver.toml:6:17: poll_interval must be a span such as "30s" or "1h30m", not the number 1
redeliver.toml:7:19: claim_batch_max must be between 1 and 10000, not 0
redeliver.toml:10:10: filter can't be read: a filter is a level (error, warn, info, debug, trace) or pairs such as "info,redeliver_engine=debug", not "info=x=y"
redeliver.toml:14:22: entry 2 of script can't be read: a step begins with deliver, hand_off, fail, refuse, throttle, refuse_login, unreachable, defer, lose, hang, panic, not "explode"
redeliver.toml:14:33: entry 3 of script can't be read: defer needs a span, as in "defer 30s", not "soon"
redeliver.toml:15:1: unknown key "latencyy" in [transports.script]: did you mean "latency"?
redeliver.toml:17:13: a name is made of a-z, 0-9, "_", "." and "-": not "Post"
redeliver.toml:18:8: kind must be "kafka" or "rabbitmq" or "redis" or "scripted" or "smtp", not "smtpp": did you mean "smtp"?
redeliver.toml:22:1: backoff must have 1 to 1000 entries, such as ["1m", "5m", "15m"]
redeliver.toml:23:16: max_attempts must be between 1 and 10000, not 0
redeliver.toml:26:13: base (2m) must not be above cap (1m)
redeliver.toml:26:35: factor must be between 1 and 1000, not 0.5
redeliver.toml:26:53: unknown key "jitter" in [policies.b.backoff]: known are base, cap, factor
redeliver.toml:30:18: entry 2 of backoff must be between 1ms and 365d, not 0s
redeliver.toml:30:24: entry 3 of backoff must be a span such as "30s" or "1h30m", not the number 5
redeliver.toml:31:10: jitter can't be read: jitter is none, full, a share such as 30% or a span such as 1s, not "lots"
redeliver.toml:34:11: [policies.d] needs backoff, such as backoff = ["1m", "5m", "15m"]
redeliver.toml:34:11: [policies.d] needs max_attempts, such as max_attempts = 4
redeliver.toml:38:1: warning: backoff entry 2 (5m) is never reached: after failed try 2 of max_attempts = 2 the message is dead
redeliver.toml:42:13: transport names no transport "scrip": did you mean "script"?
redeliver.toml:43:10: policy names no policy "aa": did you mean "a"?
redeliver.toml:45:14: losses_max must be between 1 and 1000, not 0
redeliver.toml:46:1: dead_letter names no route "gone": known are email, self, x, y
redeliver.toml:47:11: on_lost must be "retry" or "hold", not "retri": did you mean "retry"?
redeliver.toml:48:8: rate can't be read: not a rate such as 50/s, 90/m or 1000/h: "fast" ("unlimited" is possible too)
redeliver.toml:49:28: failures_max must be between 1 and 1000000, not 0
redeliver.toml:49:31: open_for (10m) must not be above open_for_max (5m)
redeliver.toml:50:10: target must be a text in quotes, not the number 3
redeliver.toml:52:21: unknown key "urgent" in [routes.email.lanes]: known are critical, high, low, medium
redeliver.toml:56:10: weight must be between 1 and 1000, not 0
redeliver.toml:57:10: policy names no policy "zzz": known are a, b, c, d, e
redeliver.toml:62:1: dead letters go round in a loop: x -> y -> x
redeliver.toml:63:11: breaker must be a table such as { failures_max = 5 }, not true ("off" is possible too)
redeliver.toml:70:9: [routes.self] needs policy, such as policy = "NAME" for [policies.NAME]
redeliver.toml:72:1: dead letters go round in a loop: self -> self
redeliver.toml:74:2: unknown key "rutes": did you mean "routes"?
environment variable REDELIVER_ENGINE__HEARTBEET: unknown key "heartbeet" in [engine]: did you mean "heartbeat"?
38 errors, 1 warning
"#;

#[test]
fn check_says_every_problem_at_once_with_its_line() {
    let place =
        Place::new().with_file("redeliver.toml", BAD).with_variable("REDELIVER_ENGINE__HEARTBEET", "2s");
    let said = place.run("check");
    assert_eq!(said.err, BAD_SAID);
    assert_eq!((said.out.as_str(), said.code), ("", Some(2)));
}

#[test]
fn check_sums_up_a_good_config() {
    let said = Place::new().with_file("a.toml", GOOD).run("check --config a.toml");
    assert_eq!(
        said.out,
        "ok: 2 routes, 1 transport, 2 policies, store sqlite:redeliver.db\n  \
         route dead: by script, policy slow\n  \
         route email: critical, high, medium: by script, policy quick; low: by script to bulk, policy slow\n  \
         policy quick: 3 tries, the last 6s after the first\n  \
         policy slow: 5 tries, the last 15m – 16m30s after the first\n"
    );
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
}

#[test]
fn warnings_do_not_fail_a_check() {
    let said = Place::new()
        .with_file("redeliver.toml", GOOD)
        .with_variable("DATABASE_URL", "memory:")
        .with_variable("REDELIVER_POLICIES__SLOW__MAX_ATTEMPTS", "1")
        .with_variable("REDELIVER_POLICIES__QUICK__BACKOFF", "1s, 2s, 3s")
        .with_variable("REDELIVER_ROUTES__EMAIL__LANES__LOW__POLICY", "quick")
        .with_variable("REDELIVER_ROUTES__DEAD__POLICY", "quick")
        .with_variable("REDELIVER_STORE_URL", "sqlite:x.db")
        .run("check");
    assert_eq!(
        said.err,
        "redeliver.toml:10:11: warning: policy \"slow\" is used by no route\n\
         environment variable DATABASE_URL: warning: messages in memory: are gone when the process ends\n\
         environment variable REDELIVER_POLICIES__QUICK__BACKOFF: warning: backoff entry 3 (3s) is never reached: \
         after failed try 3 of max_attempts = 3 the message is dead\n\
         environment variable REDELIVER_STORE_URL: warning: it is not used: \
         store.url is spelled REDELIVER_STORE__URL\n"
    );
    assert!(said.out.starts_with("ok: 2 routes"), "{}", said.out);
    assert!(said.out.contains("store memory:; 4 warnings"), "{}", said.out);
    assert_eq!(said.code, Some(0));
}

#[test]
fn a_file_extends_its_profile_key_by_key() {
    let place = Place::new().with_file("a.toml", "[policies.campaign]\nmax_attempts = 3\n");
    let said = place.run("check --profile campaigns --config a.toml");
    assert_eq!(
        said.err,
        "profile campaigns:19:1: warning: backoff entry 3 (15m) is never reached: \
         after failed try 3 of max_attempts = 3 the message is dead\n"
    );
    assert!(said.out.contains("policy campaign: 3 tries, the last 6m after the first"), "{}", said.out);
}

#[test]
fn the_example_passes_its_own_check() {
    let example = include_str!("../../../redeliver.example.toml");
    let said = Place::new().with_file("redeliver.toml", example).run("check");
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
}

#[test]
fn what_is_not_toml_is_said_line_by_line() {
    let said =
        Place::new().with_file("redeliver.toml", "[store\nurl = \n\n[log]\nformat = text\n").run("check");
    let lines: Vec<&str> = said.err.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert!(lines.iter().any(|line| line.starts_with("redeliver.toml:1:")), "{}", said.err);
    assert!(lines.iter().any(|line| line.starts_with("redeliver.toml:5:")), "{}", said.err);
    assert_eq!(said.code, Some(2));
}

#[test]
fn policy_show_prints_the_timetable() {
    let said = Place::new().run("policy show email --profile email-outbox");
    assert_eq!(
        said.out,
        "policy email: 6 tries; waits 30s, times 2 each, at most 8m

  try  wait     since first
    1  at once  0s
    2  30s      30s          █
    3  1m       1m30s        ███
    4  2m       3m30s        ██████
    5  4m       7m30s        ████████████
    6  8m       15m30s       ████████████████████████

dead after try 6, 15m30s after the first
"
    );
    let said = Place::new().run("policy show broker --profile broker-retry");
    assert_eq!(
        said.out,
        "policy broker: 4 tries; waits 2s, times 2 each, at most 1m; up to 1s on top

  try  wait     since first
    1  at once  0s
    2  2s – 3s  2s – 3s      ███░░
    3  4s – 5s  6s – 8s      █████████░░░
    4  8s – 9s  14s – 17s    ████████████████████░░░░

dead after try 4, 14s – 17s after the first
"
    );
}

#[test]
fn policy_show_says_what_never_happens() {
    let said = Place::new()
        .with_variable("REDELIVER_POLICIES__CAMPAIGN__EXPIRES_AFTER", "4m")
        .with_variable("REDELIVER_POLICIES__CAMPAIGN__MAX_ATTEMPTS", "3")
        .run("policy show campaign --profile campaigns");
    let ending = "dead after try 3, 6m after the first\n\
         dead sooner if it expires, 4m after it was accepted\n\
         warning: backoff entry 3 (15m) is never reached: after failed try 3 of max_attempts = 3 the message is dead\n\
         warning: try 3 and later never happen: they are due 6m after the first, and a message expires after 4m\n";
    assert!(said.out.ends_with(ending), "{}", said.out);
}

#[test]
fn policy_list_prints_a_line_for_each() {
    let said = Place::new().run("policy list --profile notifications");
    assert_eq!(
        said.out,
        "  policy    tries  waits                           jitter  first to last
  critical     11  10s, times 2 each, at most 5m   30%     30m10s – 39m13s
  high          9  30s, times 2 each, at most 15m  30%     1h30s – 1h18m39s
  letters     500  2s, times 2 each, at most 1m    1s      8h15m2s – 8h23m21s
  low           4  5m, times 2 each, at most 2h    30%     35m – 45m30s
  medium        6  2m, times 2 each, at most 1h    30%     1h2m – 1h20m36s
"
    );
}

#[test]
fn programs_get_json() {
    let place = Place::new();
    let shown: serde_json::Value =
        serde_json::from_str(&place.run("policy show campaign --profile campaigns --json").out).unwrap();
    assert_eq!(
        shown,
        serde_json::json!({
            "name": "campaign", "max_attempts": 4, "backoff": ["1m", "5m", "15m"], "jitter": "none",
            "expires_after_ms": null, "span_min_ms": 1_260_000, "span_max_ms": 1_260_000, "warnings": [],
            "timetable": [
                { "attempt": 2, "wait_min_ms": 60_000, "wait_max_ms": 60_000,
                  "since_first_min_ms": 60_000, "since_first_max_ms": 60_000 },
                { "attempt": 3, "wait_min_ms": 300_000, "wait_max_ms": 300_000,
                  "since_first_min_ms": 360_000, "since_first_max_ms": 360_000 },
                { "attempt": 4, "wait_min_ms": 900_000, "wait_max_ms": 900_000,
                  "since_first_min_ms": 1_260_000, "since_first_max_ms": 1_260_000 },
            ],
        })
    );
    let listed: serde_json::Value =
        serde_json::from_str(&place.run("policy list --profile campaigns --json").out).unwrap();
    assert_eq!(listed, serde_json::json!([shown]));
}

#[test]
fn what_was_asked_wrongly_ends_with_2_and_says_what_to_do() {
    let check = |args: &str, err: &str| {
        let said = Place::new().run(args);
        assert_eq!((said.err.as_str(), said.out.as_str(), said.code), (err, "", Some(2)), "{args}");
    };
    check(
        "check",
        "redeliver: there is no redeliver.toml here: give --config FILE or --profile NAME \
         (email-outbox, broker-retry, email-dispatcher, notifications, campaigns)\n",
    );
    check(
        "check --config gone.toml",
        "redeliver: cannot read config gone.toml: No such file or directory (os error 2)\n",
    );
    check(
        "policy show emal --profile email-outbox",
        "redeliver: the config has no policy \"emal\": did you mean \"email\"?\n",
    );
    assert_eq!(Place::new().run("chekc").code, Some(2));
}

#[test]
fn the_version_is_the_packages() {
    let version = concat!("redeliver ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(Place::new().run("version").out, version);
    assert_eq!(Place::new().run("--version").out, version);
}
