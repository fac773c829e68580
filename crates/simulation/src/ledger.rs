//! What callers of a store said and were told, held against what the store has after a restart.

use std::collections::HashSet;
use std::path::Path;

use redeliver_core::{MessageId, State};
use redeliver_engine::store::{Filter, Store};
use redeliver_stores::{OpenOptions, SyncSqlite};

/// What was said, and what was answered.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The messages of each call, whatever was answered.
    pub calls: Vec<Vec<MessageId>>,
    /// Messages that were answered for.
    pub accepted: Vec<MessageId>,
    /// Messages whose delivery was answered for.
    pub delivered: Vec<MessageId>,
}

impl Ledger {
    /// Opens a store as an engine would after a restart: the ledger adds up.
    pub async fn judge(&self, path: &Path) -> Result<(), String> {
        let store = SyncSqlite::open(path, OpenOptions::default()).map_err(show)?;
        let found = store.examine().await.map_err(show)?;
        if !found.is_whole() {
            return Err(format!("the file is damaged: {found:?}"));
        }
        for id in &self.accepted {
            let is_there = store.get(id.clone()).await.map_err(show)?.is_some()
                && store.content(id.clone()).await.map_err(show)?.is_some();
            if !is_there {
                return Err(format!("accepted and lost: {id}"));
            }
        }
        for id in &self.delivered {
            let message = store.get(id.clone()).await.map_err(show)?;
            if !message.is_some_and(|message| matches!(message.state, State::Delivered { .. })) {
                return Err(format!("delivered, and that was forgotten: {id}"));
            }
        }
        let said: usize = self.calls.iter().map(Vec::len).sum();
        let filter = Filter { limit: said + 1, ..Filter::default() };
        let listed = store.list(filter).await.map_err(show)?;
        let there: HashSet<MessageId> = listed.into_iter().map(|message| message.id).collect();
        for call in &self.calls {
            let count = call.iter().filter(|id| there.contains(id)).count();
            if count != 0 && count != call.len() {
                return Err(format!("a call was kept in part: {count} of {} messages", call.len()));
            }
        }
        let said: HashSet<&MessageId> = self.calls.iter().flatten().collect();
        match there.iter().find(|id| !said.contains(id)) {
            Some(id) => Err(format!("in the store, and nobody said it: {id}")),
            None => Ok(()),
        }
    }
}

fn show(error: impl std::fmt::Display) -> String {
    error.to_string()
}
