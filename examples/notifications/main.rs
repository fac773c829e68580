//! Notifications that failed, retried by priority through Redis and Kafka until they arrive or are given up.
//!
//! `make demo-notifications` runs the whole loop on this machine: a Redis, a Kafka cluster, a device service, Redeliver
//! with its profile `notifications`, and a processor of notifications, which is the worker beside this file.
//! `KAFKA_BROKERS` names another cluster, which has the topics. With servers of your own, the worker alone:
//! `REDIS_URL=redis://… KAFKA_BROKERS=… cargo run -p redeliver-cli --example notifications -- worker`.

mod demo;
mod devices;
mod worker;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use redeliver_servers::kafka::KafkaCluster;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["demo", redeliver] => {
            let own = KafkaCluster::start_with_topics(&demo::TOPICS);
            let brokers = std::env::var("KAFKA_BROKERS").unwrap_or_else(|_| own.brokers().to_owned());
            demo::run(Path::new(redeliver), &brokers, &mut std::io::stdout())
        }
        ["worker"] => {
            let (redis_url, brokers) = (std::env::var("REDIS_URL")?, std::env::var("KAFKA_BROKERS")?);
            worker::run(&redis_url, &brokers, &AtomicBool::new(false));
            Ok(())
        }
        _ => Err("notifications demo PATH_OF_REDELIVER | notifications worker".into()),
    }
}
