//! A channel: publishing with a word on every message, consuming, and the questions that wait for an answer.

use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, oneshot};

use super::closed::Closed;
use super::confirms::{Confirm, Confirms};
use super::connection::{Shared, lock};
use super::frame::{FRAME_OVERHEAD_BYTES, put_content, put_method};
use super::in_hand::{InHand, Weight};
use super::method::{Method, flags};
use super::properties::Properties;
use super::table::Table;
use super::wire::{Malformed, Short};

/// The header by which a message that comes back is known.
pub const NAME_HEADER: &str = "x-redeliver-attempt-id";

/// An open channel. It is gone with the last hand on it.
pub struct Channel {
    shared: Arc<Shared>,
    line: Arc<Line>,
}

/// A message that a queue had for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number on this channel, for the acknowledgement.
    pub tag: u64,
    /// Whether the broker says that it was on its way before.
    pub redelivered: bool,
    /// What came with it, if it could be read.
    pub properties: Result<Properties, Malformed>,
    /// Its body, or the beginning of one that is too long.
    pub body: Bytes,
    /// How long the body was.
    pub body_bytes: u64,
    /// Keeps its place among what is in hand.
    pub weight: Weight,
}

/// How much may come before something of it is done with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Messages that were not acknowledged.
    pub prefetch: u16,
    /// Bytes of the heads and bodies of deliveries that have not been dropped; beyond that nothing more is read.
    pub in_hand_bytes_max: usize,
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Address {
    /// The exchange; the default one has an empty name and leads to the queue of the key's name.
    pub exchange: Short,
    /// The routing key.
    pub routing_key: Short,
}

impl Channel {
    pub(super) fn new(shared: Arc<Shared>, line: Arc<Line>) -> Self {
        Self { shared, line }
    }

    /// Asks something, and waits for the answer. One question at a time.
    pub async fn call(&self, method: &Method) -> Result<Method, Closed> {
        let (tell, told) = oneshot::channel();
        {
            let mut state = lock(&self.line.state);
            if let Some(closed) = self.why_closed(&state) {
                return Err(closed);
            }
            state.reply = Some(tell);
            self.shared.say(self.line.number, method);
        }
        told.await.map_err(|_| self.closed().unwrap_or(Closed::Ours))
    }

    /// Has the broker speak about every message from now on.
    pub async fn confirm(&self) -> Result<(), Closed> {
        self.call(&Method::ConfirmSelect { flags: 0 }).await.map(drop)
    }

    /// Puts a message on its way: it comes back if it leads nowhere. What the broker says about it comes to the
    /// receiver, or nothing, if the channel ends first. The name stands in the head's header [`NAME_HEADER`].
    pub fn publish(
        &self,
        address: &Address,
        name: Arc<str>,
        head: &[u8],
        body: &[u8],
    ) -> Result<oneshot::Receiver<Confirm>, Closed> {
        let mut state = lock(&self.line.state);
        if let Some(closed) = self.why_closed(&state) {
            return Err(closed);
        }
        let told = state.confirms.publish(name);
        let method = Method::BasicPublish {
            reserved: 0,
            exchange: address.exchange.clone(),
            routing_key: address.routing_key.clone(),
            flags: flags::MANDATORY,
        };
        // The numbers of messages are given by the order in which they are written.
        self.shared.put(|out| {
            put_method(self.line.number, &method, out);
            put_content(self.line.number, head, body, self.shared.frame_max, out);
        });
        Ok(told)
    }

    /// Messages that the broker has not spoken about; once it is no more, those that it never spoke about.
    pub fn unconfirmed(&self) -> usize {
        let state = lock(&self.line.state);
        state.left_behind.max(state.confirms.count())
    }

    /// The largest head of a content that can be sent.
    pub fn head_bytes_max(&self) -> usize {
        self.shared.frame_max.saturating_sub(FRAME_OVERHEAD_BYTES)
    }

    /// Asks for what comes to a queue, so much at a time. Nothing more comes once the channel or the queue is gone.
    pub async fn consume(
        &self,
        queue: &Short,
        flow: Flow,
    ) -> Result<mpsc::UnboundedReceiver<Delivery>, Closed> {
        let Flow { prefetch, in_hand_bytes_max } = flow;
        // No broker of ours knows a prefetch in bytes.
        self.call(&Method::BasicQos { prefetch_bytes: 0, prefetch, flags: 0 }).await?;
        // No more than the prefetch is ever on its way.
        let (deliver, deliveries) = mpsc::unbounded_channel();
        lock(&self.line.state).deliver = Some((deliver, InHand::new(in_hand_bytes_max)));
        let tag = Short::cut("redeliver");
        let arguments = Table::default();
        self.call(&Method::BasicConsume { reserved: 0, queue: queue.clone(), tag, flags: 0, arguments })
            .await?;
        Ok(deliveries)
    }

    /// Acknowledges this delivery alone.
    pub fn ack(&self, tag: u64) {
        self.shared.say(self.line.number, &Method::BasicAck { tag, flags: 0 });
    }

    /// Acknowledges this delivery and all before it.
    pub fn ack_up_to(&self, tag: u64) {
        self.shared.say(self.line.number, &Method::BasicAck { tag, flags: flags::MULTIPLE });
    }

    /// Why it is no more, if it isn't.
    pub fn closed(&self) -> Option<Closed> {
        self.why_closed(&lock(&self.line.state))
    }

    fn why_closed(&self, state: &State) -> Option<Closed> {
        state.closed.clone().or_else(|| self.shared.closed())
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let open = lock(&self.line.state).closed.is_none() && self.shared.closed().is_none();
        if open {
            // The number is free again when the broker has answered, which is heard by the line.
            let close = Method::ChannelClose { code: 200, text: Short::default(), class: 0, number: 0 };
            self.line.end(&Closed::Ours);
            self.shared.say(self.line.number, &close);
        } else {
            self.shared.forget(self.line.number);
        }
    }
}

/// A channel as the reader of its connection knows it.
pub(super) struct Line {
    number: u16,
    body_bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: Option<Closed>,
    reply: Option<oneshot::Sender<Method>>,
    confirms: Confirms,
    left_behind: usize,
    coming: Option<Coming>,
    deliver: Option<(mpsc::UnboundedSender<Delivery>, Arc<InHand>)>,
}

/// A content that has not come whole.
struct Coming {
    method: Method,
    head: Option<(u64, Result<Properties, Malformed>)>,
    head_bytes: usize,
    body: BytesMut,
    read_bytes: u64,
}

impl Line {
    pub(super) fn new(number: u16, body_bytes_max: usize) -> Self {
        Self { number, body_bytes_max, state: Mutex::default() }
    }

    /// Nothing more comes, for this reason.
    pub(super) fn end(&self, why: &Closed) {
        let mut state = lock(&self.state);
        if state.closed.is_none() {
            state.closed = Some(why.clone());
        }
        state.reply = None;
        state.left_behind = state.left_behind.max(state.confirms.count());
        state.confirms.end();
        state.deliver = None;
        state.coming = None;
    }

    /// Hears a method, and says what must be answered at once.
    pub(super) fn hear(&self, method: Method) -> Result<Option<Method>, Malformed> {
        if let Method::ChannelFlow { active } = method {
            return Ok(Some(Method::ChannelFlowOk { active }));
        }
        let mut state = lock(&self.state);
        if state.closed.is_some() {
            // It was on its way when we closed.
            return Ok(None);
        }
        match method {
            Method::BasicAck { tag, flags } => {
                state.confirms.on_word(tag, flags & flags::MULTIPLE != 0, &Confirm::Taken)?;
            }
            Method::BasicNack { tag, flags } => {
                state.confirms.on_word(tag, flags & flags::MULTIPLE != 0, &Confirm::NotTaken)?;
            }
            Method::BasicDeliver { .. } | Method::BasicReturn { .. } | Method::BasicGetOk { .. } => {
                if state.coming.is_some() {
                    return Err(Malformed("a content within a content"));
                }
                let body = BytesMut::new();
                state.coming = Some(Coming { method, head: None, head_bytes: 0, body, read_bytes: 0 });
            }
            // The queue is gone.
            Method::BasicCancel { .. } => state.deliver = None,
            answer => {
                let tell = state.reply.take().ok_or(Malformed("an answer to nothing"))?;
                // Whoever asked may be gone.
                let _ = tell.send(answer);
            }
        }
        Ok(None)
    }

    /// Hears the head of a content, and says whose hands are full now.
    pub(super) fn hear_head(&self, bytes: Bytes) -> Result<Option<Arc<InHand>>, Malformed> {
        let mut state = lock(&self.state);
        if state.closed.is_some() {
            return Ok(None);
        }
        let coming = state.coming.as_mut().ok_or(Malformed("a content of nothing"))?;
        if coming.head.is_some() {
            return Err(Malformed("two heads of one content"));
        }
        coming.head_bytes = bytes.len();
        coming.head = Some(Properties::read_head(bytes)?);
        state.finish()
    }

    /// Hears a part of the body of a content, and says whose hands are full now.
    pub(super) fn hear_body(&self, bytes: &[u8]) -> Result<Option<Arc<InHand>>, Malformed> {
        let mut state = lock(&self.state);
        if state.closed.is_some() {
            return Ok(None);
        }
        let coming = state.coming.as_mut().ok_or(Malformed("a content of nothing"))?;
        let Some((length, _)) = &coming.head else { return Err(Malformed("a body without a head")) };
        coming.read_bytes += bytes.len() as u64;
        if coming.read_bytes > *length {
            return Err(Malformed("a body is longer than was said"));
        }
        let room = self.body_bytes_max.saturating_sub(coming.body.len());
        coming.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        state.finish()
    }
}

impl State {
    /// Passes a content on if it is whole, and says whose hands are full then.
    fn finish(&mut self) -> Result<Option<Arc<InHand>>, Malformed> {
        let is_whole = |coming: &mut Coming| {
            coming.head.as_ref().is_some_and(|(length, _)| coming.read_bytes == *length)
        };
        let Some(coming) = self.coming.take_if(is_whole) else { return Ok(None) };
        let (body_bytes, properties) = coming.head.ok_or(Malformed("a body without a head"))?;
        match coming.method {
            Method::BasicReturn { code, text, .. } => {
                let properties = properties?;
                let name = properties.header(NAME_HEADER);
                let name = name.ok_or(Malformed("a message came back that nobody sent"))?;
                self.confirms.on_return(name, code, text.as_str().into())?;
                Ok(None)
            }
            Method::BasicDeliver { tag, flags, .. } => {
                let redelivered = flags & flags::REDELIVERED != 0;
                let body = coming.body.freeze();
                let Some((deliver, in_hand)) = &self.deliver else { return Ok(None) };
                let weight = in_hand.take(coming.head_bytes + body.len());
                // Whoever is gone closes the channel, and the broker delivers it again.
                let _ = deliver.send(Delivery { tag, redelivered, properties, body, body_bytes, weight });
                Ok(in_hand.is_full().then(|| Arc::clone(in_hand)))
            }
            _ => Ok(None),
        }
    }
}
