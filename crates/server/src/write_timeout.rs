//! Ends connections whose client doesn't read. Without a limit, an answer that nobody takes holds its connection for ever.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What a client has to take of an answer within the time-out, unless that is all of it.
const PROGRESS_BYTES: usize = 16 * 1024;

/// A connection that fails when writing to it makes no progress for too long.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// Runs from the first write that had to wait, until enough was taken after it.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Bytes taken meanwhile.
    taken: usize,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, waiting: None, taken: 0 }
    }

    fn written(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => {
                let timeout = self.timeout;
                ready!(self.waiting.get_or_insert_with(|| Box::pin(sleep(timeout))).as_mut().poll(cx));
                Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not read its answer")))
            }
            Poll::Ready(Ok(bytes)) => {
                self.taken += bytes;
                if self.taken >= PROGRESS_BYTES {
                    self.forget();
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    fn forget(&mut self) {
        self.waiting = None;
        self.taken = 0;
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.written(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once everything is written that there was to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.forget();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_or_a_byte_a_second_is_given_up() {
        for reads in [false, true] {
            let (ours, mut theirs) = duplex(1_024);
            let reading = tokio::spawn(async move {
                if !reads {
                    std::future::pending::<()>().await;
                }
                while theirs.read_u8().await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            });
            let mut stream = WriteTimeout::new(ours, TIMEOUT);
            let error = stream.write_all(&[0; 100_000]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            reading.abort();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_but_steadily_gets_everything() {
        let (ours, mut theirs) = duplex(1_024);
        let reading = tokio::spawn(async move {
            let mut bytes = [0; 1_024];
            let mut read = 0;
            while read < 200_000 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                read += theirs.read(&mut bytes).await.unwrap();
            }
        });
        let mut stream = WriteTimeout::new(ours, TIMEOUT);
        stream.write_all(&[0; 200_000]).await.unwrap();
        reading.await.unwrap();
    }
}
