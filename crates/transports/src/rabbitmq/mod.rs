//! Publishes to the queues of a RabbitMQ broker, and takes what comes to them.

pub mod amqp;
mod classify;
mod config;
mod declare;
mod dial;
mod outbound;
mod parcel;

pub use classify::{INVALID, NACK, UNROUTABLE};
pub use config::{Broker, BrokerConfig, OnConfirm, RabbitmqConfig, Secret};
pub use outbound::{RabbitmqTransport, UNCONFIGURED};
pub use parcel::{HEADER_TYPE, PROPERTY, REPEAT_HEADER};
