//! Keys and tokens: made of 256 random bits, shown once, and known by their digests from then on.

use redeliver_core::{Name, Timestamp};
use redeliver_engine::access::{Digest, KeyRecord, Role};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// What every key begins with, so that it is recognised where it should not be.
const PREFIX: &str = "rdk_";

/// A new key: its text, to be shown once, and what is kept of it.
pub struct NewKey {
    /// The whole key.
    pub text: String,
    /// What is kept.
    pub record: KeyRecord,
}

/// The system gave no random bits, so that nothing can be kept secret.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bits: {0}")]
pub struct NoRandomness(String);

impl NewKey {
    /// Makes a key.
    pub fn make(
        name: &str,
        role: Role,
        workspace: Option<Name>,
        now: Timestamp,
    ) -> Result<Self, NoRandomness> {
        let id = hex(&random::<6>()?);
        let secret = hex(&random::<32>()?);
        let text = format!("{PREFIX}{id}_{secret}");
        let record = KeyRecord {
            id: id.into(),
            name: name.into(),
            digest: digest(&secret),
            workspace,
            role,
            created_at: now,
            revoked_at: None,
        };
        Ok(Self { text, record })
    }
}

/// A key's id and its secret, if it is written like one.
pub fn parts(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(PREFIX)?.split_once('_').filter(|(id, secret)| !id.is_empty() && !secret.is_empty())
}

/// What is wrong with what somebody wants to call a key, if anything is.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err("has 1 to 64 characters, none of them a control character".to_owned()) }
}

/// The first key, which comes from the environment and is kept nowhere.
#[derive(Clone)]
pub struct AdminKey {
    digest: Digest,
    is_short: bool,
}

impl AdminKey {
    /// What the audit calls whoever comes with it.
    pub const NAME: &'static str = "REDELIVER_ADMIN_KEY";

    /// The fewest characters that it may have.
    pub const LEN_MIN: usize = 16;

    /// The fewest characters that nobody is warned of.
    pub const LEN_ADVISED: usize = 32;

    /// The key of this text, if it is long enough to be one.
    pub fn new(text: &str) -> Result<Self, String> {
        let len = text.chars().count();
        if len < Self::LEN_MIN {
            return Err(format!("{} must have at least {} characters", Self::NAME, Self::LEN_MIN));
        }
        Ok(Self { digest: digest(text), is_short: len < Self::LEN_ADVISED })
    }

    /// Whether it is so short that it could be guessed.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// Whether this is the key.
    pub fn is(&self, text: &str) -> bool {
        is_same(&self.digest, &digest(text))
    }
}

impl PartialEq for AdminKey {
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.digest, &other.digest)
    }
}

impl std::fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminKey(…)")
    }
}

/// A token for a session's cookie.
pub fn session_token() -> Result<String, NoRandomness> {
    Ok(hex(&random::<32>()?))
}

/// What a page of a session sends to show that it is one: nobody can work it out without the session's token.
pub fn csrf_token(session_token: &str) -> String {
    hex(&digest(&format!("csrf:{session_token}")))
}

/// The digest that a secret is known by.
pub fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}

/// Whether two digests are the same, in a time that doesn't tell how nearly.
pub fn is_same(one: &Digest, other: &Digest) -> bool {
    one.ct_eq(other).into()
}

fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| NoRandomness(error.to_string()))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_id_and_known_by_its_digest() {
        let key = NewKey::make("ops", Role::Operator, None, Timestamp::default()).unwrap();
        let (id, secret) = parts(&key.text).unwrap();
        assert_eq!((id, digest(secret)), (&*key.record.id, key.record.digest));
        assert_eq!(secret.len(), 64, "256 bits");
        assert_ne!(key.text, NewKey::make("ops", Role::Operator, None, Timestamp::default()).unwrap().text);
        for text in ["", "rdk_", "rdk_a", "rdk_a_", "rdk__b", "abc_d_e"] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn the_admin_key_is_long_and_never_printed() {
        assert!(AdminKey::new("short").is_err());
        let key = AdminKey::new("a-long-enough-secret").unwrap();
        assert!(key.is_short() && !AdminKey::new(&"x".repeat(32)).unwrap().is_short());
        assert!(key.is("a-long-enough-secret") && !key.is("a-long-enough-secreT"));
        assert!(!format!("{key:?}").contains("secret"));
    }
}
