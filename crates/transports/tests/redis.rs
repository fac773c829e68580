//! The Redis transport against real servers: what it says about each message, and what arrives.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cache;

use bytes::Bytes;
use futures_util::future::join_all;
use redeliver_conformance::make;
use redeliver_core::outcome::Blame;
use redeliver_core::{AttemptId, Content, Lane, Message, Outcome};
use redeliver_servers::free_port;
use redeliver_servers::redis::{RedisCluster, RedisSentinel, RedisServer};
use redeliver_transports::redis::{OnConfirm, RedisConfig, Structure};

use cache::{carry, carry_message, carry_until_delivered, config, run, server_config, to, transport};

fn is_delivered(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Delivered { .. })
}

#[test]
fn an_entry_has_the_fields_that_a_worker_needs() {
    run(async {
        let server = RedisServer::shared();
        let transport = transport(config(&server.url()));
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let content = Content {
            attributes: [("device_id".to_owned(), "d-1".to_owned())].into(),
            headers: vec![
                ("traceparent".to_owned(), trace.into()),
                ("tenant".to_owned(), Bytes::from_static(b"shop")),
            ],
            content_type: Some("application/json".into()),
            ..to("exact", "{\"n\":1}")
        };
        let message = Message { generation: 2, attempts: 1, lane: Lane::Critical, ..make::message(1) };
        assert!(is_delivered(&carry_message(&transport, &message, &content).await));
        let again = Message { unconfirmed: 1, ..message.clone() };
        assert!(is_delivered(&carry_message(&transport, &again, &content).await));
        let entries = server.say(&["XRANGE", "exact", "-", "+"]);
        let fields: Vec<&str> = entries.lines().collect();
        let (id, attempt) = (message.id.to_string(), AttemptId::of(&message).to_string());
        let expected = [
            ("id", id.as_str()),
            ("attempt_id", &attempt),
            ("priority", "critical"),
            ("content_type", "application/json"),
            ("attributes", "{\"device_id\":\"d-1\"}"),
            ("traceparent", trace),
            ("header.tenant", "shop"),
        ];
        let mut expected: Vec<&str> = expected.iter().flat_map(|(name, value)| [*name, value]).collect();
        let payload = ["payload", "{\"n\":1}"];
        assert_eq!(fields[1..17], [expected.clone(), payload.to_vec()].concat());
        expected.extend(["possible_duplicate", "true"]);
        assert_eq!(fields[18..], [expected, payload.to_vec()].concat(), "it may have come before");
    });
}

#[test]
fn lists_and_sorted_sets_take_objects_of_json() {
    run(async {
        let server = RedisServer::shared();
        let carry_to = async |structure, key, body: &'static [u8]| {
            let transport = transport(RedisConfig { structure, ..config(&server.url()) });
            let content = Content { bytes: body.into(), ..to(key, "") };
            let outcome = carry(&transport, 1, &content).await;
            assert!(is_delivered(&outcome), "{outcome:?}");
        };
        carry_to(Structure::List, "list", b"{\"n\": 1}").await;
        carry_to(Structure::List, "list", b"\xff").await;
        let list = server.say(&["LRANGE", "list", "0", "-1"]);
        let items: Vec<serde_json::Value> =
            list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let message = make::message(1);
        assert_eq!(items[0]["id"], message.id.to_string());
        assert_eq!(items[0]["attempt_id"], AttemptId::of(&message).to_string());
        assert_eq!((&items[0]["priority"], &items[0]["payload"]["n"]), (&"medium".into(), &1.into()));
        assert_eq!(items[1]["payload_base64"], "/w==");
        // The same try twice is one member, by the time at which it was due.
        carry_to(Structure::SortedSet, "set", b"1").await;
        carry_to(Structure::SortedSet, "set", b"1").await;
        let set = server.say(&["ZRANGE", "set", "0", "-1", "WITHSCORES"]);
        let lines: Vec<&str> = set.lines().collect();
        assert_eq!((lines.len(), lines[1]), (2, message.due_at.as_ms().to_string().as_str()));
    });
}

#[test]
fn hundreds_at_once_arrive_once_each() {
    run(async {
        let server = RedisServer::shared();
        let transport = transport(config(&server.url()));
        let contents: Vec<Content> = (0..600).map(|n| to("many", &format!("body {n}"))).collect();
        let all = (0..).zip(&contents).map(|(n, content)| carry(&transport, n, content));
        for outcome in join_all(all).await {
            assert!(is_delivered(&outcome), "{outcome:?}");
        }
        assert_eq!(server.say(&["XLEN", "many"]), "600");
    });
}

#[test]
fn a_stream_can_be_kept_short() {
    run(async {
        let server = RedisServer::shared();
        let transport = transport(RedisConfig { entries_max: Some(100), ..config(&server.url()) });
        let content = to("short", "x");
        for outcome in join_all((0..1_000).map(|n| carry(&transport, n, &content))).await {
            assert!(is_delivered(&outcome), "{outcome:?}");
        }
        let kept: u32 = server.say(&["XLEN", "short"]).parse().unwrap();
        assert!((100..500).contains(&kept), "{kept} entries");
    });
}

#[test]
fn a_key_that_holds_something_else_fails_the_message_and_no_other() {
    run(async {
        let server = RedisServer::shared();
        server.say(&["SET", "text", "x"]);
        let transport = transport(config(&server.url()));
        let (wrong, right) = (to("text", "a"), to("right", "a"));
        let (failed, delivered) = tokio::join!(carry(&transport, 1, &wrong), carry(&transport, 2, &right));
        let Outcome::Failed(failure) = failed else { panic!("{failed:?}") };
        assert_eq!((failure.code.as_deref(), failure.blame), (Some("WRONGTYPE"), Blame::Message));
        assert!(is_delivered(&delivered), "{delivered:?}");
    });
}

#[test]
fn a_worker_that_will_report_is_handed_it() {
    run(async {
        let on_confirm = OnConfirm::HandedOff;
        let transport = transport(RedisConfig { on_confirm, ..config(&RedisServer::shared().url()) });
        assert_eq!(carry(&transport, 1, &to("handed", "a")).await, Outcome::HandedOff);
    });
}

#[test]
fn the_login_and_the_database_are_those_of_the_url() {
    run(async {
        let server = RedisServer::start_with(&["--requirepass", "secret"]);
        let with = |login: &str| server.url().replace("://", &format!("://{login}")) + "/3";
        let transport_to = |url: &str| transport(config(url));
        let outcome = carry(&transport_to(&with(":secret@")), 1, &to("there", "a")).await;
        assert!(is_delivered(&outcome), "{outcome:?}");
        assert_eq!(server.say(&["-a", "secret", "--no-auth-warning", "-n", "3", "XLEN", "there"]), "1");
        for login in ["", ":wrong@", "nobody:secret@"] {
            let outcome = carry(&transport_to(&with(login)), 1, &to("there", "a")).await;
            let Outcome::Failed(failure) = outcome else { panic!("{login}: {outcome:?}") };
            assert_eq!(failure.blame, Blame::Credential, "{login}");
            assert!(!failure.text.contains("wrong@"), "{}", failure.text);
        }
        // What only a config can put right waits, and says why.
        let beyond = carry(&transport_to(&with(":secret@").replace("/3", "/99")), 1, &to("there", "a")).await;
        assert!(matches!(beyond, Outcome::Deferred { .. }), "{beyond:?}");
    });
}

#[test]
fn an_encrypted_server_is_known_by_its_certificate() {
    run(async {
        let files = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let path = |name: &str| files.path().join(name).display().to_string();
        std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let tls_port = free_port();
        let (cert, key) = (path("cert.pem"), path("key.pem"));
        let server = RedisServer::start_with(&[
            "--tls-port",
            &tls_port.to_string(),
            "--tls-cert-file",
            &cert,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &cert,
            "--tls-auth-clients",
            "no",
        ]);
        let url = format!("rediss://localhost:{tls_port}");
        let stranger = carry(&transport(config(&url)), 1, &to("secret", "a")).await;
        assert!(matches!(stranger, Outcome::Deferred { .. }), "nobody vouches for it: {stranger:?}");
        let mut trusting = config(&url);
        trusting.server.ca_file = Some(cert.into());
        let outcome = carry(&transport(trusting), 1, &to("secret", "a")).await;
        assert!(is_delivered(&outcome), "{outcome:?}");
        assert_eq!(server.say(&["XLEN", "secret"]), "1");
    });
}

#[test]
fn a_server_that_takes_nothing_for_now_costs_no_try() {
    run(async {
        let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
        let transport = transport(config(&server.url()));
        server.say(&["CONFIG", "SET", "maxmemory", "1"]);
        let full = carry(&transport, 1, &to("there", "a")).await;
        assert!(matches!(&full, Outcome::Deferred { reason, .. } if reason.contains("OOM")), "{full:?}");
        server.say(&["CONFIG", "SET", "maxmemory", "0"]);
        server.say(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        let alone = carry(&transport, 1, &to("there", "a")).await;
        assert!(
            matches!(&alone, Outcome::Deferred { reason, .. } if reason.contains("NOREPLICAS")),
            "{alone:?}"
        );
        server.say(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        assert!(is_delivered(&carry(&transport, 1, &to("there", "a")).await));
    });
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_that_it_confirmed() {
    run(async {
        let mut server = RedisServer::start();
        let transport = transport(config(&server.url()));
        let contents: Vec<Content> = (0..400).map(|n| to("kept", &format!("body {n}"))).collect();
        let (first, second) = contents.split_at(200);
        for (n, content) in (0..).zip(first) {
            assert!(is_delivered(&carry(&transport, n, content).await));
        }
        server.kill();
        let away = carry(&transport, 200, &contents[200]).await;
        assert!(!is_delivered(&away), "nobody is there: {away:?}");
        let away = carry(&transport, 200, &contents[200]).await;
        assert!(matches!(away, Outcome::Deferred { .. }), "it costs no try: {away:?}");
        let coming =
            join_all((200..).zip(second).map(|(n, content)| carry_until_delivered(&transport, n, content)));
        let (outcomes, _) = tokio::join!(coming, async {
            tokio::task::block_in_place(|| server.resume());
        });
        assert!(outcomes.iter().all(is_delivered));
        let entries = server.say(&["XRANGE", "kept", "-", "+"]);
        for n in 0..400 {
            assert!(entries.lines().any(|line| line == format!("body {n}")), "{n} is missing");
        }
    });
}

#[test]
fn a_server_that_falls_silent_makes_a_message_lost() {
    run(async {
        let server = RedisServer::start();
        let mut impatient = config(&server.url());
        impatient.server.reply_timeout = std::time::Duration::from_millis(300);
        let transport = transport(impatient);
        assert!(is_delivered(&carry_until_delivered(&transport, 1, &to("there", "a")).await));
        server.signal("STOP");
        let outcome = carry(&transport, 2, &to("there", "b")).await;
        server.signal("CONT");
        assert!(matches!(outcome, Outcome::Lost { .. }), "{outcome:?}");
        assert!(is_delivered(&carry_until_delivered(&transport, 2, &to("there", "b")).await));
    });
}

#[test]
fn a_cluster_is_written_to_where_each_key_is() {
    run(async {
        let mut cluster = RedisCluster::start();
        let transport = transport(config(&cluster.url()));
        let contents: Vec<Content> = (0..60).map(|n| to(&format!("key-{n}"), "a")).collect();
        for (n, content) in (0..).zip(&contents) {
            let outcome = carry(&transport, n, content).await;
            assert!(is_delivered(&outcome), "{outcome:?}");
        }
        let counts: Vec<u32> =
            cluster.nodes.iter().map(|node| node.say(&["DBSIZE"]).parse().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u32>(), 60);
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        // A key that moves is followed, and what was on its way costs no try.
        let node_id = |node: &RedisServer| node.say(&["CLUSTER", "MYID"]);
        let slot = cluster.nodes[0].say(&["CLUSTER", "KEYSLOT", "moving"]);
        assert!(is_delivered(&carry(&transport, 1, &to("moving", "a")).await));
        let owner = cluster.nodes.iter().position(|node| node.say(&["KEYS", "moving"]) == "moving").unwrap();
        cluster.nodes[owner].say(&["DEL", "moving"]);
        let next = (owner + 1) % 3;
        let next_id = node_id(&cluster.nodes[next]);
        for node in [next, owner, (owner + 2) % 3] {
            cluster.nodes[node].say(&["CLUSTER", "SETSLOT", &slot, "NODE", &next_id]);
        }
        let moved = carry(&transport, 1, &to("moving", "a")).await;
        assert!(matches!(moved, Outcome::Deferred { .. }) || is_delivered(&moved), "{moved:?}");
        assert!(is_delivered(&carry_until_delivered(&transport, 1, &to("moving", "a")).await));
        assert_eq!(cluster.nodes[next].say(&["EXISTS", "moving"]), "1");
        // A node that is away takes only its own keys with it, and none of them a try.
        cluster.nodes[owner].kill();
        let mut outcomes = Vec::new();
        for (n, content) in (0..).zip(&contents) {
            outcomes.push(carry(&transport, n, content).await);
        }
        let is_put_off =
            |outcome: &Outcome| matches!(outcome, Outcome::Deferred { .. } | Outcome::Lost { .. });
        assert!(outcomes.iter().all(|outcome| is_delivered(outcome) || is_put_off(outcome)), "{outcomes:?}");
        cluster.nodes[owner].resume();
        for (n, content) in (0..).zip(&contents) {
            assert!(is_delivered(&carry_until_delivered(&transport, n, content).await));
        }
    });
}

#[test]
fn a_sentinel_leads_to_whoever_took_over() {
    run(async {
        let mut servers = RedisSentinel::start();
        let transport = transport(config(&servers.url()));
        let outcome = carry(&transport, 1, &to("there", "a")).await;
        assert!(is_delivered(&outcome), "{outcome:?}");
        servers.master.kill();
        tokio::task::block_in_place(|| servers.wait_for_failover());
        assert!(is_delivered(&carry_until_delivered(&transport, 2, &to("there", "b")).await));
        let entries = servers.replica.say(&["XRANGE", "there", "-", "+"]);
        assert!(entries.lines().any(|line| line == "b"), "{entries}");
        // One that nobody knows is away.
        let url = servers.url().replace(RedisSentinel::MASTER, "other");
        let outcome = carry(&cache::transport(config(&url)), 1, &to("there", "a")).await;
        assert!(matches!(outcome, Outcome::Deferred { .. }), "{outcome:?}");
    });
}

#[test]
fn without_a_server_messages_wait_and_say_what_is_missing() {
    run(async {
        let transport = transport(RedisConfig::default());
        let outcome = carry(&transport, 1, &to("there", "a")).await;
        assert!(matches!(&outcome, Outcome::Deferred { reason, .. } if reason.contains("REDIS_URL")));
        assert_eq!(server_config("redis://x").servers.unwrap().name(), "x:6379");
    });
}
