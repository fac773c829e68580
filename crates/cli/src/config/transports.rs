//! `[transports.NAME]`: what carries messages out.

use std::time::Duration;

use redeliver_transports::scripted::{Script, ScriptedConfig, Step};

use super::reader::Reader;
use super::value::HOUR;

/// One transport, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    /// `kind = "scripted"`: does what its script says and never leaves the process.
    Scripted(ScriptedConfig),
}

impl TransportConfig {
    /// The kind's word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Scripted(_) => "scripted",
        }
    }
}

/// Reads the settings of one kind.
type ReadKind = fn(&Reader<'_>) -> TransportConfig;

/// The kinds and how each is read.
const KINDS: &[(&str, ReadKind)] = &[("scripted", scripted)];

pub(super) fn read(reader: &Reader<'_>) -> TransportConfig {
    reader.require("kind", "kind = \"scripted\"");
    match reader.find("kind", |node| node.word(KINDS)) {
        Some(read) => (read.value)(reader),
        None => {
            // Without its kind, none of its other keys can be called unknown.
            reader.forgive();
            TransportConfig::Scripted(ScriptedConfig::default())
        }
    }
}

fn scripted(reader: &Reader<'_>) -> TransportConfig {
    let steps =
        reader.list("script", "[\"fail 451 try later\", \"deliver\"]", |node| node.parsed(Step::parse));
    let script = steps.map(|steps| {
        Script::new(steps.value).ok_or_else(|| {
            let wrong = format!("script must have 1 to {} steps", Script::STEPS_MAX);
            reader.findings().error(&steps.place, wrong);
        })
    });
    TransportConfig::Scripted(ScriptedConfig {
        script: script.and_then(Result::ok).unwrap_or_default(),
        latency: reader.get("latency", Duration::ZERO, |node| node.span(Duration::ZERO..=HOUR)),
    })
}
