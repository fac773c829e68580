//! The RabbitMQ transport against a broker that is killed, has no room, and is back again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod broker;

use std::time::Duration;

use redeliver_core::Outcome;
use redeliver_servers::rabbitmq::RabbitmqServer;
use redeliver_transports::rabbitmq::RabbitmqTransport;
use redeliver_transports::rabbitmq::amqp::FRAME_BYTES_MAX;
use redeliver_transports::rabbitmq::amqp::table::{Field, Table};

use broker::{Visitor, WITHIN, carry, carry_until_delivered, config, run, to, transport};

#[test]
fn a_broker_that_goes_and_comes_back_costs_nothing_but_time() {
    let mut server = RabbitmqServer::start();
    let url = server.url();
    run(async {
        let quorum = Table::default().with("x-queue-type", Field::string("quorum"));
        Visitor::to(&url).await.make("kept", quorum).await;
        server.write_down_queues();
        let transport = transport(config(&url));
        let first = carry(&transport, 1, &to("kept", "1")).await;
        assert!(matches!(first, Outcome::Delivered { .. }), "{first:?}");

        server.kill();
        // The first to come may have been on its way when the broker went; nobody comes after that.
        let gone = carry(&transport, 2, &to("kept", "2")).await;
        assert!(matches!(gone, Outcome::Deferred { .. } | Outcome::Lost { .. }), "{gone:?}");
        let still = carry(&transport, 2, &to("kept", "2")).await;
        assert!(matches!(still, Outcome::Deferred { .. }), "{still:?}");

        server.resume();
        let back = carry_until_delivered(&transport, 2, &to("kept", "2")).await;
        assert!(matches!(back, Outcome::Delivered { .. }), "{back:?}");
        let came = Visitor::to(&url).await.take("kept", 2).await;
        let bodies: Vec<_> = came.into_iter().map(|it| it.body).collect();
        assert_eq!(bodies, ["1", "2"]);
    });
}

#[test]
fn a_broker_without_room_is_left_alone_until_it_has_some() {
    let server = RabbitmqServer::start();
    let url = server.url();
    run(async {
        let visitor = Visitor::to(&url).await;
        visitor.make("kept", Table::default()).await;
        let transport = transport(config(&url));
        server.control(&["set_vm_memory_high_watermark", "absolute", "1"]);
        // The notice comes in answer to the first message, which stays on the way until there is room.
        let first = to("kept", "1");
        let on_its_way = carry(&transport, 1, &first);
        tokio::pin!(on_its_way);
        let told = async {
            tokio::select! {
                early = &mut on_its_way => panic!("there is no room for it: {early:?}"),
                reason = until_put_off(&transport) => reason,
            }
        };
        let told = tokio::time::timeout(WITHIN, told).await.unwrap();
        assert!(told.contains("takes nothing"), "{told}");
        assert_eq!(visitor.depth("kept").await, Some(0), "nobody has it");

        server.control(&["set_vm_memory_high_watermark", "0.6"]);
        let arrived = on_its_way.await;
        assert!(matches!(arrived, Outcome::Delivered { .. }), "{arrived:?}");
        let next = carry_until_delivered(&transport, 2, &to("kept", "2")).await;
        assert!(matches!(next, Outcome::Delivered { .. }), "{next:?}");
        let came = visitor.take("kept", 2).await;
        let bodies: Vec<_> = came.into_iter().map(|it| it.body).collect();
        assert_eq!(bodies, ["1", "2"], "each once, and nothing else");
        assert_eq!(visitor.depth("kept").await, Some(0));
    });
}

/// Asks until it is known that the broker takes nothing; why not. What it asks with is refused as long as that is not
/// known, and never on its way.
async fn until_put_off(transport: &RabbitmqTransport) -> String {
    let mut never = to("kept", "never");
    never.headers.push(("wide".into(), vec![b'x'; FRAME_BYTES_MAX].into()));
    loop {
        match carry(transport, 9, &never).await {
            Outcome::Deferred { reason, .. } => return reason.to_string(),
            Outcome::Refused(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            other => panic!("{other:?}"),
        }
    }
}
