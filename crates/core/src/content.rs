//! What a message carries. Kept apart from its standing, because it is large and rarely looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::message::{MessageId, Name};
use crate::trace;

/// What a message carries, and where to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Content {
    /// The queue, topic, stream or URL, where the route leaves it open.
    pub target: Option<Arc<str>>,
    /// For gates, targets and filters.
    pub attributes: BTreeMap<String, String>,
    /// Headers that pass on with it, in order, byte for byte.
    pub headers: Vec<(String, Bytes)>,
    /// What the bytes are.
    pub content_type: Option<Arc<str>>,
    /// The bytes.
    pub bytes: Bytes,
}

/// A digest of everything that makes two messages the same: route, target and content.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 16]);

impl Content {
    /// Content that is only these bytes.
    pub fn of_bytes(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), ..Self::default() }
    }

    /// Whether both say the same to the same receiver. Headers and attributes don't count: a source adds to them with each
    /// try.
    pub fn has_payload_of(&self, other: &Self) -> bool {
        self.target == other.target && self.content_type == other.content_type && self.bytes == other.bytes
    }

    /// The digest of this content on this route. Attempts, errors, due times and priorities don't count, nor does the
    /// trace in which it was said: saying it again is another one.
    pub fn hash(&self, route: &Name) -> ContentHash {
        // All but the bytes in one piece: there are many small parts.
        let mut said = Vec::with_capacity(512);
        let mut part = |bytes: &[u8]| {
            said.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            said.extend_from_slice(bytes);
        };
        part(route.as_bytes());
        part(self.target.as_deref().unwrap_or_default().as_bytes());
        part(self.content_type.as_deref().unwrap_or_default().as_bytes());
        part(&(self.attributes.len() as u64).to_le_bytes());
        for (name, value) in &self.attributes {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        for (name, value) in self.headers.iter().filter(|(name, _)| !trace::is_name(name)) {
            part(name.as_bytes());
            part(value);
        }
        said.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        let digest = Sha256::new().chain_update(&said).chain_update(&self.bytes);
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest.finalize()[..16]);
        ContentHash(hash)
    }
}

/// Where the content of a new row comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentSource {
    /// Given here.
    Given(Arc<Content>),
    /// A copy of another message's, with these attributes and no target of its own: a dead letter.
    CopyOf {
        /// The message whose content is copied.
        id: MessageId,
        /// What is added to (and wins over) the copied attributes.
        attributes: BTreeMap<String, String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_tells_contents_apart() {
        let route: Name = "email".into();
        let base = Content { target: Some("a".into()), ..Content::of_bytes("body") };
        let other_target = Content { target: Some("b".into()), ..base.clone() };
        let other_bytes = Content { bytes: "bodY".into(), ..base.clone() };
        let mut attributes = base.clone();
        attributes.attributes.insert("device".to_owned(), "d".to_owned());
        let mut headers = base.clone();
        headers.headers.push(("device".to_owned(), "d".into()));
        let all = [&base, &other_target, &other_bytes, &attributes, &headers].map(|c| c.hash(&route));
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(base.hash(&route), base.clone().hash(&route));
        assert_ne!(base.hash(&route), base.hash(&"sms".into()));
        // It is kept beside keys for as long as they are: it never changes.
        assert_eq!(u128::from_be_bytes(attributes.hash(&route).0), 0xbcbd_5c58_7072_37e1_40ea_7625_04af_548d);
    }
}
