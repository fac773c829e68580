//! A clock that a file moves, for trying out in a minute what takes hours: `redeliver serve --clock FILE`.

#![allow(clippy::disallowed_methods, reason = "this moves the clock, so it can't sleep on it")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use redeliver_core::Timestamp;
use redeliver_engine::clock::{Clock, ManualClock};

/// How often the file is read.
const READ_INTERVAL: Duration = Duration::from_millis(5);

/// A clock that stands at the time that the file says, and moves on whenever it says a later one.
pub fn follow(path: &Path) -> anyhow::Result<Arc<ManualClock>> {
    let clock = ManualClock::at(read(path)?);
    let (path, followed) = (path.to_owned(), Arc::downgrade(&clock));
    std::thread::Builder::new()
        .name("clock".to_owned())
        .spawn(move || {
            while let Some(clock) = followed.upgrade() {
                catch_up(&clock, &path);
                drop(clock);
                std::thread::sleep(READ_INTERVAL);
            }
        })
        .context("cannot start a thread that reads the time")?;
    Ok(clock)
}

/// What can't be read just now is being written; what is earlier was said before.
fn catch_up(clock: &ManualClock, path: &Path) {
    if let Ok(time) = read(path) {
        let ahead = time.since(clock.now());
        if !ahead.is_zero() {
            clock.advance(ahead);
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Timestamp> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the time from {}", path.display()))?;
    text.trim().parse().map_err(|_| {
        anyhow!("{} says {:?}, not a time such as 2026-12-01T09:00:00Z", path.display(), text.trim())
    })
}
