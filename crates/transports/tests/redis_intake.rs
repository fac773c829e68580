//! The Redis intake keeps the rules for intakes, against a real server; and goes on after it was killed, flushed, or left
//! alone by another member, where a cluster has moved its stream to, and with whoever took over for a sentinel.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cache;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_conformance::intake::IntakeRig;
use redeliver_conformance::intake::sink::{Answers, ScriptedSink};
use redeliver_conformance::make;
use redeliver_core::accept::NewMessage;
use redeliver_core::report::Report;
use redeliver_core::{AttemptId, Content, Failure, Outcome, Timestamp};
use redeliver_engine::bring::Bring;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::intake::Intake;
use redeliver_engine::stop::stop_pair;
use redeliver_servers::redis::{RedisCluster, RedisSentinel, RedisServer};
use redeliver_transports::redis::{RedisIntake, RedisIntakeConfig, Takes};

use cache::{run, server_config, until};

static RIGS: AtomicU32 = AtomicU32::new(0);

struct Rig {
    intake: RedisIntake,
    server: &'static RedisServer,
    stream: String,
    /// The server of the twin, which has a stream of the same name.
    other: Option<RedisServer>,
    put: AtomicU32,
}

fn rig() -> Rig {
    let server = RedisServer::shared();
    let stream = format!("source-{}", RIGS.fetch_add(1, Ordering::Relaxed));
    let intake = intake(server, &stream, "ann", Duration::from_secs(60));
    Rig { intake, server, stream, other: None, put: AtomicU32::new(0) }
}

impl Rig {
    fn server(&self) -> &RedisServer {
        self.other.as_ref().unwrap_or(self.server)
    }

    /// Every source gives its n-th entry the same id.
    fn add(&self, text: &str) {
        let id = format!("{}-0", 1 + self.put.fetch_add(1, Ordering::Relaxed));
        self.server().say(&["XADD", &self.stream, &id, "message", text]);
    }
}

/// Anything that begins with `!` is no message.
fn read(bytes: &[u8]) -> Result<NewMessage, String> {
    match bytes.first() {
        Some(b'!') => Err("as the story goes".to_owned()),
        _ => Ok(NewMessage::new("retry", Content::of_bytes(bytes.to_vec()))),
    }
}

fn bring(clock: Arc<dyn Clock>) -> Bring {
    Bring {
        name: "source".into(),
        read: Arc::new(read),
        rejects: "unreadable".into(),
        bytes_max: 1 << 20,
        clock,
    }
}

fn intake(server: &RedisServer, stream: &str, consumer: &str, claim_after: Duration) -> RedisIntake {
    intake_from(&server.url(), stream, consumer, claim_after)
}

fn intake_from(url: &str, stream: &str, consumer: &str, claim_after: Duration) -> RedisIntake {
    intake_named("source", url, stream, consumer, claim_after)
}

fn intake_named(
    name: &'static str,
    url: &str,
    stream: &str,
    consumer: &str,
    claim_after: Duration,
) -> RedisIntake {
    let clock = WallClock::new(Timestamp::default());
    let config = RedisIntakeConfig {
        server: server_config(url),
        stream: stream.to_owned(),
        claim_after,
        ..RedisIntakeConfig::default()
    };
    RedisIntake::new(name, &config, consumer, bring(clock.clone()), clock).unwrap()
}

/// How many entries of a stream nobody has acknowledged.
fn unacknowledged(server: &RedisServer, stream: &str) -> usize {
    let number = |text: String| text.parse::<usize>().unwrap();
    if server.say(&["EXISTS", stream]) == "0" {
        return 0;
    }
    let groups = server.say(&["XINFO", "GROUPS", stream]);
    let lines: Vec<&str> = groups.lines().collect();
    let value = |name: &str| {
        let at = lines.iter().position(|line| *line == name)?;
        lines[at + 1].parse::<usize>().ok()
    };
    match (value("lag"), value("pending")) {
        (Some(lag), Some(pending)) => lag + pending,
        _ => number(server.say(&["XLEN", stream])),
    }
}

/// Whether all that was given to members of the group is acknowledged.
fn nothing_pends(server: &RedisServer, stream: &str) -> bool {
    server.say(&["XPENDING", stream, "redeliver"]).lines().next() == Some("0")
}

#[async_trait]
impl IntakeRig for Rig {
    fn intake(&self) -> &dyn Intake {
        &self.intake
    }

    async fn put(&self, bytes: Bytes) {
        self.add(std::str::from_utf8(&bytes).unwrap());
    }

    async fn put_poison(&self) {
        self.add("!garbage");
    }

    async fn unacknowledged(&self) -> usize {
        unacknowledged(self.server(), &self.stream)
    }

    /// What nobody can read is brought to the sink, to be kept as dead.
    async fn set_aside(&self) -> Vec<Bytes> {
        Vec::new()
    }

    async fn twin(&self) -> Box<dyn IntakeRig> {
        let server = tokio::task::block_in_place(RedisServer::start);
        let intake = intake_named("twin", &server.url(), &self.stream, "ann", Duration::from_secs(60));
        let (stream, put) = (self.stream.clone(), AtomicU32::new(0));
        Box::new(Self { intake, server: self.server, stream, other: Some(server), put })
    }
}

redeliver_conformance::intake_tests!(rig());

/// Runs an intake beside a story.
async fn fed(intake: &RedisIntake, sink: &ScriptedSink, story: impl Future<Output = ()>) {
    let (stopper, stop) = stop_pair();
    let told = async {
        story.await;
        stopper.stop();
    };
    let (ended, ()) = tokio::join!(intake.run(sink, stop), told);
    ended.unwrap();
}

fn put(server: &RedisServer, stream: &str, text: &str) {
    server.say(&["XADD", stream, "*", "message", text]);
}

#[test]
fn a_server_that_was_flushed_is_read_from_its_new_beginning() {
    run(async {
        let server = RedisServer::start();
        let intake = intake(&server, "failed", "ann", Duration::from_secs(60));
        let sink = ScriptedSink::new(Answers::New);
        let has = |text: &'static str| sink.taken().contains(&Bytes::from_static(text.as_bytes()));
        fed(&intake, &sink, async {
            put(&server, "failed", "before");
            until("the first is taken", || has("before")).await;
            server.flush();
            put(&server, "failed", "after");
            until("the second is taken", || has("after")).await;
            until("it is acknowledged", || unacknowledged(&server, "failed") == 0).await;
        })
        .await;
    });
}

#[test]
fn a_server_that_was_killed_is_read_again_when_it_is_back() {
    run(async {
        let mut server = RedisServer::start();
        let intake = intake(&server, "failed", "ann", Duration::from_secs(60));
        let sink = ScriptedSink::new(Answers::New);
        let has = |text: &'static str| sink.taken().contains(&Bytes::from_static(text.as_bytes()));
        fed(&intake, &sink, async {
            put(&server, "failed", "before");
            until("the first is taken", || has("before")).await;
            server.kill();
            tokio::task::block_in_place(|| server.resume());
            put(&server, "failed", "after");
            until("the second is taken", || has("after")).await;
            until("it is acknowledged", || unacknowledged(&server, "failed") == 0).await;
        })
        .await;
    });
}

/// Moves a stream to another node of a cluster, with its group and everything in it, as `redis-cli --cluster reshard` does.
fn reshard(cluster: &RedisCluster, stream: &str, from: usize, to: usize) {
    let nodes = &cluster.nodes;
    let slot = nodes[from].say(&["CLUSTER", "KEYSLOT", stream]);
    let id = |node: usize| nodes[node].say(&["CLUSTER", "MYID"]);
    let told = |node: usize, words: &[&str]| {
        let said = nodes[node].say(&[&["CLUSTER", "SETSLOT", slot.as_str()], words].concat());
        assert_eq!(said, "OK");
    };
    told(to, &["IMPORTING", &id(from)]);
    told(from, &["MIGRATING", &id(to)]);
    let port = nodes[to].port().to_string();
    assert_eq!(nodes[from].say(&["MIGRATE", "127.0.0.1", &port, stream, "0", "5000"]), "OK");
    for node in [to, from].into_iter().chain((0..nodes.len()).filter(|node| ![to, from].contains(node))) {
        told(node, &["NODE", &id(to)]);
    }
}

#[test]
fn a_stream_of_a_cluster_is_read_where_it_is_and_when_its_node_is_back() {
    run(async {
        let mut cluster = RedisCluster::start();
        let intake = intake_from(&cluster.url(), "failed", "ann", Duration::from_secs(60));
        let sink = ScriptedSink::new(Answers::New);
        let has = |text: &'static str| sink.taken().contains(&Bytes::from_static(text.as_bytes()));
        let has_it =
            |nodes: &[RedisServer], n: usize| !nodes[n].say(&["EXISTS", "failed"]).starts_with("MOVED");
        let owner = (0..3).find(|n| has_it(&cluster.nodes, *n)).unwrap();
        let next = (owner + 1) % 3;
        fed(&intake, &sink, async {
            put(&cluster.nodes[owner], "failed", "before");
            until("the first is taken", || has("before")).await;
            until("it is acknowledged", || nothing_pends(&cluster.nodes[owner], "failed")).await;
            reshard(&cluster, "failed", owner, next);
            put(&cluster.nodes[next], "failed", "moved");
            until("it is followed to another node", || has("moved")).await;
            until("it is acknowledged there", || nothing_pends(&cluster.nodes[next], "failed")).await;
            // Whoever else is there can't have the stream: nothing is read, and nothing is given up.
            cluster.nodes[next].kill();
            tokio::task::block_in_place(|| cluster.nodes[next].resume());
            until("the cluster is whole", || {
                cluster.nodes[next].say(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
            })
            .await;
            put(&cluster.nodes[next], "failed", "after");
            until("the last is taken", || has("after")).await;
            until("it is acknowledged", || nothing_pends(&cluster.nodes[next], "failed")).await;
        })
        .await;
    });
}

#[test]
fn a_stream_behind_a_sentinel_is_read_from_whoever_took_over() {
    run(async {
        let mut servers = RedisSentinel::start();
        let intake = intake_from(&servers.url(), "failed", "ann", Duration::from_secs(60));
        let sink = ScriptedSink::new(Answers::New);
        let has = |text: &'static str| sink.taken().contains(&Bytes::from_static(text.as_bytes()));
        fed(&intake, &sink, async {
            put(&servers.master, "failed", "before");
            until("the first is taken", || has("before")).await;
            until("the replica knows", || unacknowledged(&servers.replica, "failed") == 0).await;
            servers.master.kill();
            tokio::task::block_in_place(|| servers.wait_for_failover());
            put(&servers.replica, "failed", "after");
            until("the second is taken", || has("after")).await;
            until("it is acknowledged", || unacknowledged(&servers.replica, "failed") == 0).await;
        })
        .await;
        assert_eq!(sink.taken(), ["before", "after"], "each once: the replica knew what was acknowledged");
    });
}

#[test]
fn what_a_dead_member_left_behind_is_taken_over() {
    run(async {
        let server = RedisServer::shared();
        server.say(&["XGROUP", "CREATE", "left", "redeliver", "0", "MKSTREAM"]);
        for n in 0..30 {
            put(server, "left", &format!("input {n}"));
        }
        // A member that is given all of it, and is never heard of again; one entry is deleted meanwhile.
        let given = server.say(&["XREADGROUP", "GROUP", "redeliver", "bob", "STREAMS", "left", ">"]);
        let first = given.lines().nth(1).unwrap().to_owned();
        server.say(&["XDEL", "left", &first]);
        let intake = intake(server, "left", "ann", Duration::from_millis(300));
        let sink = ScriptedSink::new(Answers::New);
        fed(&intake, &sink, async {
            until("all is acknowledged", || nothing_pends(server, "left")).await;
        })
        .await;
        let taken = sink.taken();
        for n in 1..30 {
            let wanted = Bytes::from(format!("input {n}"));
            assert_eq!(taken.iter().filter(|bytes| **bytes == wanted).count(), 1, "{n}");
        }
    });
}

#[test]
fn two_members_share_what_comes() {
    run(async {
        let server = RedisServer::shared();
        let (ann, bob) = (
            intake(server, "shared", "ann", Duration::from_secs(60)),
            intake(server, "shared", "bob", Duration::from_secs(60)),
        );
        let (first, second) = (ScriptedSink::new(Answers::New), ScriptedSink::new(Answers::New));
        fed(
            &ann,
            &first,
            fed(&bob, &second, async {
                for n in 0..100 {
                    put(server, "shared", &format!("input {n}"));
                }
                until("all is acknowledged", || unacknowledged(server, "shared") == 0).await;
            }),
        )
        .await;
        let mut all = [first.taken(), second.taken()].concat();
        assert_eq!(all.len(), 100, "each is taken once");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 100);
    });
}

#[test]
fn a_report_that_the_store_can_never_take_is_kept_as_dead_and_stops_no_other() {
    run(async {
        let server = RedisServer::shared();
        let clock = WallClock::new(Timestamp::default());
        let config = RedisIntakeConfig {
            server: server_config(&server.url()),
            stream: "odd-reports".to_owned(),
            takes: Takes::Reports,
            workspace: Some("shop".into()),
            ..RedisIntakeConfig::default()
        };
        let attempt = AttemptId::of(&make::message(1)).to_string();
        let report = |error: &str| {
            format!(r#"{{"attempt_id": "{attempt}", "outcome": "failed", "error": "{error}"}}"#)
        };
        for error in ["busy", "xyz", "away"] {
            put(server, "odd-reports", &report(error));
        }
        let intake = RedisIntake::new("reports", &config, "ann", bring(clock.clone()), clock).unwrap();
        let sink = ScriptedSink::new(Answers::UnfitFor(b'x'));
        fed(&intake, &sink, async {
            until("all is acknowledged", || unacknowledged(server, "odd-reports") == 0).await;
        })
        .await;
        let failed = |error: &str| Outcome::Failed(Failure::new(error));
        let outcomes: Vec<Outcome> = sink.reports().into_iter().map(|report| report.outcome).collect();
        assert_eq!(outcomes, [failed("busy"), failed("away")]);
        assert_eq!(sink.set_aside(), [report("xyz")]);
        let of_the_intake = |report: &Report| report.workspace.as_deref() == Some("shop");
        assert!(sink.reports().iter().all(of_the_intake), "they may be about messages of its workspace only");
    });
}

#[test]
fn reports_reach_the_sink_and_what_is_none_is_kept_as_dead() {
    run(async {
        let server = RedisServer::shared();
        let clock = WallClock::new(Timestamp::default());
        let config = RedisIntakeConfig {
            server: server_config(&server.url()),
            stream: "reports".to_owned(),
            takes: Takes::Reports,
            ..RedisIntakeConfig::default()
        };
        let intake = RedisIntake::new("reports", &config, "ann", bring(clock.clone()), clock).unwrap();
        let sink = ScriptedSink::new(Answers::Fails);
        let attempt = AttemptId::of(&make::message(1)).to_string();
        fed(&intake, &sink, async {
            server.say(&["XADD", "reports", "*", "attempt_id", &attempt, "outcome", "delivered"]);
            let json = format!(r#"{{"attempt_id": "{attempt}", "outcome": "failed", "error": "busy"}}"#);
            put(server, "reports", &json);
            put(server, "reports", "no report");
            sink.called(1).await;
            sink.answer(Answers::New);
            until("all is acknowledged", || unacknowledged(server, "reports") == 0).await;
        })
        .await;
        let words: Vec<&str> = sink.reports().iter().map(|report| report.outcome.name()).collect();
        assert_eq!(words, ["delivered", "failed"]);
        assert_eq!(sink.set_aside(), ["no report"]);
    });
}
