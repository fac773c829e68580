//! The port to whatever remembers who may come in: API keys and the console's sessions.
//!
//! No secret comes past this file: a key and a session are known by the digest of theirs.

use std::sync::Arc;

use async_trait::async_trait;
use redeliver_core::change::Audit;
use redeliver_core::{Name, Timestamp};

use crate::store::StoreError;

/// Remembers keys and sessions. Every call is one transaction; an answer means that it is durable.
#[async_trait]
pub trait Access: Send + Sync + 'static {
    /// Keeps a new key, with the deed of making it; `false` if there is one with that id already.
    async fn add_key(&self, key: KeyRecord, audit: Audit) -> Result<bool, StoreError>;

    /// The key with this id, revoked or not.
    async fn key(&self, id: &str) -> Result<Option<KeyRecord>, StoreError>;

    /// All keys, revoked ones too, oldest first.
    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError>;

    /// Makes a key worthless from now on, with the deed; `false`, and nothing written, if there is none or it is
    /// revoked already.
    async fn revoke_key(&self, id: &str, audit: Audit) -> Result<bool, StoreError>;

    /// Keeps a new session.
    async fn add_session(&self, session: SessionRecord) -> Result<(), StoreError>;

    /// The session with this digest, unless it is over by now or its key is revoked.
    async fn session(&self, digest: Digest, now: Timestamp) -> Result<Option<SessionRecord>, StoreError>;

    /// Ends a session; one that has ended already is as good. Forgets others that are over, too.
    async fn end_session(&self, digest: Digest, now: Timestamp) -> Result<(), StoreError>;
}

/// SHA-256 of a secret that has 256 random bits.
pub type Digest = [u8; 32];

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// What it is found by: the part of the key that is no secret.
    pub id: Arc<str>,
    /// What people call it.
    pub name: Arc<str>,
    /// The digest of its secret.
    pub digest: Digest,
    /// The only workspace that it reaches; all of them if it doesn't say.
    pub workspace: Option<Name>,
    /// What it may do.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
    /// Since when it is worthless.
    pub revoked_at: Option<Timestamp>,
}

/// A person who has logged in to the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The digest of its secret.
    pub digest: Digest,
    /// The key that it was opened with; none if that one is only in the environment.
    pub key: Option<Arc<str>>,
    /// What the audit calls whoever it is.
    pub name: Arc<str>,
    /// The only workspace that it reaches; all of them if it doesn't say.
    pub workspace: Option<Name>,
    /// What it may do.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
}

/// What somebody may do. Each role may also do what those before it may.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// Look.
    Viewer = 0,
    /// Have messages accepted.
    Sender = 1,
    /// Retry, cancel, dismiss, report, pause.
    Operator = 2,
    /// Make and revoke keys.
    Admin = 3,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Sender, Self::Operator, Self::Admin];

    /// The role's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Sender => "sender",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role with this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_one_word_each_and_rise() {
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert!(Role::ALL.is_sorted());
        assert_eq!(Role::from_name("root"), None);
    }
}
