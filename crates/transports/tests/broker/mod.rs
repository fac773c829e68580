//! A real broker: whoever looks into its queues, and a transport that publishes to them.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../carrying/mod.rs"]
mod carrying;

use redeliver_core::Timestamp;
use redeliver_engine::clock::WallClock;
use redeliver_transports::rabbitmq::amqp::method::{Method, flags};
use redeliver_transports::rabbitmq::amqp::table::Table;
use redeliver_transports::rabbitmq::amqp::wire::Short;
use redeliver_transports::rabbitmq::amqp::{Connection, Delivery, Flow, Options};
use redeliver_transports::rabbitmq::{Broker, BrokerConfig, RabbitmqConfig, RabbitmqTransport};
use tokio::net::TcpStream;

pub use carrying::*;

pub fn broker_config(url: &str) -> BrokerConfig {
    BrokerConfig {
        broker: Some(Broker::parse(url).unwrap()),
        connect_timeout: WITHIN,
        ..BrokerConfig::default()
    }
}

pub fn config(url: &str) -> RabbitmqConfig {
    RabbitmqConfig { broker: broker_config(url), confirm_timeout: WITHIN, ..RabbitmqConfig::default() }
}

pub fn transport(config: RabbitmqConfig) -> RabbitmqTransport {
    RabbitmqTransport::new("rabbitmq", config, WallClock::new(Timestamp::default())).unwrap()
}

/// As much as there is.
const FLOW: Flow = Flow { prefetch: 1_000, in_hand_bytes_max: usize::MAX };

/// Somebody else on the broker, who makes queues and looks into them.
pub struct Visitor {
    pub connection: Connection,
}

impl Visitor {
    pub async fn to(url: &str) -> Self {
        let broker = Broker::parse(url).unwrap();
        let socket = TcpStream::connect((broker.host.as_str(), broker.port)).await.unwrap();
        let options = Options {
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            virtual_host: "/".to_owned(),
            name: "visitor".to_owned(),
            heartbeat: WITHIN,
            body_bytes_max: 1 << 24,
        };
        Self { connection: Connection::open(Box::new(socket), &options).await.unwrap() }
    }

    pub async fn make(&self, queue: &str, arguments: Table) {
        let channel = self.connection.channel().await.unwrap();
        let queue = Short::new(queue).unwrap();
        let declare = Method::QueueDeclare { reserved: 0, queue, flags: flags::DURABLE, arguments };
        channel.call(&declare).await.unwrap();
    }

    /// Leads everything from an exchange to these queues.
    pub async fn lead(&self, exchange: &str, queues: &[&str]) {
        let channel = self.connection.channel().await.unwrap();
        let (exchange, kind) = (Short::new(exchange).unwrap(), Short::cut("fanout"));
        let (flags, arguments) = (flags::DURABLE, Table::default());
        let declare =
            Method::ExchangeDeclare { reserved: 0, exchange: exchange.clone(), kind, flags, arguments };
        channel.call(&declare).await.unwrap();
        for queue in queues {
            let bind = Method::QueueBind {
                reserved: 0,
                queue: Short::new(*queue).unwrap(),
                exchange: exchange.clone(),
                routing_key: Short::default(),
                flags: 0,
                arguments: Table::default(),
            };
            channel.call(&bind).await.unwrap();
        }
    }

    /// The next so many messages of a queue; they are acknowledged.
    pub async fn take(&self, queue: &str, count: usize) -> Vec<Delivery> {
        let channel = self.connection.channel().await.unwrap();
        let mut coming = channel.consume(&Short::new(queue).unwrap(), FLOW).await.unwrap();
        let mut all = Vec::new();
        while all.len() < count {
            let next = tokio::time::timeout(WITHIN, coming.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("{queue} had {} of {count}", all.len())).unwrap();
            channel.ack_up_to(next.tag);
            all.push(next);
        }
        all
    }

    /// How many messages wait in a queue, if there is one.
    pub async fn depth(&self, queue: &str) -> Option<u32> {
        let channel = self.connection.channel().await.unwrap();
        let queue = Short::new(queue).unwrap();
        let (flags, arguments) = (flags::PASSIVE, Table::default());
        match channel.call(&Method::QueueDeclare { reserved: 0, queue, flags, arguments }).await {
            Ok(Method::QueueDeclareOk { messages, .. }) => Some(messages),
            _ => None,
        }
    }
}
