//! Lines, answers and mails over a connection, none of them longer than allowed and none waited for for ever.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::dots::Dots;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(crate) struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    silence: Duration,
}

/// A line of the client's.
pub(crate) enum Line {
    Said(Vec<u8>),
    TooLong,
    /// The client has closed.
    End,
}

/// What came after DATA.
pub(crate) enum Data {
    Whole(Vec<u8>),
    TooBig,
    /// The client has closed before the end.
    End,
}

/// How many times more than allowed is read and thrown away before the client is cut off.
const PATIENCE: usize = 10;

impl Wire {
    pub fn new(stream: impl Stream + 'static, silence: Duration) -> Self {
        Self { stream: BufReader::new(Box::new(stream)), silence }
    }

    /// The next line without its end. A bare line feed ends it as well: people type them.
    pub async fn line(&mut self, bytes_max: usize) -> io::Result<Line> {
        let (mut line, mut read) = (Vec::new(), 0);
        loop {
            let piece = within(self.silence, self.stream.fill_buf()).await?;
            if piece.is_empty() {
                return Ok(Line::End);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len(), |end| end + 1);
            let room = (bytes_max + 1).saturating_sub(line.len());
            line.extend_from_slice(&piece[..taken.min(room)]);
            self.stream.consume(taken);
            read += taken;
            if end.is_some() {
                if line.len() > bytes_max {
                    return Ok(Line::TooLong);
                }
                line.pop();
                line.pop_if(|byte| *byte == b'\r');
                return Ok(Line::Said(line));
            }
            if read > bytes_max.saturating_mul(PATIENCE) {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    /// A mail, to the dot that ends it.
    pub async fn data(&mut self, bytes_max: usize) -> io::Result<Data> {
        let (mut dots, mut mail, mut read, mut is_too_big) = (Dots::new(), Vec::new(), 0, false);
        loop {
            let piece = within(self.silence, self.stream.fill_buf()).await?;
            if piece.is_empty() {
                return Ok(Data::End);
            }
            let end = dots.read(piece, &mut mail);
            let taken = end.unwrap_or(piece.len());
            self.stream.consume(taken);
            read += taken;
            if mail.len() > bytes_max {
                is_too_big = true;
                mail = Vec::new();
            }
            match end {
                Some(_) if is_too_big => return Ok(Data::TooBig),
                Some(_) => return Ok(Data::Whole(mail)),
                None if read > bytes_max.saturating_mul(PATIENCE) => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                None => {}
            }
        }
    }

    /// Reads and forgets until the client closes.
    pub async fn swallow(&mut self) -> io::Result<()> {
        loop {
            let taken = self.stream.fill_buf().await?.len();
            if taken == 0 {
                return Ok(());
            }
            self.stream.consume(taken);
        }
    }

    pub async fn say(&mut self, code: u16, text: &str) -> io::Result<()> {
        self.send(format!("{code} {text}\r\n").as_bytes()).await
    }

    /// An answer of several lines.
    pub async fn say_lines(&mut self, code: u16, lines: &[String]) -> io::Result<()> {
        let mut answer = String::new();
        for (index, line) in lines.iter().enumerate() {
            let between = if index + 1 == lines.len() { ' ' } else { '-' };
            answer.push_str(&format!("{code}{between}{line}\r\n"));
        }
        self.send(answer.as_bytes()).await
    }

    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        within(self.silence, async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        })
        .await
    }

    /// Goes on encrypted. What the client said too early in the clear is forgotten, for anybody could have said it.
    pub async fn encrypt(&mut self, acceptor: &TlsAcceptor) -> io::Result<()> {
        let nothing: Box<dyn Stream> = Box::new(tokio::io::empty());
        let clear = std::mem::replace(&mut self.stream, BufReader::new(nothing)).into_inner();
        let encrypted = within(self.silence, acceptor.accept(clear)).await?;
        self.stream = BufReader::new(Box::new(encrypted));
        Ok(())
    }
}

async fn within<T>(silence: Duration, doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(silence, doing).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
