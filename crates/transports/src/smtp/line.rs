//! The connection itself: commands out, replies in, nothing of unlimited size.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::reply::{LineKind, REPLY_LINE_BYTES_MAX, REPLY_LINES_MAX, Reply, parse_line};

/// Whatever bytes go over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to a server.
pub(super) struct Line {
    stream: BufReader<Box<dyn Stream>>,
}

/// Why no reply could be read.
#[derive(Debug)]
pub(super) enum Hitch {
    /// The connection broke, or was closed.
    Broken(io::Error),
    /// Something came that is no reply.
    Nonsense,
}

impl Line {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// The bare stream, if the server has said nothing that is still unread: whoever speaks before the encryption
    /// begins must not be heard after it.
    pub(super) fn into_stream(self) -> Option<Box<dyn Stream>> {
        self.stream.buffer().is_empty().then(|| self.stream.into_inner())
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Hitch> {
        self.stream.write_all(bytes).await.map_err(Hitch::Broken)?;
        self.stream.flush().await.map_err(Hitch::Broken)
    }

    pub(super) async fn read_reply(&mut self) -> Result<Reply, Hitch> {
        let mut lines: Vec<String> = Vec::new();
        while lines.len() < REPLY_LINES_MAX {
            let line = self.read_line().await?;
            let Some((_, kind, _)) = parse_line(&line) else { return Err(Hitch::Nonsense) };
            lines.push(line);
            if kind == LineKind::Last {
                return Reply::parse(lines.iter().map(String::as_str)).ok_or(Hitch::Nonsense);
            }
        }
        Err(Hitch::Nonsense)
    }

    /// Whether the server has said something, or gone, without being asked.
    pub(super) async fn has_news(&mut self) -> bool {
        let stream = &mut self.stream;
        poll_fn(|context| match Pin::new(&mut *stream).poll_fill_buf(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending => Poll::Ready(false),
        })
        .await
    }

    async fn read_line(&mut self) -> Result<String, Hitch> {
        let mut line = Vec::new();
        loop {
            let buffer = self.stream.fill_buf().await.map_err(Hitch::Broken)?;
            if buffer.is_empty() {
                let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection");
                return Err(Hitch::Broken(closed));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |at| at + 1);
            line.extend_from_slice(&buffer[..taken]);
            self.stream.consume(taken);
            if line.len() > REPLY_LINE_BYTES_MAX {
                return Err(Hitch::Nonsense);
            }
            if end.is_some() {
                let text = String::from_utf8_lossy(&line);
                return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
            }
        }
    }
}

/// A mail as it goes over the line: a dot before every line that begins with one, and a line end at its end.
pub(super) fn stuffed(mail: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(mail.len() + 64);
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            out.push(b'.');
        }
        out.extend_from_slice(line);
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_mail_is_a_lonely_dot() {
        assert_eq!(stuffed(b"a\r\n.\r\n..b\r\n.c"), b"a\r\n..\r\n...b\r\n..c\r\n");
        assert_eq!(stuffed(b""), b"\r\n");
    }

    async fn read(said: &[u8]) -> Result<Reply, Hitch> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(said).await.unwrap();
        drop(theirs);
        Line::new(Box::new(ours)).read_reply().await
    }

    #[tokio::test]
    async fn replies_are_read_to_their_last_line_and_no_further() {
        assert_eq!(read(b"250-a\r\n250 b\r\n354 c\r\n").await.unwrap().text, "a b");
        assert_eq!(read(b"220 bare line end\n").await.unwrap().code, 220);
        assert_eq!(read(b"220 \xff\xfe\r\n").await.unwrap().code, 220);
    }

    #[tokio::test]
    async fn what_has_no_end_is_not_read_to_its_end() {
        assert!(matches!(read(&vec![b'x'; 100_000]).await, Err(Hitch::Nonsense)));
        assert!(matches!(read(&b"250-x\r\n".repeat(10_000)).await, Err(Hitch::Nonsense)));
        assert!(matches!(read(b"250-x\r\n").await, Err(Hitch::Broken(_))));
        assert!(matches!(read(b"").await, Err(Hitch::Broken(_))));
        assert!(matches!(read(b"HTTP/1.1 400 Bad Request\r\n").await, Err(Hitch::Nonsense)));
    }

    #[tokio::test]
    async fn words_before_the_encryption_are_not_carried_into_it() {
        let (ours, mut theirs) = tokio::io::duplex(1_000);
        theirs.write_all(b"220 go\r\n250 smuggled\r\n").await.unwrap();
        let mut line = Line::new(Box::new(ours));
        line.read_reply().await.unwrap();
        assert!(line.into_stream().is_none());
    }
}
