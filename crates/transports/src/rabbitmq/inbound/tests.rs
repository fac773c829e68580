//! What an intake brings again, sets aside, and makes.

use std::sync::Mutex;

use super::super::amqp::Weight;
use super::super::amqp::properties::Properties;
use super::retry_message::RetryMessage;
use super::*;
use prost::Message as _;
use redeliver_core::report::Report;
use redeliver_core::{MessageId, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::intake::Told;

/// Fails at first as it is told, the last one first, and remembers who was said to come again.
#[derive(Default)]
struct Failing {
    errors: Mutex<Vec<StoreError>>,
    redelivered: Mutex<Vec<Vec<bool>>>,
}

#[async_trait]
impl Sink for Failing {
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let again = |new: &NewMessage| new.source == Source::Broker { redelivered: true };
        self.redelivered.lock().unwrap().push(batch.iter().map(again).collect());
        match self.errors.lock().unwrap().pop() {
            Some(error) => Err(error),
            None => Ok(vec![Accepted::New(MessageId::own(1)); batch.len()]),
        }
    }

    async fn report(&self, _: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        Ok(Vec::new())
    }
}

/// A batch of so many, none of which the broker says to have brought before.
fn batch(intake: &RabbitmqIntake, count: u64) -> Batch {
    let delivery = |tag: u64| Delivery {
        tag,
        redelivered: false,
        properties: Ok(Properties::default()),
        body: RetryMessage {
            message_id: format!("m-{tag}"),
            original_queue: "orders".to_owned(),
            ..RetryMessage::default()
        }
        .encode_to_vec()
        .into(),
        body_bytes: 0,
        weight: Weight::default(),
    };
    let deliveries: Vec<Delivery> = (1..=count).map(delivery).collect();
    let messages: Vec<NewMessage> =
        deliveries.iter().map(|delivery| intake.message(delivery, intake.clock.now())).collect();
    let queues = messages.iter().map(scheduled_for).collect();
    Batch { deliveries, messages, queues }
}

fn intake() -> RabbitmqIntake {
    let config = RabbitmqIntakeConfig { route: "retry".into(), ..RabbitmqIntakeConfig::default() };
    RabbitmqIntake::new("retry", config, WallClock::new(Timestamp::default())).unwrap()
}

#[tokio::test]
async fn only_what_the_store_may_have_is_said_to_come_again() {
    let away = || StoreError::Unavailable("no answer".to_owned());
    let unfit = || StoreError::Unfit("a NUL character".to_owned());
    for (errors, brought) in [
        (vec![], vec![vec![false, false]]),
        (vec![away()], vec![vec![false, false], vec![true, true]]),
        // One of them was at fault, so that the store has neither.
        (vec![unfit()], vec![vec![false, false], vec![false], vec![false]]),
        (vec![unfit(), away()], vec![vec![false, false], vec![false], vec![true], vec![false]]),
        (vec![away(), unfit()], vec![vec![false, false], vec![true, true], vec![true], vec![true]]),
        // What is set aside comes again, too, if nobody knows whether it is kept.
        (
            vec![unfit(), unfit(), away()],
            vec![vec![false, false], vec![false], vec![false], vec![true], vec![false]],
        ),
    ] {
        let (intake, sink) = (intake(), Failing::default());
        *sink.errors.lock().unwrap() = errors.into_iter().rev().collect();
        assert_eq!(intake.accept(&sink, batch(&intake, 2)).await, 2);
        assert_eq!(*sink.redelivered.lock().unwrap(), brought);
    }
}

#[test]
fn a_queue_that_is_not_to_be_made_is_not_among_those_that_are() {
    let ours = |declare| {
        let config = RabbitmqIntakeConfig {
            queue: "retry.scheduled".to_owned(),
            queues: vec!["manual-review.pending".to_owned()],
            declare,
            ..RabbitmqIntakeConfig::default()
        };
        let intake = RabbitmqIntake::new("retry", config, WallClock::new(Timestamp::default())).unwrap();
        intake.ours.iter().map(|queue| queue.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ours(true), ["manual-review.pending", "retry.scheduled"]);
    assert_eq!(ours(false), ["manual-review.pending"]);
}
