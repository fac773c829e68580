//! The RabbitMQ transport against a real broker that stays up: what it says about each message, and what arrives.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broker;

use std::sync::OnceLock;

use bytes::Bytes;
use futures_util::future::join_all;
use redeliver_conformance::make;
use redeliver_core::outcome::Blame;
use redeliver_core::{Content, Message, Outcome};
use redeliver_servers::free_port;
use redeliver_servers::rabbitmq::RabbitmqServer;
use redeliver_transports::rabbitmq::amqp::NAME_HEADER;
use redeliver_transports::rabbitmq::amqp::table::{Field, Table};
use redeliver_transports::rabbitmq::{
    DEAD_LETTERS, HEADER_TYPE, REPEAT_HEADER, RabbitmqConfig, UNROUTABLE, init,
};

use broker::{Visitor, broker_config, carry, carry_message, config, run, to, transport};

/// The broker of all these tests: it takes no body over a million bytes, and speaks TLS on a port of its own.
struct Stage {
    server: RabbitmqServer,
    tls_port: u16,
    files: tempfile::TempDir,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let files = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(files.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(files.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let tls_port = free_port();
        let at = files.path().display();
        let server = RabbitmqServer::start_with(&format!(
            "max_message_size = 1000000\nlisteners.ssl.default = 127.0.0.1:{tls_port}\n\
             ssl_options.cacertfile = {at}/cert.pem\nssl_options.certfile = {at}/cert.pem\n\
             ssl_options.keyfile = {at}/key.pem\nssl_options.verify = verify_none"
        ));
        Stage { server, tls_port, files }
    })
}

fn code_of(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed(failure) | Outcome::Refused(failure) => failure.code.as_deref(),
        _ => None,
    }
}

#[test]
fn of_hundreds_under_way_each_return_is_told_from_the_others() {
    run(async {
        let visitor = Visitor::to(&stage().server.url()).await;
        visitor.make("there", Table::default()).await;
        let transport = transport(config(&stage().server.url()));
        let contents: Vec<Content> = (0..600)
            .map(|n| to(if n % 3 == 0 { "nowhere" } else { "there" }, &format!("body {n}")))
            .collect();
        let all = (0..).zip(&contents).map(|(n, content)| carry(&transport, n, content));
        for (n, outcome) in join_all(all).await.iter().enumerate() {
            match n % 3 {
                0 => {
                    assert!(matches!(outcome, Outcome::Failed(_)), "{n}: {outcome:?}");
                    assert_eq!(code_of(outcome), Some(UNROUTABLE));
                }
                _ => assert!(matches!(outcome, Outcome::Delivered { .. }), "{n}: {outcome:?}"),
            }
        }
        let arrived = visitor.take("there", 400).await;
        assert!(arrived.iter().all(|delivery| delivery.body.starts_with(b"body ")));
        assert_eq!(visitor.depth("there").await, Some(0));
    });
}

#[test]
fn what_a_full_queue_does_not_take_has_failed() {
    run(async {
        let visitor = Visitor::to(&stage().server.url()).await;
        let full = Table::default()
            .with("x-max-length", Field::number(1))
            .with("x-overflow", Field::string("reject-publish"));
        visitor.make("full", full).await;
        let transport = transport(config(&stage().server.url()));
        let first = carry(&transport, 1, &to("full", "a")).await;
        assert!(matches!(first, Outcome::Delivered { .. }), "{first:?}");
        let second = carry(&transport, 2, &to("full", "b")).await;
        assert_eq!(code_of(&second), Some("nack"), "{second:?}");
    });
}

#[test]
fn what_one_of_two_queues_does_not_take_is_lost_because_the_other_has_it() {
    run(async {
        let visitor = Visitor::to(&stage().server.url()).await;
        let full = Table::default()
            .with("x-max-length", Field::number(1))
            .with("x-overflow", Field::string("reject-publish"));
        visitor.make("narrow", full).await;
        visitor.make("wide", Table::default()).await;
        visitor.lead("both", &["narrow", "wide"]).await;
        let transport =
            transport(RabbitmqConfig { exchange: "both".to_owned(), ..config(&stage().server.url()) });
        let first = carry(&transport, 1, &to("any", "a")).await;
        assert!(matches!(first, Outcome::Delivered { .. }), "{first:?}");
        let second = carry(&transport, 2, &to("any", "b")).await;
        assert!(matches!(second, Outcome::Lost { .. }), "{second:?}");
        assert_eq!((visitor.depth("narrow").await, visitor.depth("wide").await), (Some(1), Some(2)));
    });
}

#[test]
fn what_the_broker_never_takes_is_refused_and_its_neighbours_arrive() {
    run(async {
        let visitor = Visitor::to(&stage().server.url()).await;
        visitor.make("large", Table::default()).await;
        let transport = transport(config(&stage().server.url()));
        let large = to("large", &"x".repeat(1_000_001));
        let small = to("large", "small");
        let all = (0..20).map(|n| carry(&transport, n, if n == 7 { &large } else { &small }));
        let mut outcomes = join_all(all).await;
        // The broker names no culprit: those whose fate nobody knows go again, each on its own.
        while outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::Lost { .. } | Outcome::Deferred { .. }))
        {
            for n in 0..20 {
                if matches!(outcomes[n as usize], Outcome::Lost { .. } | Outcome::Deferred { .. }) {
                    let content = if n == 7 { &large } else { &small };
                    outcomes[n as usize] = carry(&transport, n, content).await;
                }
            }
        }
        for (n, outcome) in outcomes.iter().enumerate() {
            match n {
                7 => assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}"),
                _ => assert!(matches!(outcome, Outcome::Delivered { .. }), "{n}: {outcome:?}"),
            }
        }
    });
}

#[test]
fn headers_and_properties_arrive_as_they_were() {
    run(async {
        let visitor = Visitor::to(&stage().server.url()).await;
        visitor.make("exact", Table::default()).await;
        let transport = transport(config(&stage().server.url()));
        let list = Bytes::from_static(b"\0\0\0\x05I\0\0\0\x01");
        let attributes = [
            ("amqp.priority", "7"),
            ("amqp.correlation_id", "c-1"),
            ("amqp.reply_to", "answers"),
            ("amqp.type", "order"),
            ("amqp.app_id", "shop"),
            ("amqp.timestamp", "1700000000"),
            ("amqp.content_encoding", "gzip"),
        ];
        let mut attributes: Vec<(String, String)> =
            attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        attributes.push((format!("{HEADER_TYPE}list"), "A".to_owned()));
        attributes.push((format!("{HEADER_TYPE}liar"), "I".to_owned()));
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let content = Content {
            attributes: attributes.into_iter().collect(),
            headers: vec![
                ("b".to_owned(), Bytes::from_static(b"\0\xff bytes")),
                ("list".to_owned(), list.clone()),
                ("a".to_owned(), "text".into()),
                ("liar".to_owned(), "no number".into()),
                ("traceparent".to_owned(), trace.into()),
                (NAME_HEADER.to_owned(), "somebody else's".into()),
            ],
            content_type: Some("application/x-order".into()),
            ..to("exact", "body")
        };
        let message = Message { generation: 2, attempts: 1, ..make::message(1) };
        carry_message(&transport, &message, &content).await;
        carry_message(&transport, &Message { unconfirmed: 1, ..message.clone() }, &content).await;
        let arrived = visitor.take("exact", 2).await;
        let properties = arrived[0].properties.clone().unwrap();
        let id = redeliver_core::AttemptId::of(&message).to_string();
        let expected = Table::default()
            .with("b", Field::string(Bytes::from_static(b"\0\xff bytes")))
            .with("list", Field { kind: b'A', bytes: list })
            .with("a", Field::string("text"))
            .with("liar", Field::string("no number"))
            .with("traceparent", Field::string(trace))
            .with(NAME_HEADER, Field::string(id.clone()));
        assert_eq!(properties.headers, Some(expected.clone()));
        assert_eq!((properties.delivery_mode, properties.priority), (Some(2), Some(7)));
        assert_eq!(properties.timestamp, Some(1_700_000_000));
        let texts = [
            (properties.content_type, "application/x-order"),
            (properties.content_encoding, "gzip"),
            (properties.correlation_id, "c-1"),
            (properties.reply_to, "answers"),
            (properties.kind, "order"),
            (properties.app_id, "shop"),
            (properties.message_id, id.as_str()),
        ];
        for (found, wanted) in texts {
            assert_eq!(found.unwrap().as_str(), wanted);
        }
        let again = arrived[1].properties.clone().unwrap().headers;
        assert_eq!(
            again,
            Some(expected.with(REPEAT_HEADER, Field::string("true"))),
            "it may have come before"
        );
    });
}

#[test]
fn a_login_that_is_not_accepted_holds_the_broker_and_costs_no_try() {
    run(async {
        let url = stage().server.url().replace("guest:guest", "guest:wrong");
        let outcome = carry(&transport(config(&url)), 1, &to("there", "a")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.blame, Blame::Credential);
        assert!(!failure.text.contains("wrong"), "{}", failure.text);
    });
}

#[test]
fn missing_queues_of_ours_are_made_and_those_that_are_there_are_left_alone() {
    run(async {
        let visitor = Visitor::to(&stage().server.url()).await;
        visitor.make("old", Table::default().with("x-max-length", Field::number(9))).await;
        let queues = vec!["old".to_owned(), "new".to_owned()];
        let transport = transport(RabbitmqConfig { queues, ..config(&stage().server.url()) });
        for queue in ["old", "new"] {
            let outcome = carry(&transport, 1, &to(queue, "a")).await;
            assert!(matches!(outcome, Outcome::Delivered { .. }), "{queue}: {outcome:?}");
        }
        assert_eq!(visitor.take("new", 1).await.len(), 1);
    });
}

#[test]
fn queues_are_made_once_and_their_own_dead_letters_are_kept() {
    run(async {
        let url = stage().server.url();
        let visitor = Visitor::to(&url).await;
        visitor.make("theirs", Table::default()).await;
        let names = ["theirs".to_owned(), "ours".to_owned()];
        let made = init(&broker_config(&url), &names).await.unwrap();
        assert_eq!(made, [("theirs".to_owned(), false), ("ours".to_owned(), true)]);
        let again = init(&broker_config(&url), &names).await.unwrap();
        assert!(again.iter().all(|(_, was_made)| !was_made));
        assert_eq!(visitor.depth("ours").await, Some(0));
        assert_eq!(visitor.depth(DEAD_LETTERS).await, Some(0));
    });
}

#[test]
fn an_encrypted_broker_is_known_by_its_certificate() {
    run(async {
        let stage = stage();
        let visitor = Visitor::to(&stage.server.url()).await;
        visitor.make("secret", Table::default()).await;
        let url = format!("amqps://localhost:{}", stage.tls_port);
        let stranger = carry(&transport(config(&url)), 1, &to("secret", "a")).await;
        assert!(matches!(stranger, Outcome::Deferred { .. }), "nobody vouches for it: {stranger:?}");
        let ca_file = Some(stage.files.path().join("cert.pem"));
        let broker = redeliver_transports::rabbitmq::BrokerConfig { ca_file, ..broker_config(&url) };
        let outcome =
            carry(&transport(RabbitmqConfig { broker, ..config(&url) }), 1, &to("secret", "a")).await;
        assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
    });
}
