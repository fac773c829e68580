//! New messages that come together share a statement, and nothing else.
//!
//! While one statement waits for the disk, calls pile up, and the next one is theirs. A caller who comes alone waits
//! for nobody.

use std::sync::Arc;

use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_engine::store::{Inserted, StoreError};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::{JoinHandle, yield_now};

use super::connections::{Connections, transact};
use super::insert;

/// Statements under way at once: one gathers while the other one waits for the disk.
const STATEMENTS_MAX: usize = 2;

/// Calls that wait, at most. Whoever comes then waits before the door.
const QUEUE_MAX: usize = 1_024;

/// What one statement takes of calls that come together, at most, so that nobody waits long for somebody else's.
const STATEMENT_ROWS_MAX: usize = 1_000;
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// A call with more than this is worth a statement of its own.
const CALL_ROWS_MAX: usize = 100;
const CALL_BYTES_MAX: usize = 64 << 10;

/// Gathers new messages.
pub(super) struct Gather {
    queue: mpsc::Sender<Call>,
    tasks: Vec<JoinHandle<()>>,
}

/// One caller's rows, and where its answer goes.
struct Call {
    rows: Vec<NewRow>,
    bytes: usize,
    answer: oneshot::Sender<Result<Vec<Inserted>, StoreError>>,
}

impl Gather {
    pub(super) fn start(connections: &Arc<Connections>) -> Self {
        let (queue, calls) = mpsc::channel(QUEUE_MAX);
        let calls = Arc::new(Mutex::new(calls));
        let tasks = (0..STATEMENTS_MAX)
            .map(|_| {
                let writer = Writer { connections: connections.clone(), calls: calls.clone() };
                tokio::spawn(async move { while writer.turn().await {} })
            })
            .collect();
        Self { queue, tasks }
    }

    /// Keeps rows, together with those of others.
    pub(super) async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        let lost = || StoreError::Unavailable("nobody is left to write it".to_owned());
        let bytes = rows.iter().map(bytes_of).sum();
        let (answer, answered) = oneshot::channel();
        self.queue.send(Call { rows, bytes, answer }).await.map_err(|_| lost())?;
        answered.await.map_err(|_| lost())?
    }
}

/// Whether rows may share a statement with those of others: few of them, and each with nothing that comes with it.
pub(super) fn takes(rows: &[NewRow]) -> bool {
    rows.len() <= CALL_ROWS_MAX
        && rows.iter().map(bytes_of).sum::<usize>() <= CALL_BYTES_MAX
        && rows.iter().all(insert::takes_one_statement)
}

impl Drop for Gather {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Writes what has been gathered.
struct Writer {
    connections: Arc<Connections>,
    calls: Arc<Mutex<mpsc::Receiver<Call>>>,
}

impl Writer {
    /// Writes the calls that are there, or the next one. `false` when nobody will call any more.
    async fn turn(&self) -> bool {
        let mut calls = self.calls.lock().await;
        let Some(first) = calls.recv().await else { return false };
        // Those who have just had their answers may be about to call again.
        yield_now().await;
        let together = together(first, &mut calls);
        drop(calls);
        self.write(together).await;
        true
    }

    /// Writes calls with one statement, and then answers them.
    async fn write(&self, calls: Vec<Call>) {
        let all: Vec<&NewRow> = calls.iter().flat_map(|call| &call.rows).collect();
        match self.write_together(&all).await {
            Ok(Some(answers)) => {
                let mut answers = answers.into_iter();
                for call in calls {
                    let own = answers.by_ref().take(call.rows.len()).collect();
                    call.answer(Ok(own));
                }
            }
            Ok(None) => {
                for call in calls {
                    let written = self.write_alone(&call.rows).await;
                    call.answer(written);
                }
            }
            // Nobody knows whether it was written, or nobody could write at all.
            Err(error) => calls.into_iter().for_each(|call| call.answer(Err(error.clone()))),
        }
    }

    /// Says what became of all rows; nothing, if one of them is to blame that the others were not written.
    async fn write_together(&self, rows: &[&NewRow]) -> Result<Option<Vec<Inserted>>, StoreError> {
        transact!(self, |db| async {
            match insert::insert_one(db, rows).await {
                Err(fault) if fault.is_of_a_row() => Ok(None),
                written => written.map(Some),
            }
        })
    }

    async fn write_alone(&self, rows: &[NewRow]) -> Result<Vec<Inserted>, StoreError> {
        let rows: Vec<&NewRow> = rows.iter().collect();
        transact!(self, |db| insert::insert_one(db, &rows))
    }
}

impl Call {
    fn answer(self, answer: Result<Vec<Inserted>, StoreError>) {
        // Whoever called may have gone.
        let _ = self.answer.send(answer);
    }
}

/// The first call and those that came in the meantime.
fn together(first: Call, calls: &mut mpsc::Receiver<Call>) -> Vec<Call> {
    let (mut rows, mut bytes) = (first.rows.len(), first.bytes);
    let mut together = vec![first];
    while rows < STATEMENT_ROWS_MAX
        && bytes < STATEMENT_BYTES_MAX
        && let Ok(next) = calls.try_recv()
    {
        rows += next.rows.len();
        bytes += next.bytes;
        together.push(next);
    }
    together
}

fn bytes_of(row: &NewRow) -> usize {
    match &row.content {
        ContentSource::Given(content) => content.bytes.len(),
        ContentSource::CopyOf { .. } => 0,
    }
}
