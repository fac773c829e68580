//! A server that behaves as it is told: it speaks Redis, and keeps nothing but what it has seen.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test needs a part of it, and fails if it can't go on"
)]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use redeliver_conformance::transport::{LATE, Manner, Seen};
use redeliver_servers::free_port;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The server, and what it has seen.
pub struct Peer {
    port: u16,
    told: Arc<Told>,
    listening: tokio::sync::Mutex<Option<JoinSet<()>>>,
}

struct Told {
    manner: Mutex<Manner>,
    /// What it answers instead to whatever is written, if anything.
    answer: Option<&'static [u8]>,
    seen: Mutex<Vec<Seen>>,
}

impl Peer {
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// One that answers this to whatever is written, and hangs up.
    pub async fn answering(answer: &'static [u8]) -> Self {
        Self::start_with(Some(answer)).await
    }

    async fn start_with(answer: Option<&'static [u8]>) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let told = Arc::new(Told { manner: Mutex::new(Manner::Takes), answer, seen: Mutex::default() });
        let listening = tokio::sync::Mutex::new(Some(listen(listener, &told)));
        Self { port, told, listening }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub async fn behave(&self, manner: Manner) {
        *self.told.manner.lock().unwrap() = manner;
        let mut listening = self.listening.lock().await;
        if manner == Manner::Away {
            if let Some(mut tasks) = listening.take() {
                tasks.shutdown().await;
            }
        } else if listening.is_none() {
            let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
            *listening = Some(listen(listener, &self.told));
        }
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
                let _ = talk(BufReader::new(socket), &told).await;
            });
        }
    });
    tasks
}

async fn talk(mut socket: BufReader<TcpStream>, told: &Told) -> std::io::Result<()> {
    loop {
        let words = command(&mut socket).await?;
        let manner = *told.manner.lock().unwrap();
        let answer: &[u8] = match (words[0].as_ref(), told.answer) {
            (b"XADD", Some(answer)) => {
                socket.write_all(answer).await?;
                return Ok(());
            }
            (b"XADD", None) => {
                let fields: Vec<&[Bytes]> = words[3..].chunks(2).collect();
                let field =
                    |name: &str| fields.iter().find(|pair| pair[0] == name).map(|pair| pair[1].clone());
                told.seen.lock().unwrap().push(Seen {
                    attempt_id: field("attempt_id").map(|id| String::from_utf8_lossy(&id).into_owned()),
                    bytes: field("payload"),
                });
                match manner {
                    Manner::AnswersLate => {
                        tokio::time::sleep(LATE).await;
                        b"$3\r\n1-1\r\n"
                    }
                    Manner::CutsOff => return Ok(()),
                    Manner::Takes => b"$3\r\n1-1\r\n",
                    Manner::Fails => {
                        b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
                    }
                    Manner::Refuses => b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
                    Manner::Silent | Manner::Away => b"",
                }
            }
            _ if manner == Manner::Silent => b"",
            _ => b"+OK\r\n",
        };
        socket.write_all(answer).await?;
        socket.flush().await?;
    }
}

/// The words of the next command.
async fn command(socket: &mut BufReader<TcpStream>) -> std::io::Result<Vec<Bytes>> {
    let count = number(socket, '*').await?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(socket, '$').await? + 2];
        socket.read_exact(&mut word).await?;
        word.truncate(word.len() - 2);
        words.push(Bytes::from(word));
    }
    Ok(words)
}

async fn number(socket: &mut BufReader<TcpStream>, sign: char) -> std::io::Result<usize> {
    let mut line = String::new();
    socket.read_line(&mut line).await?;
    let number = line.trim_end().strip_prefix(sign).and_then(|text| text.parse().ok());
    number.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}
