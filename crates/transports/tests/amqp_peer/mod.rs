//! A broker that behaves as it is told: it speaks AMQP, and keeps nothing but what it has seen.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test needs a part of it, and fails if it can't go on"
)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use redeliver_conformance::transport::{LATE, Manner, Seen};
use redeliver_servers::free_port;
use redeliver_transports::rabbitmq::amqp::NAME_HEADER;
use redeliver_transports::rabbitmq::amqp::frame::{Frame, put_content, put_method};
use redeliver_transports::rabbitmq::amqp::method::Method;
use redeliver_transports::rabbitmq::amqp::properties::Properties;
use redeliver_transports::rabbitmq::amqp::table::Table;
use redeliver_transports::rabbitmq::amqp::wire::{Long, Short};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

const FRAME_MAX: usize = 131_072;
/// A queue that nobody gets a word about.
pub const LEADERLESS: &str = "leaderless";

/// The broker, and what it has seen.
pub struct Peer {
    address: SocketAddr,
    told: Arc<Told>,
    listening: tokio::sync::Mutex<Option<JoinSet<()>>>,
}

struct Told {
    manner: Mutex<Manner>,
    seen: Mutex<Vec<Seen>>,
    /// What waits for a consumer, whether it was on its way before.
    waiting: Mutex<VecDeque<(bool, Bytes)>>,
    unacknowledged: AtomicUsize,
    /// How many messages its queues are said to hold; none if they are said not to be there.
    depth: Mutex<Option<u32>>,
    /// How many more that ask for what comes get no answer.
    unanswered: AtomicUsize,
    /// How many more callers are treated otherwise, and how.
    odd: AtomicUsize,
    odd_manner: Mutex<Manner>,
    news: Notify,
}

impl Peer {
    pub async fn start() -> Self {
        // It is its own while the peer is away, too.
        let listener = TcpListener::bind(("127.0.0.1", free_port())).await.unwrap();
        let address = listener.local_addr().unwrap();
        let told = Arc::new(Told {
            manner: Mutex::new(Manner::Takes),
            seen: Mutex::default(),
            waiting: Mutex::default(),
            unacknowledged: AtomicUsize::new(0),
            depth: Mutex::new(Some(1)),
            unanswered: AtomicUsize::new(0),
            odd: AtomicUsize::new(0),
            odd_manner: Mutex::new(Manner::Takes),
            news: Notify::new(),
        });
        let listening = tokio::sync::Mutex::new(Some(listen(listener, &told)));
        Self { address, told, listening }
    }

    pub fn url(&self) -> String {
        format!("amqp://guest:guest@{}", self.address)
    }

    pub async fn behave(&self, manner: Manner) {
        *self.told.manner.lock().unwrap() = manner;
        let mut listening = self.listening.lock().await;
        if manner == Manner::Away {
            if let Some(mut tasks) = listening.take() {
                tasks.shutdown().await;
            }
        } else if listening.is_none() {
            *listening = Some(listen(TcpListener::bind(self.address).await.unwrap(), &self.told));
        }
    }

    /// Puts something into its only queue.
    pub fn put(&self, bytes: Bytes) {
        self.told.unacknowledged.fetch_add(1, Ordering::SeqCst);
        self.told.waiting.lock().unwrap().push_back((false, bytes));
        self.told.news.notify_waiters();
        self.told.news.notify_one();
    }

    /// Says from now on that its queues hold so many messages, or that they are not there.
    pub fn hold(&self, depth: Option<u32>) {
        *self.told.depth.lock().unwrap() = depth;
    }

    /// Leaves so many that ask for what comes without an answer.
    pub fn leave_unanswered(&self, count: usize) {
        self.told.unanswered.store(count, Ordering::SeqCst);
    }

    /// Treats the next caller like this for as long as it stays, whatever becomes of others.
    pub fn treat_next(&self, manner: Manner) {
        *self.told.odd_manner.lock().unwrap() = manner;
        self.told.odd.store(1, Ordering::SeqCst);
    }

    /// How many of them are still to come.
    pub fn unanswered(&self) -> usize {
        self.told.unanswered.load(Ordering::SeqCst)
    }

    /// How much of that nobody has acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.told.unacknowledged.load(Ordering::SeqCst)
    }

    pub fn forget(&self) {
        self.told.seen.lock().unwrap().clear();
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.told.seen.lock().unwrap().clone()
    }
}

/// Takes whoever comes, until it is dropped.
fn listen(listener: TcpListener, told: &Arc<Told>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let told = Arc::clone(told);
    tasks.spawn(async move {
        let mut talks = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let told = Arc::clone(&told);
            talks.spawn(async move {
                // Whoever hangs up is gone.
                let _ = Talk::new(socket, told).hold().await;
            });
        }
    });
    tasks
}

/// Whether there are some left, which there is one less of now.
fn is_one_of(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

struct Talk {
    socket: TcpStream,
    /// How it is treated, if otherwise than others.
    manner: Option<Manner>,
    read: BytesMut,
    told: Arc<Told>,
    published: u64,
    consumer: Option<u16>,
    delivered: u64,
    on_their_way: VecDeque<(u64, Bytes)>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        let mut waiting = self.told.waiting.lock().unwrap();
        for (_, bytes) in self.on_their_way.drain(..).rev() {
            waiting.push_front((true, bytes));
        }
    }
}

impl Talk {
    fn new(socket: TcpStream, told: Arc<Told>) -> Self {
        let (read, on_their_way) = Default::default();
        let manner = is_one_of(&told.odd).then(|| *told.odd_manner.lock().unwrap());
        Self { socket, manner, read, told, published: 0, consumer: None, delivered: 0, on_their_way }
    }

    /// Delivers what waits, if somebody asked for it.
    async fn deliver(&mut self) -> std::io::Result<()> {
        let Some(channel) = self.consumer else { return Ok(()) };
        loop {
            let Some((again, bytes)) = self.told.waiting.lock().unwrap().pop_front() else { return Ok(()) };
            self.delivered += 1;
            self.on_their_way.push_back((self.delivered, bytes.clone()));
            let deliver = Method::BasicDeliver {
                consumer: Short::cut("redeliver"),
                tag: self.delivered,
                flags: u8::from(again),
                exchange: Short::default(),
                routing_key: Short::cut("source"),
            };
            let mut out = BytesMut::new();
            put_method(channel, &deliver, &mut out);
            put_content(channel, &Properties::default().head(bytes.len()), &bytes, FRAME_MAX, &mut out);
            self.socket.write_all(&out).await?;
        }
    }

    fn acknowledge(&mut self, tag: u64, multiple: bool) {
        let before = self.on_their_way.len();
        self.on_their_way.retain(|(known, _)| if multiple { *known > tag } else { *known != tag });
        let gone = before - self.on_their_way.len();
        self.told.unacknowledged.fetch_sub(gone, Ordering::SeqCst);
    }

    async fn hold(mut self) -> std::io::Result<()> {
        let mut greeting = [0; 8];
        self.socket.read_exact(&mut greeting).await?;
        self.say(
            0,
            &Method::ConnectionStart {
                major: 0,
                minor: 9,
                properties: Table::default(),
                mechanisms: Long(Bytes::from_static(b"AMQPLAIN PLAIN")),
                locales: Long(Bytes::from_static(b"en_US")),
            },
        )
        .await?;
        let mut coming: Option<(Option<Properties>, u64, BytesMut)> = None;
        loop {
            self.deliver().await?;
            let told = Arc::clone(&self.told);
            let frame = tokio::select! {
                frame = self.hear() => frame?,
                () = told.news.notified(), if self.consumer.is_some() => continue,
            };
            match frame {
                Frame::Method(_, Method::BasicAck { tag, flags }) => self.acknowledge(tag, flags & 1 == 1),
                Frame::Method(channel, method) => {
                    if matches!(method, Method::BasicConsume { .. }) {
                        if is_one_of(&self.told.unanswered) {
                            continue;
                        }
                        self.consumer = Some(channel);
                    }
                    let depth = *self.told.depth.lock().unwrap();
                    let Some(answer) = answer(&method, depth) else {
                        if matches!(method, Method::BasicPublish { .. }) {
                            coming = Some((None, 0, BytesMut::new()));
                        }
                        continue;
                    };
                    self.say(channel, &answer).await?;
                }
                Frame::Head(channel, bytes) => {
                    let (length, properties) = Properties::read_head(bytes).unwrap();
                    coming = Some((properties.ok(), length, BytesMut::new()));
                    self.finish(channel, &mut coming).await?;
                }
                Frame::Body(channel, bytes) => {
                    if let Some((_, _, body)) = &mut coming {
                        body.extend_from_slice(&bytes);
                    }
                    self.finish(channel, &mut coming).await?;
                }
                Frame::Heartbeat => {}
            }
        }
    }

    /// Says what it was told to say about a message, once it is whole.
    async fn finish(
        &mut self,
        channel: u16,
        coming: &mut Option<(Option<Properties>, u64, BytesMut)>,
    ) -> std::io::Result<()> {
        let is_whole = |coming: &mut (_, u64, BytesMut)| coming.1 == coming.2.len() as u64;
        let Some((properties, _, body)) = coming.take_if(is_whole) else { return Ok(()) };
        self.published += 1;
        let attempt_id = properties.and_then(|it| it.header(NAME_HEADER).map(str::to_owned));
        self.told.seen.lock().unwrap().push(Seen { attempt_id, bytes: Some(body.freeze()) });
        let manner = self.manner.unwrap_or(*self.told.manner.lock().unwrap());
        let (tag, flags) = (self.published, 0);
        let word = match manner {
            Manner::Takes => Method::BasicAck { tag, flags },
            Manner::Fails => Method::BasicNack { tag, flags },
            Manner::Refuses => Method::ChannelClose {
                code: 406,
                text: Short::cut("PRECONDITION_FAILED - never"),
                class: 60,
                number: 40,
            },
            Manner::AnswersLate => {
                tokio::time::sleep(LATE).await;
                Method::BasicAck { tag, flags }
            }
            Manner::CutsOff => return Err(std::io::ErrorKind::ConnectionAborted.into()),
            Manner::Silent | Manner::Away => return Ok(()),
        };
        self.say(channel, &word).await
    }

    async fn say(&mut self, channel: u16, method: &Method) -> std::io::Result<()> {
        let mut bytes = BytesMut::new();
        put_method(channel, method, &mut bytes);
        self.socket.write_all(&bytes).await
    }

    async fn hear(&mut self) -> std::io::Result<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.read, FRAME_MAX).unwrap() {
                return Ok(frame);
            }
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// What a broker that means well answers to a method.
fn answer(method: &Method, depth: Option<u32>) -> Option<Method> {
    match method {
        Method::ConnectionStartOk { .. } => {
            Some(Method::ConnectionTune { channel_max: 0, frame_max: FRAME_MAX as u32, heartbeat: 60 })
        }
        Method::ConnectionOpen { .. } => Some(Method::ConnectionOpenOk { reserved: Short::default() }),
        Method::ConnectionClose { .. } => Some(Method::ConnectionCloseOk {}),
        Method::ChannelOpen { .. } => Some(Method::ChannelOpenOk { reserved: Long::default() }),
        Method::ChannelClose { .. } => Some(Method::ChannelCloseOk {}),
        Method::QueueDeclare { queue, .. } if queue.as_str() == LEADERLESS => None,
        Method::QueueDeclare { queue, .. } => {
            let gone = || Method::ChannelClose {
                code: 404,
                text: Short::cut("NOT_FOUND - its home node is down"),
                class: 50,
                number: 10,
            };
            let queue = queue.clone();
            Some(depth.map_or_else(gone, |messages| Method::QueueDeclareOk { queue, messages, consumers: 0 }))
        }
        Method::BasicQos { .. } => Some(Method::BasicQosOk {}),
        Method::BasicConsume { tag, .. } => Some(Method::BasicConsumeOk { tag: tag.clone() }),
        Method::ConfirmSelect { .. } => Some(Method::ConfirmSelectOk {}),
        _ => None,
    }
}
