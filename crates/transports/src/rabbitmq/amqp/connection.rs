//! A connection: one task reads, one writes, and whoever drops the connection ends both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::channel::{Channel, Line};
use super::closed::Closed;
use super::frame::{Frame, put_heartbeat, put_method};
use super::handshake::{Agreed, greet};
use super::in_hand::InHand;
use super::method::Method;
use super::wire::{Malformed, Short};

/// Bytes that go both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How a connection is opened.
#[derive(Clone)]
pub struct Options {
    /// Who we are.
    pub user: String,
    /// Our password.
    pub password: String,
    /// Which of the broker's worlds we want.
    pub virtual_host: String,
    /// What people see us as.
    pub name: String,
    /// How long either side may be silent.
    pub heartbeat: Duration,
    /// Bytes of a body that are kept; of a longer one, the rest is only counted.
    pub body_bytes_max: usize,
}

/// An open connection.
pub struct Connection {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

/// What the tasks and the channels of a connection share.
pub(super) struct Shared {
    pub(super) frame_max: usize,
    body_bytes_max: usize,
    out: Mutex<BytesMut>,
    flush: Notify,
    channels: Mutex<HashMap<u16, Arc<Line>>>,
    blocked: watch::Sender<Option<Arc<str>>>,
    closed: watch::Sender<Option<Closed>>,
}

/// How many channels one connection has at most.
pub(super) const CHANNELS_MAX: u16 = 64;
/// What is read at once.
const READ_BYTES: usize = 65_536;

impl Connection {
    /// Greets and logs in on a stream that was just opened.
    pub async fn open(mut stream: Box<dyn Stream>, options: &Options) -> Result<Self, Closed> {
        let Agreed { frame_max, heartbeat, rest } = greet(&mut *stream, options).await?;
        let shared = Arc::new(Shared {
            frame_max,
            body_bytes_max: options.body_bytes_max,
            out: Mutex::default(),
            flush: Notify::new(),
            channels: Mutex::default(),
            blocked: watch::Sender::new(None),
            closed: watch::Sender::new(None),
        });
        let (reading, writing) = tokio::io::split(stream);
        let tasks = [
            tokio::spawn(read(Arc::clone(&shared), reading, rest, heartbeat)),
            tokio::spawn(write(Arc::clone(&shared), writing, heartbeat)),
        ];
        Ok(Self { shared, tasks })
    }

    /// Opens a channel.
    pub async fn channel(&self) -> Result<Channel, Closed> {
        let line = {
            let mut channels = lock(&self.shared.channels);
            let free = (1..=CHANNELS_MAX).find(|number| !channels.contains_key(number));
            let number = free.ok_or(Closed::Broken("no channel is left".into()))?;
            let line = Arc::new(Line::new(number, self.shared.body_bytes_max));
            channels.insert(number, Arc::clone(&line));
            line
        };
        let channel = Channel::new(Arc::clone(&self.shared), line);
        // A connection that ended before the channel was in the list has not told it so.
        if let Some(closed) = self.closed() {
            return Err(closed);
        }
        channel.call(&Method::ChannelOpen { reserved: Short::default() }).await?;
        Ok(channel)
    }

    /// Why it is no more, if it isn't.
    pub fn closed(&self) -> Option<Closed> {
        self.shared.closed.borrow().clone()
    }

    /// Why the broker takes nothing more for now, if it doesn't.
    pub fn blocked(&self) -> Option<Arc<str>> {
        self.shared.blocked.borrow().clone()
    }

    /// Says goodbye and waits until the broker has heard it.
    pub async fn close(self) {
        let goodbye = Method::ConnectionClose { code: 200, text: Short::cut("goodbye"), class: 0, number: 0 };
        self.shared.say(0, &goodbye);
        let mut closed = self.shared.closed.subscribe();
        // The only error is that the sender is gone, and it is held here.
        let _ = closed.wait_for(Option::is_some).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.end(&Closed::Ours);
    }
}

impl Shared {
    /// Puts a method on its way.
    pub(super) fn say(&self, channel: u16, method: &Method) {
        self.put(|out| put_method(channel, method, out));
    }

    /// Puts something on its way.
    pub(super) fn put(&self, write: impl FnOnce(&mut BytesMut)) {
        write(&mut lock(&self.out));
        self.flush.notify_one();
    }

    /// Why the connection is no more, if it isn't.
    pub(super) fn closed(&self) -> Option<Closed> {
        self.closed.borrow().clone()
    }

    pub(super) fn forget(&self, channel: u16) {
        lock(&self.channels).remove(&channel);
    }

    /// Ends everything on this connection. The first reason is the one that counts.
    fn end(&self, why: &Closed) {
        self.closed.send_if_modified(|closed| match closed {
            Some(_) => false,
            None => {
                *closed = Some(why.clone());
                true
            }
        });
        for line in lock(&self.channels).values() {
            line.end(why);
        }
        self.flush.notify_one();
    }

    /// Hears a frame, and says whose hands are full now.
    fn hear(&self, frame: Frame) -> Result<Option<Arc<InHand>>, Closed> {
        match frame {
            Frame::Heartbeat => Ok(None),
            Frame::Method(0, method) => self.hear_of_connection(method).map(|()| None),
            // The number may be used again.
            Frame::Method(number, Method::ChannelCloseOk {}) => {
                self.forget(number);
                Ok(None)
            }
            Frame::Method(number, Method::ChannelClose { code, text, .. }) => {
                // Before anybody hears of it: whoever does may open a channel of this number at once, and a broker is deaf
                // to that until it has this answer.
                self.say(number, &Method::ChannelCloseOk {});
                if let Some(line) = self.line(number) {
                    line.end(&Closed::said(code, text.as_str()));
                }
                Ok(None)
            }
            Frame::Method(number, method) => {
                // What is still on its way to a channel that is gone says nothing to anybody.
                let Some(line) = self.line(number) else { return Ok(None) };
                if let Some(answer) = line.hear(method)? {
                    self.say(number, &answer);
                }
                Ok(None)
            }
            Frame::Head(number, bytes) => match self.line(number) {
                Some(line) => Ok(line.hear_head(bytes)?),
                None => Ok(None),
            },
            Frame::Body(number, bytes) => match self.line(number) {
                Some(line) => Ok(line.hear_body(&bytes)?),
                None => Ok(None),
            },
        }
    }

    fn hear_of_connection(&self, method: Method) -> Result<(), Closed> {
        match method {
            Method::ConnectionBlocked { reason } => {
                self.blocked.send_replace(Some(reason.as_str().into()));
                Ok(())
            }
            Method::ConnectionUnblocked {} => {
                self.blocked.send_replace(None);
                Ok(())
            }
            Method::ConnectionClose { code, text, .. } => {
                self.say(0, &Method::ConnectionCloseOk {});
                Err(Closed::said(code, text.as_str()))
            }
            Method::ConnectionCloseOk {} => Err(Closed::Ours),
            _ => Err(Malformed("a method that belongs on a channel").into()),
        }
    }

    fn line(&self, number: u16) -> Option<Arc<Line>> {
        lock(&self.channels).get(&number).cloned()
    }
}

async fn read(
    shared: Arc<Shared>,
    mut stream: ReadHalf<Box<dyn Stream>>,
    mut bytes: BytesMut,
    heartbeat: Option<Duration>,
) {
    let why = loop {
        match Frame::take(&mut bytes, shared.frame_max) {
            Ok(Some(frame)) => match shared.hear(frame) {
                Ok(None) => continue,
                Ok(Some(in_hand)) => {
                    in_hand.has_room().await;
                    continue;
                }
                Err(why) => break why,
            },
            Ok(None) => {}
            Err(malformed) => break malformed.into(),
        }
        bytes.reserve(READ_BYTES);
        // Two beats that were missed are a silence.
        let patience = heartbeat.map_or(Duration::MAX, |beat| beat * 2);
        match tokio::time::timeout(patience, stream.read_buf(&mut bytes)).await {
            Ok(Ok(0)) => break Closed::Broken("the broker hung up".into()),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => break error.into(),
            Err(_) => break Closed::Silent,
        }
    };
    shared.end(&why);
}

async fn write(shared: Arc<Shared>, mut stream: WriteHalf<Box<dyn Stream>>, heartbeat: Option<Duration>) {
    let pause = heartbeat.map_or(Duration::MAX, |beat| beat / 2);
    loop {
        let bytes = lock(&shared.out).split();
        if bytes.is_empty() {
            if shared.closed().is_some() {
                break;
            }
            if tokio::time::timeout(pause, shared.flush.notified()).await.is_err() {
                shared.put(put_heartbeat);
            }
            continue;
        }
        let written = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        if let Err(error) = written.await {
            shared.end(&error.into());
            break;
        }
    }
    // Whoever is gone already has nothing to be told.
    let _ = stream.shutdown().await;
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
