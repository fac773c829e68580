//! Publishes to the queues of a RabbitMQ broker, and takes what comes to them.

pub mod amqp;
mod classify;
mod config;
mod declare;
mod dial;
mod inbound;
mod labels;
mod nack;
mod outbound;
mod parcel;
mod retry_message;

pub use classify::{INVALID, NACK, UNROUTABLE};
pub use config::{Broker, BrokerConfig, OnConfirm, RabbitmqConfig, Secret};
pub use declare::{DEAD_LETTERS, init};
pub use inbound::{RabbitmqIntake, RabbitmqIntakeConfig, Takes};
pub use labels::QUEUE_LABELS_MAX;
pub use outbound::{RabbitmqTransport, UNCONFIGURED};
pub use parcel::{HEADER_TYPE, PROPERTY, REPEAT_HEADER};
pub use retry_message::RetryMessage;
