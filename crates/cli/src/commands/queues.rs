//! `redeliver queues init`: makes the queues that a config calls ours, where they are missing.

use std::collections::BTreeSet;

use anyhow::{Context, anyhow};
use redeliver_transports::rabbitmq::{BrokerConfig, init};

use super::{load_config, print};
use crate::args::QueuesCommand;
use crate::config::{Config, IntakeConfig, TransportConfig};
use crate::wire::dead_letter_queues;

pub(super) fn run(command: &QueuesCommand) -> anyhow::Result<()> {
    let QueuesCommand::Init { config } = command;
    let config = load_config(config)?.config;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start threads")?;
    let mut text = String::new();
    for (broker, queues) in ours(&config) {
        let made = runtime.block_on(init(&broker, &queues)).map_err(|wrong| anyhow!("{wrong}"))?;
        for (queue, was_made) in made {
            let word = if was_made { "made" } else { "there already, left as it is" };
            text += &format!("{queue}: {word}\n");
        }
    }
    if text.is_empty() {
        text = "the config names no queue of ours\n".to_owned();
    }
    print(&text)
}

/// The queues that nobody else would make, by broker: those that are taken from, and those of dead letters.
fn ours(config: &Config) -> Vec<(BrokerConfig, Vec<String>)> {
    let mut all: Vec<(BrokerConfig, BTreeSet<String>)> = Vec::new();
    let mut add = |broker: &BrokerConfig, queues: Vec<String>| match all
        .iter_mut()
        .find(|(known, _)| known == broker)
    {
        Some((_, known)) => known.extend(queues),
        None => all.push((broker.clone(), queues.into_iter().collect())),
    };
    for intake in config.intakes.values() {
        match intake {
            IntakeConfig::Rabbitmq(intake) => add(&intake.broker, vec![intake.queue.clone()]),
            // Topics are made by those who know how many partitions they want.
            #[cfg(feature = "kafka")]
            IntakeConfig::Kafka(_) => {}
            // A stream is made by whoever reads it.
            #[cfg(feature = "redis")]
            IntakeConfig::Redis(_) => {}
        }
    }
    for (name, transport) in &config.transports {
        if let TransportConfig::Rabbitmq(transport) = transport {
            add(&transport.broker, dead_letter_queues(name, config));
        }
    }
    all.into_iter()
        .filter(|(broker, queues)| broker.broker.is_some() && !queues.is_empty())
        .map(|(broker, queues)| (broker, queues.into_iter().collect()))
        .collect()
}
