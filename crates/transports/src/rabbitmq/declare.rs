//! Queues: those that are there are taken as they are, those of ours that are missing are made.

use super::amqp::method::{Method, flags};
use super::amqp::table::{Field, Table};
use super::amqp::wire::Short;
use super::amqp::{Closed, Connection, code};

/// Sees to it that a queue is there; whether it had to be made.
pub(super) async fn ensure(connection: &Connection, queue: &Short) -> Result<bool, Closed> {
    if exists(connection, queue).await? {
        return Ok(false);
    }
    make(connection, queue, quorum()).await?;
    Ok(true)
}

/// Whether there is such a queue, of whatever type.
pub(super) async fn exists(connection: &Connection, queue: &Short) -> Result<bool, Closed> {
    // The broker ends the channel that asks for what isn't there.
    let channel = connection.channel().await?;
    let (flags, arguments) = (flags::PASSIVE, Table::default());
    match channel.call(&Method::QueueDeclare { reserved: 0, queue: queue.clone(), flags, arguments }).await {
        Ok(_) => Ok(true),
        Err(closed) if closed.code() == Some(code::NOT_FOUND) => Ok(false),
        Err(closed) => Err(closed),
    }
}

/// Makes a queue that survives, with these arguments.
pub(super) async fn make(connection: &Connection, queue: &Short, arguments: Table) -> Result<(), Closed> {
    let channel = connection.channel().await?;
    let flags = flags::DURABLE;
    channel.call(&Method::QueueDeclare { reserved: 0, queue: queue.clone(), flags, arguments }).await?;
    Ok(())
}

/// The type of queue whose confirmed messages survive the loss of a node.
pub(super) fn quorum() -> Table {
    Table::default().with("x-queue-type", Field::string("quorum"))
}
