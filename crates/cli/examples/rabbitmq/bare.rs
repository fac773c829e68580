//! A publisher and a consumer that do nothing else, by the client that Redeliver has: what they reach is what the broker and
//! the protocol allow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redeliver_transports::rabbitmq::amqp::method::{Method, flags};
use redeliver_transports::rabbitmq::amqp::properties::{PERSISTENT, Properties};
use redeliver_transports::rabbitmq::amqp::table::{Field, Table};
use redeliver_transports::rabbitmq::amqp::wire::Short;
use redeliver_transports::rabbitmq::amqp::{Address, Confirm, Connection, Flow, NAME_HEADER, Options};
use redeliver_transports::rabbitmq::{Broker, RetryMessage};
use tokio::net::TcpStream;

use crate::{BATCH, BODY_BYTES, IN_FLIGHT, PREFETCH};

/// Callers with nothing but a connection.
pub struct Bare {
    broker: Broker,
}

impl Bare {
    pub fn to(url: &str) -> Self {
        Self { broker: Broker::parse(url).unwrap() }
    }

    async fn connection(&self) -> Connection {
        let socket = TcpStream::connect((self.broker.host.as_str(), self.broker.port)).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let options = Options {
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            virtual_host: "/".to_owned(),
            name: "bare".to_owned(),
            heartbeat: Duration::from_secs(60),
            body_bytes_max: 1 << 20,
        };
        Connection::open(Box::new(socket), &options).await.unwrap()
    }

    /// Makes a queue that survives, of this type.
    pub async fn make(&self, queue: &str, kind: &str) {
        let connection = self.connection().await;
        let channel = connection.channel().await.unwrap();
        let arguments = Table::default().with("x-queue-type", Field::string(kind.to_owned()));
        let queue = Short::cut(queue);
        let declare = Method::QueueDeclare { reserved: 0, queue, flags: flags::DURABLE, arguments };
        channel.call(&declare).await.unwrap();
    }

    /// Publishes so many, persistent, mandatory and confirmed; how many a second.
    pub async fn publish(&self, queue: &str, count: usize, body: impl Fn(usize) -> Bytes) -> f64 {
        let bodies: Vec<Bytes> = (0..count).map(body).collect();
        // Ours connects within its time, too.
        let begun = Instant::now();
        let connection = self.connection().await;
        let channel = connection.channel().await.unwrap();
        channel.confirm().await.unwrap();
        let address = Address { exchange: Short::default(), routing_key: Short::cut(queue) };
        let mut waiting = FuturesUnordered::new();
        for (n, body) in bodies.into_iter().enumerate() {
            if waiting.len() >= IN_FLIGHT {
                assert_eq!(waiting.next().await, Some(Ok(Confirm::Taken)));
            }
            let name: Arc<str> = format!("bare-{n}").into();
            let headers = Table::default().with(NAME_HEADER, Field::string(name.to_string()));
            let (headers, delivery_mode) = (Some(headers), Some(PERSISTENT));
            let properties = Properties { headers, delivery_mode, ..Properties::default() };
            waiting.push(channel.publish(&address, name, &properties.head(body.len()), &body).unwrap());
        }
        while let Some(confirm) = waiting.next().await {
            assert_eq!(confirm, Ok(Confirm::Taken));
        }
        count as f64 / begun.elapsed().as_secs_f64()
    }

    /// Takes so many, and acknowledges at once whatever has come; how many a second.
    pub async fn consume(&self, queue: &str, count: usize) -> f64 {
        let begun = Instant::now();
        let connection = self.connection().await;
        let channel = connection.channel().await.unwrap();
        let flow = Flow { prefetch: PREFETCH, in_hand_bytes_max: usize::MAX };
        let mut coming = channel.consume(&Short::cut(queue), flow).await.unwrap();
        let mut taken = 0;
        while taken < count {
            let mut last = coming.recv().await.unwrap().tag;
            let mut batch = 1;
            while batch < BATCH
                && let Ok(next) = coming.try_recv()
            {
                last = next.tag;
                batch += 1;
            }
            channel.ack_up_to(last);
            taken += batch;
        }
        count as f64 / begun.elapsed().as_secs_f64()
    }
}

pub fn body(_: usize) -> Bytes {
    Bytes::from(vec![7; BODY_BYTES])
}

/// A message for the intake, due so late that it is out of the way.
pub fn retry_message(n: usize) -> Bytes {
    let message = RetryMessage {
        message_id: format!("m-{n}"),
        original_payload: body(n),
        original_queue: "orders".to_owned(),
        error_reason: "timeout".to_owned(),
        next_retry_at_ms: 4_000_000_000_000,
        ..RetryMessage::default()
    };
    prost::Message::encode_to_vec(&message).into()
}
