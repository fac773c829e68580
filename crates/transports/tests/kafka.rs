//! The Kafka transport against a cluster: what it says about each message, what arrives, and what an outage costs.
#![cfg(feature = "kafka")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod topics;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use redeliver_conformance::intake::sink::{Answers, ScriptedSink};
use redeliver_conformance::make;
use redeliver_core::outcome::Blame;
use redeliver_core::{AttemptId, Content, Message, Outcome};
use redeliver_engine::intake::Intake;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::transport::Transport;
use redeliver_servers::kafka::{Fault, KafkaCluster, Request};
use redeliver_transports::kafka::{
    KafkaConfig, KafkaTransport, NAME_HEADER, OnConfirm, REPEAT_HEADER, UNCONFIGURED, UNROUTABLE,
};

use topics::{
    GROUP, SOURCE, WITHIN, carry, carry_message, carry_until_delivered, config, intake, report_intake, run,
    to, transport,
};

fn code_of(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed(failure) | Outcome::Refused(failure) => failure.code.as_deref(),
        _ => None,
    }
}

#[test]
fn a_record_has_its_device_for_a_key_and_tells_what_it_is() {
    run(async {
        let cluster = KafkaCluster::start();
        cluster.make_topic("notifications.retry.low", 4);
        let transport = transport(config(&cluster));
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let content = Content {
            attributes: BTreeMap::from([("device_id".to_owned(), "d-1".to_owned())]),
            headers: vec![
                ("b".to_owned(), (&b"\0\xff bytes"[..]).into()),
                ("traceparent".to_owned(), trace.into()),
                (NAME_HEADER.to_owned(), "somebody else's".into()),
                ("id".to_owned(), "somebody else's".into()),
            ],
            content_type: Some("application/json".into()),
            ..to("notifications.retry.low", "{\"a\":1}")
        };
        let message = Message { generation: 2, attempts: 1, ..make::message(1) };
        let outcome = carry_message(&transport, &message, &content).await;
        let Outcome::Delivered { receipt: Some(receipt) } = &outcome else { panic!("{outcome:?}") };
        carry_message(&transport, &Message { unconfirmed: 1, ..message.clone() }, &content).await;
        let [first, second] = cluster.records("notifications.retry.low").try_into().unwrap();
        assert_eq!(**receipt, *format!("notifications.retry.low/{}@{}", first.partition, first.offset));
        assert_eq!(first.partition, second.partition, "the same device keeps its partition");
        assert_eq!(first.key.as_deref(), Some(&b"d-1"[..]));
        assert_eq!(first.bytes, b"{\"a\":1}");
        let attempt_id = AttemptId::of(&message).to_string();
        let id = message.id.to_string();
        let expected = [
            ("b", &b"\0\xff bytes"[..]),
            ("traceparent", trace.as_bytes()),
            ("id", id.as_bytes()),
            ("attempt_id", attempt_id.as_bytes()),
            ("priority", message.lane.name().as_bytes()),
            (NAME_HEADER, attempt_id.as_bytes()),
            ("content-type", b"application/json"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_vec()));
        assert_eq!(first.headers, expected);
        assert_eq!(second.header(REPEAT_HEADER), Some("true"), "it may have come before");
    });
}

#[test]
fn a_dead_letter_tells_why_it_is_dead() {
    run(async {
        let cluster = KafkaCluster::start();
        let transport = transport(config(&cluster));
        let attributes = [
            ("dead_reason", "attempts_exhausted"),
            ("dead_attempts", "11"),
            ("dead_error", "no such token"),
            ("dead_route", "notification"),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let content = Content { attributes, ..to("notifications.dead-letter", "x") };
        let message = Message { is_dead_letter: true, ..make::message(1) };
        carry_message(&transport, &message, &content).await;
        let [letter] = cluster.records("notifications.dead-letter").try_into().unwrap();
        assert_eq!(letter.header("x-dead-reason"), Some("attempts_exhausted"));
        assert_eq!(letter.header("x-attempts"), Some("11"));
        assert!(letter.header("x-history").unwrap().contains("no such token"));
        assert_eq!(letter.key, None);
    });
}

#[test]
fn of_hundreds_under_way_each_arrives_once() {
    run(async {
        let cluster = KafkaCluster::start_with(3);
        cluster.make_topic("many", 6);
        let transport = transport(KafkaConfig { on_confirm: OnConfirm::HandedOff, ..config(&cluster) });
        let contents: Vec<Content> = (0..600).map(|n| to("many", &format!("body {n}"))).collect();
        let all = (0..).zip(&contents).map(|(n, content)| carry(&transport, n, content));
        for (n, outcome) in join_all(all).await.iter().enumerate() {
            assert_eq!(*outcome, Outcome::HandedOff, "{n}");
        }
        let arrived = cluster.records("many");
        let bodies: BTreeSet<&[u8]> = arrived.iter().map(|record| &record.bytes[..]).collect();
        assert_eq!((arrived.len(), bodies.len()), (600, 600));
    });
}

#[test]
fn a_topic_that_is_not_there_is_a_failed_try_and_its_neighbours_arrive() {
    run(async {
        let cluster = KafkaCluster::start();
        cluster.hide_topic("nowhere");
        cluster.make_topic("there", 1);
        let transport = transport(config(&cluster));
        let (nowhere, there) = (to("nowhere", "a"), to("there", "b"));
        let (lost, found) = tokio::join!(carry(&transport, 1, &nowhere), carry(&transport, 2, &there));
        assert!(matches!(lost, Outcome::Failed(_)), "{lost:?}");
        assert_eq!(code_of(&lost), Some(UNROUTABLE));
        assert!(matches!(found, Outcome::Delivered { .. }), "{found:?}");
    });
}

#[test]
fn what_can_never_be_written_is_refused() {
    run(async {
        let cluster = KafkaCluster::start();
        let transport = transport(KafkaConfig { message_bytes_max: 10_000, ..config(&cluster) });
        for content in
            [to("large", &"x".repeat(10_001)), to("no topic", "a"), to("", "a"), Content::default()]
        {
            let outcome = carry(&transport, 1, &content).await;
            assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        }
        let outcome = carry(&transport, 1, &to("large", "small")).await;
        assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
    });
}

#[test]
fn a_topic_that_we_may_not_write_to_holds_the_cluster() {
    run(async {
        let cluster = KafkaCluster::start();
        cluster.fail(Request::Produce, &[Fault::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED]);
        let outcome = carry(&transport(config(&cluster)), 1, &to("theirs", "a")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.blame, Blame::Credential);
    });
}

#[test]
fn what_a_broker_cannot_take_for_a_moment_arrives_once() {
    run(async {
        let cluster = KafkaCluster::start();
        let transport = transport(config(&cluster));
        let faults = [Fault::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, Fault::RD_KAFKA_RESP_ERR__TRANSPORT];
        cluster.fail(Request::Produce, &faults);
        let outcome = carry_until_delivered(&transport, 1, &to("moody", "a")).await;
        assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
        assert_eq!(cluster.records("moody").len(), 1);
    });
}

#[test]
fn brokers_out_of_reach_cost_no_try_and_are_found_again() {
    run(async {
        let cluster = KafkaCluster::start_with(3);
        cluster.make_topic("back", 3);
        let transport = transport(config(&cluster));
        carry(&transport, 1, &to("back", "a")).await;
        cluster.take_down();
        // What was under way while the brokers went is lost at worst; then it is known that they are gone.
        let gone = async {
            loop {
                let brief = Duration::from_secs(1);
                let (message, content) = (make::message(2), to("back", "b"));
                let target = content.target.as_deref();
                let envelope =
                    redeliver_engine::transport::Envelope { message: &message, content: &content, target };
                match transport.carry(&envelope, brief).await {
                    Outcome::Deferred { .. } => break,
                    Outcome::Lost { .. } => {}
                    other => panic!("nobody was there, but: {other:?}"),
                }
            }
        };
        tokio::time::timeout(WITHIN, gone).await.unwrap();
        cluster.bring_up();
        let contents: Vec<Content> = (10..40).map(|n| to("back", &format!("body {n}"))).collect();
        let all = (10..).zip(&contents).map(|(n, content)| carry_until_delivered(&transport, n, content));
        for outcome in join_all(all).await {
            assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
        }
        let arrived: BTreeSet<Vec<u8>> =
            cluster.records("back").into_iter().map(|record| record.bytes).collect();
        assert!(contents.iter().all(|content| arrived.contains(&content.bytes[..])));
    });
}

#[test]
fn without_brokers_messages_wait_and_say_why() {
    run(async {
        let transport: KafkaTransport = transport(KafkaConfig::default());
        assert_eq!(transport.lacks().as_deref(), Some(UNCONFIGURED));
        let outcome = carry(&transport, 1, &to("t", "a")).await;
        assert!(matches!(outcome, Outcome::Deferred { .. }), "{outcome:?}");
    });
}

/// Two members of a group, of which one goes: what it had read but not kept is read by the other.
#[test]
fn what_a_member_leaves_behind_is_taken_by_the_others() {
    run(async {
        let cluster = KafkaCluster::start();
        cluster.make_topic(SOURCE, 4);
        let bodies: Vec<String> = (0..200).map(|n| format!("body {n}")).collect();
        let records: Vec<(Option<&str>, &[u8])> =
            bodies.iter().map(|body| (Some(body.as_str()), body.as_bytes())).collect();
        cluster.put_all(SOURCE, &records);
        let (stuck, second) = (intake(&cluster), intake(&cluster));
        let (keeps_nothing, keeps) = (ScriptedSink::new(Answers::Waits), ScriptedSink::new(Answers::New));
        let (stop_stuck, stuck_stop) = stop_pair();
        let (stop_second, second_stop) = stop_pair();
        let story = async {
            keeps_nothing.called(1).await;
            assert_eq!(cluster.committed(GROUP, SOURCE), 0, "nothing of it is kept");
            stop_stuck.stop();
            while cluster.committed(GROUP, SOURCE) < 200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stop_second.stop();
        };
        let late = async {
            // It joins a group that has its partitions, and is given some of them.
            keeps_nothing.called(1).await;
            second.run(&keeps, second_stop).await
        };
        let all = async { tokio::join!(stuck.run(&keeps_nothing, stuck_stop), late, story) };
        let (first, last, ()) = tokio::time::timeout(WITHIN, all).await.unwrap();
        assert!(first.is_ok() && last.is_ok());
        let taken: BTreeSet<_> = keeps.taken().into_iter().collect();
        assert_eq!(taken.len(), 200, "nothing is skipped");
    });
}

/// While the store takes nothing, the member stays in its group; a cluster that goes and comes back loses nothing.
#[test]
fn a_store_and_a_cluster_that_go_and_come_back_lose_nothing() {
    run(async {
        let cluster = KafkaCluster::start();
        cluster.make_topic(SOURCE, 2);
        let put = |from: u32| {
            let bodies: Vec<String> = (from..from + 100).map(|n| format!("body {n}")).collect();
            let records: Vec<(Option<&str>, &[u8])> =
                bodies.iter().map(|body| (None, body.as_bytes())).collect();
            cluster.put_all(SOURCE, &records);
        };
        put(0);
        let reader = intake(&cluster);
        let sink = ScriptedSink::new(Answers::Fails);
        let (stopper, stop) = stop_pair();
        let story = async {
            // Long enough for its partitions to be paused.
            sink.called(6).await;
            put(100);
            sink.answer(Answers::New);
            while cluster.committed(GROUP, SOURCE) < 200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            cluster.take_down();
            tokio::time::sleep(Duration::from_millis(500)).await;
            cluster.bring_up();
            put(200);
            while cluster.committed(GROUP, SOURCE) < 300 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stopper.stop();
        };
        let all = async { tokio::join!(reader.run(&sink, stop), story) };
        let (ended, ()) = tokio::time::timeout(WITHIN * 2, all).await.unwrap();
        assert!(ended.is_ok());
        let taken: BTreeSet<_> = sink.taken().into_iter().collect();
        assert_eq!(taken.len(), 300);
    });
}

#[test]
fn reports_are_brought_and_what_is_none_is_set_aside() {
    run(async {
        let cluster = KafkaCluster::start();
        cluster.make_topic(SOURCE, 2);
        let id = make::message(7).id;
        let report = format!("{{\"id\":\"{id}\",\"outcome\":\"failed\",\"error\":\"asleep\"}}");
        cluster.put_all(SOURCE, &[(None, report.as_bytes()), (None, b"no report")]);
        let reader = report_intake(&cluster);
        let sink = ScriptedSink::new(Answers::Fails);
        let (stopper, stop) = stop_pair();
        let story = async {
            sink.called(2).await;
            assert_eq!(cluster.committed(GROUP, SOURCE), 0, "nothing of it is kept");
            sink.answer(Answers::New);
            while cluster.committed(GROUP, SOURCE) < 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stopper.stop();
        };
        let all = async { tokio::join!(reader.run(&sink, stop), story) };
        let (ended, ()) = tokio::time::timeout(WITHIN, all).await.unwrap();
        assert!(ended.is_ok());
        let [told] = sink.reports().try_into().unwrap();
        assert_eq!(told.message, id);
        assert!(matches!(told.outcome, Outcome::Failed(_)), "{told:?}");
        assert_eq!(sink.set_aside(), ["no report"]);
    });
}
