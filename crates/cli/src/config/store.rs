//! `[store]`: what remembers the messages.

use std::path::PathBuf;

use super::reader::Reader;

/// What remembers the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where it is.
    pub url: StoreUrl,
    /// What a commit withstands.
    pub durability: Durability,
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory:`: in this process, gone with it.
    Memory,
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
}

/// What a commit withstands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: accepted means durable.
    Full,
    /// A crash of this process, but the last moments before a power cut may be lost.
    Relaxed,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { url: StoreUrl::Sqlite("redeliver.db".into()), durability: Durability::Full }
    }
}

impl StoreUrl {
    /// Reads `memory:` or `sqlite:PATH`. The error names only the scheme: what follows may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match (scheme, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("sqlite", "") => Err("sqlite: needs a path, such as sqlite:redeliver.db".to_owned()),
            ("sqlite", path) => Ok(Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into())),
            _ => Err(format!("stores are sqlite:PATH and memory:, not {scheme}:")),
        }
    }

    /// Writes what [`StoreUrl::parse`] reads, without any secret.
    pub fn show(&self) -> String {
        match self {
            Self::Memory => "memory:".to_owned(),
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
        }
    }
}

pub(super) fn read(reader: &Reader<'_>) -> StoreConfig {
    let default = StoreConfig::default();
    let url = reader.get("url", default.url, |node| node.parsed(StoreUrl::parse));
    if url == StoreUrl::Memory {
        reader
            .findings()
            .warning(reader.place_of("url"), "messages in memory: are gone when the process ends");
    }
    StoreConfig {
        url,
        durability: reader.get("durability", default.durability, |node| {
            node.word(&[("full", Durability::Full), ("relaxed", Durability::Relaxed)])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_urls_are_read_and_written() {
        for text in ["memory:", "sqlite:redeliver.db", "sqlite:/var/lib/redeliver.db"] {
            assert_eq!(StoreUrl::parse(text).unwrap().show(), text);
        }
        assert_eq!(StoreUrl::parse("sqlite:///var/x.db").unwrap().show(), "sqlite:/var/x.db");
        for text in ["", "sqlite:", "memory:x", "redeliver.db"] {
            assert!(StoreUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_url_is_not_repeated_with_its_password() {
        let wrong = StoreUrl::parse("mysql://ada:secret@db").unwrap_err();
        assert!(!wrong.contains("secret"), "{wrong}");
    }
}
