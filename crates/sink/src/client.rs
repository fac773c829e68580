//! Talks to a running sink by its private commands.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::mail::Listed;

/// A connection to a running sink, for private commands.
pub struct Control {
    stream: BufReader<TcpStream>,
}

/// Why a sink could not be told or asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody answers there, or not to the end.
    #[error("cannot talk to a sink at {at}: {error} (is one running there?)")]
    Unreachable {
        /// Where.
        at: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Somebody answers, but not like a sink.
    #[error("what answers is no sink of redeliver: {0}")]
    NoSink(String),
    /// The sink understood, and will not.
    #[error("{0}")]
    Refused(String),
}

/// How long a sink on the same machine may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of one line of an answer.
const LINE_BYTES_MAX: u64 = 1 << 20;

impl Control {
    /// Connects to the sink at this address, and sees that it is one.
    pub async fn connect(at: SocketAddr) -> Result<Self, ControlError> {
        let connected = within(TcpStream::connect(at)).await;
        let stream = connected.map_err(|error| ControlError::Unreachable { at, error })?;
        let mut control = Self { stream: BufReader::new(stream) };
        // A sink that minds greetings waits only briefly for whoever has a private command.
        control.list(Some(0)).await?;
        Ok(control)
    }

    /// Begins another script, and gives it back as it was understood. Rules may be on several lines.
    pub async fn tell(&mut self, script: &str) -> Result<String, ControlError> {
        let rules: Vec<&str> = script.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        Ok(self.ask(&format!("XTELL {}", rules.join("; "))).await?.pop().unwrap_or_default())
    }

    /// What it has kept, oldest first: the last so many, or all.
    pub async fn list(&mut self, count: Option<usize>) -> Result<Vec<Listed>, ControlError> {
        let command = count.map_or("XLIST".to_owned(), |count| format!("XLIST {count}"));
        let mut lines = self.ask(&command).await?;
        lines.pop();
        lines.iter().map(|line| read_listed(line)).collect()
    }

    /// A mail with its content.
    pub async fn show(&mut self, number: u64) -> Result<(Listed, Vec<u8>), ControlError> {
        let lines = self.ask(&format!("XSHOW {number}")).await?;
        let listed = read_listed(lines.first().map_or("", |line| line))?;
        let mut data = Vec::new();
        let bytes = listed.bytes as u64;
        let read = within((&mut self.stream).take(bytes).read_to_end(&mut data)).await;
        match read {
            Ok(read) if read as u64 == bytes => Ok((listed, data)),
            Ok(_) => Err(self.unreachable(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.unreachable(error)),
        }
    }

    /// Has it forget what it has kept, and gives what it says about that.
    pub async fn clear(&mut self) -> Result<String, ControlError> {
        Ok(self.ask("XCLEAR").await?.pop().unwrap_or_default())
    }

    /// Says a command at once, without waiting for a greeting: the sink may have been told never to greet.
    async fn ask(&mut self, command: &str) -> Result<Vec<String>, ControlError> {
        let line = format!("{command}\r\n");
        let answered = within(async {
            self.stream.write_all(line.as_bytes()).await?;
            loop {
                let answer = self.answer().await?;
                if answer.0 != "220" {
                    return Ok(answer);
                }
            }
        });
        let answered = answered.await;
        let (code, mut lines) = answered.map_err(|error| self.unreachable(error))?;
        let told = lines.last_mut().map(|line| strip_status(line)).unwrap_or_default();
        match code.as_str() {
            "250" => {
                lines.pop();
                lines.push(told);
                Ok(lines)
            }
            "501" | "550" => Err(ControlError::Refused(told)),
            code => Err(ControlError::NoSink(format!("{code} {told}"))),
        }
    }

    /// The code and the lines of the next answer.
    async fn answer(&mut self) -> io::Result<(String, Vec<String>)> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            (&mut self.stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await?;
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let (Some(code), Some(text)) = (line.get(..3), line.get(3..)) else {
                let wrong =
                    if line.is_empty() { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
                return Err(wrong.into());
            };
            let is_last = !text.starts_with('-');
            lines.push(text.get(1..).unwrap_or_default().to_owned());
            if is_last {
                return Ok((code.to_owned(), lines));
            }
        }
    }

    fn unreachable(&self, error: io::Error) -> ControlError {
        match self.stream.get_ref().peer_addr() {
            Ok(at) => ControlError::Unreachable { at, error },
            Err(_) => ControlError::NoSink(error.to_string()),
        }
    }
}

/// A line without the enhanced status that it may begin with.
fn strip_status(line: &str) -> String {
    match line.split_once(' ') {
        Some((status, rest))
            if status.contains('.') && status.bytes().all(|b| b.is_ascii_digit() || b == b'.') =>
        {
            rest.to_owned()
        }
        _ => line.to_owned(),
    }
}

fn read_listed(line: &str) -> Result<Listed, ControlError> {
    serde_json::from_str(line).map_err(|error| ControlError::NoSink(error.to_string()))
}

async fn within<T>(doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, doing).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
