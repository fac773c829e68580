//! Keys and sessions in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use redeliver_core::Timestamp;
use redeliver_core::change::Audit;

use super::MemoryStore;
use crate::access::{Access, Digest, KeyRecord, SessionRecord};
use crate::store::StoreError;

/// Who may come in.
#[derive(Debug, Default)]
pub(super) struct Doors {
    keys: BTreeMap<Arc<str>, KeyRecord>,
    sessions: BTreeMap<Digest, SessionRecord>,
}

impl Doors {
    fn is_live(&self, session: &SessionRecord, now: Timestamp) -> bool {
        let revoked = |id: &Arc<str>| self.keys.get(id).is_none_or(|key| key.revoked_at.is_some());
        now < session.expires_at && !session.key.as_ref().is_some_and(revoked)
    }
}

#[async_trait]
impl Access for MemoryStore {
    async fn add_key(&self, key: KeyRecord, audit: Audit) -> Result<bool, StoreError> {
        let mut all = self.lock();
        if all.doors.keys.contains_key(&key.id) {
            return Ok(false);
        }
        all.doors.keys.insert(key.id.clone(), key);
        all.note_deed(audit);
        Ok(true)
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        Ok(self.lock().doors.keys.get(id).cloned())
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let mut keys: Vec<KeyRecord> = self.lock().doors.keys.values().cloned().collect();
        keys.sort_by_key(|key| key.created_at);
        Ok(keys)
    }

    async fn revoke_key(&self, id: &str, audit: Audit) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let Some(key) = all.doors.keys.get_mut(id).filter(|key| key.revoked_at.is_none()) else {
            return Ok(false);
        };
        key.revoked_at = Some(audit.at);
        all.note_deed(audit);
        Ok(true)
    }

    async fn add_session(&self, session: SessionRecord) -> Result<(), StoreError> {
        self.lock().doors.sessions.insert(session.digest, session);
        Ok(())
    }

    async fn session(&self, digest: Digest, now: Timestamp) -> Result<Option<SessionRecord>, StoreError> {
        let all = self.lock();
        let found = all.doors.sessions.get(&digest);
        Ok(found.filter(|session| all.doors.is_live(session, now)).cloned())
    }

    async fn end_session(&self, digest: Digest, now: Timestamp) -> Result<(), StoreError> {
        self.lock().doors.sessions.retain(|this, session| *this != digest && now < session.expires_at);
        Ok(())
    }
}
