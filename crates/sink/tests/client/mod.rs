//! A client that says exactly what it is told to say, byte by byte.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use redeliver_sink::{Options, Sink};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long anything may take, on a machine that is busy with everything else.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

/// A sink with a script.
pub async fn sink(script: &str) -> Sink {
    Sink::start(Options { script: script.parse().unwrap(), ..Options::default() }).await.unwrap()
}

impl Client {
    /// Connects, and has not read the greeting.
    pub async fn connect(sink: &Sink) -> Self {
        Self::over(TcpStream::connect(sink.address()).await.unwrap())
    }

    pub fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)) }
    }

    /// Connects and says hello.
    pub async fn greet(sink: &Sink) -> Self {
        let mut client = Self::connect(sink).await;
        client.hears("220").await;
        client.says("EHLO test", "250").await;
        client
    }

    pub fn into_inner(self) -> Box<dyn Stream> {
        self.stream.into_inner()
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// The next answer, all its lines; empty if the sink has closed.
    pub async fn answer(&mut self) -> String {
        let mut answer = String::new();
        loop {
            let before = answer.len();
            let read =
                timeout(PATIENCE, self.stream.read_line(&mut answer)).await.expect("an answer in time");
            let Ok(1..) = read else { return answer };
            if answer.as_bytes().get(before + 3) != Some(&b'-') {
                return answer;
            }
        }
    }

    /// Waits for an answer that begins like this.
    pub async fn hears(&mut self, start: &str) -> String {
        let answer = self.answer().await;
        assert!(answer.starts_with(start) && !answer.is_empty(), "{start} expected, got {answer:?}");
        answer
    }

    /// Says a line, and waits for an answer that begins like this.
    pub async fn says(&mut self, line: &str, start: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        let answer = self.answer().await;
        assert!(answer.starts_with(start) && !answer.is_empty(), "{line}: {start} expected, got {answer:?}");
        answer
    }

    /// Begins a mail up to its last recipient.
    pub async fn begins(&mut self, from: &str, to: &[&str]) {
        self.says(&format!("MAIL FROM:<{from}>"), "250").await;
        for to in to {
            self.says(&format!("RCPT TO:<{to}>"), "250").await;
        }
    }

    /// Sends the content of a mail, and the dot.
    pub async fn sends(&mut self, data: &str) {
        self.says("DATA", "354").await;
        self.send(format!("{data}\r\n.\r\n").as_bytes()).await;
    }

    /// Reads exactly so many bytes.
    pub async fn reads(&mut self, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        timeout(PATIENCE, self.stream.read_exact(&mut data)).await.expect("bytes in time").unwrap();
        data
    }

    /// Waits until the sink has closed, without another word.
    pub async fn is_cut(&mut self) {
        assert_eq!(self.answer().await, "", "the sink should have closed");
    }

    /// Sees that the sink says nothing, and doesn't close. That nothing comes can only be seen by waiting a while.
    pub async fn hears_nothing(&mut self) {
        let mut byte = [0];
        let heard = timeout(Duration::from_millis(200), self.stream.read(&mut byte)).await;
        assert!(heard.is_err(), "the sink should be silent: {heard:?}");
    }
}
