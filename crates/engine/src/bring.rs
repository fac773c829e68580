//! Brings what the source of an intake holds to the sink: each as the message that it says, or kept as dead with what is
//! wrong with it. Knows no source.

use std::sync::Arc;

use bytes::Bytes;
use redeliver_core::accept::NewMessage;
use redeliver_core::{Content, Failure, Name, identity};

use crate::aside;
use crate::clock::Clock;
use crate::intake::{Accepted, Sink};
use crate::parts::{Part, Parts};

/// Makes a message of bytes, or says what is wrong with them.
pub type ReadMessage = Arc<dyn Fn(&[u8]) -> Result<NewMessage, String> + Send + Sync>;

/// One thing that a source holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// What it is.
    pub bytes: Bytes,
    /// Which intake read it, and where in its source it stands ([`identity::of_place`]): the key of a message that has
    /// none, so that bringing it again is bringing the same.
    pub place: Arc<str>,
}

/// Brings the inputs of one intake.
pub struct Bring {
    /// The intake.
    pub name: Name,
    /// How a message is made of an input.
    pub read: ReadMessage,
    /// The route on which input is kept, as dead, that nobody can make a message of.
    pub rejects: Name,
    /// The largest input; what is larger is kept as dead, cut to this.
    pub bytes_max: usize,
    /// Whose time counts.
    pub clock: Arc<dyn Clock>,
}

impl Bring {
    /// Brings a batch until the sink has all of it, and ends only then.
    pub async fn bring(&self, sink: &dyn Sink, inputs: &[Input]) {
        let bytes = inputs.iter().map(|input| input.bytes.len()).sum();
        let messages =
            aside::run(bytes, || inputs.iter().map(|input| (input, self.message(input))).collect());
        self.keep(sink, messages).await;
    }

    /// Brings what was made of inputs until the sink has all of it, or of what it doesn't want, word of that.
    pub(crate) async fn keep(&self, sink: &dyn Sink, mut left: Vec<(&Input, NewMessage)>) {
        while !left.is_empty() {
            let answers = self.insist(sink, &left).await;
            left = self.unwanted(left, answers);
        }
    }

    /// Brings messages until the sink has answered for each, or for word of what it can't take.
    async fn insist(&self, sink: &dyn Sink, messages: &[(&Input, NewMessage)]) -> Vec<Accepted> {
        let mut parts = Parts::of(messages.len());
        let mut answers = Vec::with_capacity(messages.len());
        while let Some(part) = parts.next_part() {
            let brought = match &part {
                Part::AsItIs(range) => {
                    messages[range.clone()].iter().map(|(_, message)| message.clone()).collect()
                }
                Part::SetAside { index, why } => vec![self.set_aside(messages[*index].0, why)],
            };
            match sink.accept(brought).await {
                Ok(all) => {
                    parts.taken();
                    answers.extend(all);
                }
                Err(error) => {
                    if let Some(wait) = parts.failed(part, &error) {
                        tracing::warn!(
                            event = "intake.delayed", intake = %self.name, error = %error,
                            "the store does not take what came: it is brought again"
                        );
                        self.clock.sleep(wait).await;
                    }
                }
            }
        }
        answers
    }

    /// What has no route, or a key that is another's, is kept as dead instead.
    fn unwanted<'a>(
        &self,
        brought: Vec<(&'a Input, NewMessage)>,
        answers: Vec<Accepted>,
    ) -> Vec<(&'a Input, NewMessage)> {
        let mut unwanted = Vec::new();
        for ((input, message), answer) in brought.into_iter().zip(answers) {
            if message.is_refused {
                if let Some(why) = answer.why_dropped(&self.rejects) {
                    tracing::error!(event = "intake.dropped", intake = %self.name, "{why}: it is gone");
                }
                continue;
            }
            let why = match answer {
                Accepted::New(_) | Accepted::Reentered(_) | Accepted::Duplicate(_) => continue,
                Accepted::NoRoute => format!("there is no route {}", message.route),
                Accepted::Conflict(id) => {
                    format!("its key is known for another content, that of message {id}")
                }
            };
            tracing::warn!(
                event = "input.refused", intake = %self.name, place = %input.place,
                "input that goes nowhere is kept as dead, with the reason"
            );
            unwanted.push((input, self.refused(input, message.content, why)));
        }
        unwanted
    }

    fn message(&self, input: &Input) -> NewMessage {
        match self.within_limit(input).and_then(|()| (self.read)(&input.bytes)) {
            Ok(message) => {
                NewMessage { key: message.key.clone().or_else(|| Some(input.place.clone())), ..message }
            }
            Err(why) => self.unreadable(input, why),
        }
    }

    /// An error if an input is too large to be read.
    pub(crate) fn within_limit(&self, input: &Input) -> Result<(), String> {
        match input.bytes.len() > self.bytes_max {
            true => Err(format!("it has more than {} bytes", self.bytes_max)),
            false => Ok(()),
        }
    }

    /// Input that nobody can read, as it is kept instead.
    pub(crate) fn unreadable(&self, input: &Input, why: String) -> NewMessage {
        // What is wrong may repeat a part of the input: it is for whoever may see the message.
        tracing::warn!(
            event = "input.refused", intake = %self.name, place = %input.place,
            "input that nobody can read is kept as dead, with what is wrong with it"
        );
        self.refused(input, self.as_it_came(input), why)
    }

    /// Input that the store can't take as the message that it says, as it is kept instead.
    pub(crate) fn set_aside(&self, input: &Input, why: &str) -> NewMessage {
        tracing::warn!(
            event = "input.refused", intake = %self.name, place = %input.place,
            "input that the store cannot take is kept as dead: {why}"
        );
        self.refused(input, self.as_it_came(input), format!("the store cannot take it: {why}"))
    }

    fn as_it_came(&self, input: &Input) -> Content {
        Content::of_bytes(input.bytes.slice(..input.bytes.len().min(self.bytes_max)))
    }

    /// Input as it is kept for people.
    fn refused(&self, input: &Input, content: Content, why: String) -> NewMessage {
        NewMessage {
            key: Some(identity::of_refused(&input.place, &content, &self.rejects)),
            error: Some(Failure::new(why).with_code("BAD_INPUT")),
            is_refused: true,
            ..NewMessage::new(Arc::clone(&self.rejects), content)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use async_trait::async_trait;
    use redeliver_core::report::Report;
    use redeliver_core::{MessageId, Timestamp};

    use super::*;
    use crate::clock::WallClock;
    use crate::intake::Told;
    use crate::store::StoreError;

    struct Takes;

    #[async_trait]
    impl Sink for Takes {
        async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
            Ok(vec![Accepted::New(MessageId::own(1)); batch.len()])
        }

        async fn report(&self, _: Vec<Report>) -> Result<Vec<Told>, StoreError> {
            Ok(Vec::new())
        }
    }

    /// Inputs of so many bytes each, of which reading the first waits for another task of the only thread.
    async fn reads_aside(sizes: &[usize]) {
        let (tell, told) = channel();
        let told = Mutex::new(Some(told));
        let read = move |_: &[u8]| {
            if let Some(told) = told.lock().unwrap().take() {
                told.recv().unwrap();
            }
            Ok(NewMessage::new("retry", Content::default()))
        };
        let bring = Bring {
            name: "source".into(),
            read: Arc::new(read),
            rejects: "rejects".into(),
            bytes_max: 16 * 1_048_576,
            clock: WallClock::new(Timestamp::default()),
        };
        let input = |bytes: usize| Input { bytes: vec![b' '; bytes].into(), place: "source:1".into() };
        let inputs: Vec<Input> = sizes.iter().map(|bytes| input(*bytes)).collect();
        let bringing = tokio::spawn(async move {
            // Spawned on the same thread: it can only run if that is given away.
            tokio::spawn(async move { tell.send(()).unwrap() });
            bring.bring(&Takes, &inputs).await;
        });
        bringing.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_a_large_input_is_read_on_the_only_thread() {
        reads_aside(&[16 * 1_048_576]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_many_small_inputs_are_read_on_the_only_thread() {
        reads_aside(&[1_000; 100]).await;
    }
}
