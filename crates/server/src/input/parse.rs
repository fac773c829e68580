//! Reads large bodies aside, so that the threads that keep heartbeats and answer health checks are not held up.

use std::thread::available_parallelism;

use redeliver_engine::aside::{self, INLINE_BYTES_MAX};
use tokio::sync::Semaphore;

/// Lets only so many large texts be read at once: half of the cores, at least one.
#[derive(Debug)]
pub struct Parsing(Semaphore);

impl Default for Parsing {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self(Semaphore::new((cores / 2).max(1)))
    }
}

impl Parsing {
    /// Runs what reads so many bytes. If they are many, the other tasks of this thread move to another one first.
    pub async fn run<T>(&self, bytes: usize, read: impl FnOnce() -> T) -> T {
        if bytes <= INLINE_BYTES_MAX {
            return read();
        }
        // It is never closed.
        let _turn = self.0.acquire().await;
        aside::run(bytes, read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_a_large_text_is_read_on_the_only_thread() {
        let (tell, told) = mpsc::channel();
        let reading = tokio::spawn(async move {
            // Spawned on the same thread: it can only run if that is given away.
            tokio::spawn(async move { tell.send(()).unwrap() });
            Parsing::default().run(INLINE_BYTES_MAX + 1, move || told.recv().unwrap()).await;
        });
        reading.await.unwrap();
    }
}
