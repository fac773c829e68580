//! `[http]`: where the API answers, and what it puts up with.

use std::net::{IpAddr, Ipv4Addr};

use redeliver_server::auth::secret::AdminKey;
use redeliver_server::limits::Limits;

use super::reader::Reader;
use super::source::Node;
use super::value::{HOUR, SECOND};

/// Where the API answers, and what it puts up with.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpConfig {
    /// On which of this machine's addresses.
    pub listen: IpAddr,
    /// On which port; 0 lets the system choose.
    pub port: u16,
    /// A first key, which is kept nowhere else.
    pub admin_key: Option<AdminKey>,
    /// How much, how long, how many.
    pub limits: Limits,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8086,
            admin_key: None,
            limits: Limits::default(),
        }
    }
}

pub(super) fn read(reader: &Reader<'_>) -> HttpConfig {
    let default = HttpConfig::default();
    let http = HttpConfig {
        listen: reader.get("listen", default.listen, |node| node.parsed(parse_listen)),
        port: reader.get("port", default.port, |node| Ok(node.count(0..=65_535)? as u16)),
        admin_key: reader.get("admin_key", default.admin_key, |node| match node.text()?.as_str() {
            "" => Ok(None),
            text => AdminKey::new(text).map(Some).map_err(|wrong| format!("is too short: {wrong}")),
        }),
        limits: read_limits(reader, default.limits),
    };
    let limits = &http.limits;
    // What a stream of lines takes up: a batch, the line after it, and what has come of the next.
    if limits.accepting_bytes_max < 3 * limits.body_bytes_max {
        let wrong =
            "accepting_bytes_max must be at least three times body_bytes_max, or nothing large is ever taken";
        reader.findings().error(reader.place_of("accepting_bytes_max"), wrong);
    }
    http
}

fn read_limits(reader: &Reader<'_>, default: Limits) -> Limits {
    let bytes = |least: u32| move |node: &Node| Ok(node.count(least..=u32::MAX)? as usize);
    let span = |node: &Node| node.span(SECOND / 10..=HOUR);
    Limits {
        body_bytes_max: reader.get("body_bytes_max", default.body_bytes_max, bytes(1_024)),
        accepting_bytes_max: reader.get("accepting_bytes_max", default.accepting_bytes_max, bytes(1_048_576)),
        connections_max: reader
            .get("connections_max", default.connections_max, |node| Ok(node.count(1..=100_000)? as usize)),
        connections_per_peer_max: reader.get(
            "connections_per_peer_max",
            default.connections_per_peer_max,
            |node| Ok(node.count(1..=100_000)? as usize),
        ),
        health_connections_max: reader.get(
            "health_connections_max",
            default.health_connections_max,
            |node| Ok(node.count(1..=1_000)? as usize),
        ),
        header_bytes_max: reader.get("header_bytes_max", default.header_bytes_max, |node| {
            Ok(node.count(8_192..=1_048_576)? as usize)
        }),
        header_timeout: reader.get("header_timeout", default.header_timeout, span),
        body_timeout: reader.get("body_timeout", default.body_timeout, span),
        write_timeout: reader.get("write_timeout", default.write_timeout, span),
        request_timeout: reader
            .get("request_timeout", default.request_timeout, |node| node.span(SECOND..=HOUR)),
    }
}

fn parse_listen(text: &str) -> Result<IpAddr, String> {
    let wrong = || format!("an address of this machine is 127.0.0.1, 0.0.0.0, ::1 or the like, not {text:?}");
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.parse().map_err(|_| wrong()),
    }
}
