//! `[engine]`: how an instance paces itself.

use std::time::Duration;

use redeliver_engine::engine::Settings;

use super::reader::Reader;
use super::value::{DAY, HOUR, MS, SECOND};

pub(super) fn read(reader: &Reader<'_>) -> Settings {
    let default = Settings::default();
    Settings {
        poll_interval: reader.get("poll_interval", default.poll_interval, |node| node.span(MS..=HOUR)),
        heartbeat: reader.get("heartbeat", default.heartbeat, |node| node.span(SECOND / 10..=HOUR / 60)),
        keep_interval: reader.get("keep_interval", default.keep_interval, |node| node.span(MS..=HOUR)),
        watch_interval: reader.get("watch_interval", default.watch_interval, |node| node.span(MS..=HOUR)),
        prune_interval: reader.get("prune_interval", default.prune_interval, |node| node.span(MS..=DAY)),
        drain_timeout: reader
            .get("drain_timeout", default.drain_timeout, |node| node.span(Duration::ZERO..=HOUR)),
        claim_batch_max: reader
            .get("claim_batch_max", default.claim_batch_max, |node| Ok(node.count(1..=10_000)? as usize)),
        release_batch_max: reader
            .get("release_batch_max", default.release_batch_max, |node| Ok(node.count(1..=10_000)? as usize)),
    }
}
