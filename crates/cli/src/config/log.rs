//! `[log]`: what is written to standard error, and how.

use tracing_subscriber::EnvFilter;

use super::reader::Reader;

/// What is written to standard error, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// How a line looks.
    pub format: LogFormat,
    /// Which lines there are: a level, or `target=level` pairs separated by commas.
    pub filter: String,
}

/// How a log line looks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one object a line.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::Text, filter: "info".to_owned() }
    }
}

pub(super) fn read(reader: &Reader<'_>) -> LogConfig {
    let default = LogConfig::default();
    LogConfig {
        format: reader.get("format", default.format, |node| {
            node.word(&[("text", LogFormat::Text), ("json", LogFormat::Json)])
        }),
        filter: reader.get("filter", default.filter, |node| node.parsed(parse_filter)),
    }
}

fn parse_filter(text: &str) -> Result<String, String> {
    match EnvFilter::builder().parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!(
            "a filter is a level (error, warn, info, debug, trace) or pairs such as \
             \"info,redeliver_engine=debug\", not {text:?}"
        )),
    }
}
