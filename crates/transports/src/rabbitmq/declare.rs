//! Queues: those that are there are taken as they are, those of ours that are missing are made.

use super::amqp::method::{Method, flags};
use super::amqp::table::{Field, Table};
use super::amqp::wire::Short;
use super::amqp::{Closed, Connection, code};
use super::config::BrokerConfig;
use super::dial::Dial;

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
    Ok(depth(connection, queue).await?.is_some())
}

/// How many messages wait in a queue, if there is one.
pub(super) async fn depth(connection: &Connection, queue: &Short) -> Result<Option<u32>, Closed> {
    // The broker ends the channel that asks for what isn't there.
    let channel = connection.channel().await?;
    let (flags, arguments) = (flags::PASSIVE, Table::default());
    match channel.call(&Method::QueueDeclare { reserved: 0, queue: queue.clone(), flags, arguments }).await {
        Ok(Method::QueueDeclareOk { messages, .. }) => Ok(Some(messages)),
        Ok(_) => Ok(Some(0)),
        Err(closed) if closed.code() == Some(code::NOT_FOUND) => Ok(None),
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

/// What takes the dead letters of our own queues: an exchange, and a queue behind it.
pub const DEAD_LETTERS: &str = "redeliver.dead-letters";

/// Makes those of these queues that are missing, as quorum queues whose dead letters are kept; whether each had to be made.
pub async fn init(config: &BrokerConfig, queues: &[String]) -> Result<Vec<(String, bool)>, String> {
    let dial = Dial::new(config, "redeliver queues init".to_owned(), 0)?.ok_or("no broker is configured")?;
    let at = |why: Closed| format!("the broker {}: {why}", dial.broker_name());
    let connection = dial.connection().await.map_err(at)?;
    ensure(&connection, &Short::cut(DEAD_LETTERS)).await.map_err(at)?;
    keep_dead_letters(&connection).await.map_err(at)?;
    let mut all = Vec::new();
    for name in queues {
        let queue = Short::new(name).ok_or_else(|| format!("{name} is too long for a name"))?;
        let is_missing = !exists(&connection, &queue).await.map_err(at)?;
        if is_missing {
            let arguments = quorum().with("x-dead-letter-exchange", Field::string(DEAD_LETTERS));
            make(&connection, &queue, arguments).await.map_err(at)?;
        }
        all.push((name.clone(), is_missing));
    }
    connection.close().await;
    Ok(all)
}

/// Leads from the exchange of dead letters to their queue.
async fn keep_dead_letters(connection: &Connection) -> Result<(), Closed> {
    let channel = connection.channel().await?;
    let name = Short::cut(DEAD_LETTERS);
    let exchange = Method::ExchangeDeclare {
        reserved: 0,
        exchange: name.clone(),
        kind: Short::cut("fanout"),
        flags: flags::DURABLE,
        arguments: Table::default(),
    };
    channel.call(&exchange).await?;
    let bind = Method::QueueBind {
        reserved: 0,
        queue: name.clone(),
        exchange: name,
        routing_key: Short::default(),
        flags: 0,
        arguments: Table::default(),
    };
    channel.call(&bind).await?;
    Ok(())
}

/// The type of queue whose confirmed messages survive the loss of a node.
pub(super) fn quorum() -> Table {
    Table::default().with("x-queue-type", Field::string("quorum"))
}
