//! Keeps the log readable while a store or a peer keeps failing: one line of a kind a second, and a count of the rest.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, park_timeout};
use std::time::Duration;

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// How often a line of each kind is let through.
const INTERVAL: Duration = Duration::from_secs(1);

/// Events that repeat for as long as something fails. An event about one message is never left out.
const REPEATING: [&str; 8] = [
    "http.full",
    "http.refused",
    "intake.delayed",
    "intake.interrupted",
    "kafka.troubled",
    "login.failed",
    "queue.silent",
    "store.failed",
];

/// Lets one line of each kind through between two sweeps. Clones share what they count.
#[derive(Clone, Debug, Default)]
pub struct LogThrottle(Arc<Mutex<HashMap<Identifier, Kind>>>);

/// The lines of one place in the code.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    is_passed: bool,
    left_out: u64,
}

impl LogThrottle {
    /// Starts the thread that lets the next lines through and says how many were left out. It ends with the process.
    pub fn start(&self) {
        let throttle = self.clone();
        // Without it the first line of each kind is still written.
        let _ = Builder::new().name("log-throttle".to_owned()).spawn(move || {
            loop {
                park_timeout(INTERVAL);
                for (of, left_out) in throttle.sweep() {
                    tracing::warn!(
                        event = "log.throttled",
                        of,
                        left_out,
                        "log lines left out: {left_out} of {of}"
                    );
                }
            }
        });
    }

    /// Whether a line of this kind is written.
    fn pass(&self, place: Identifier, name: &'static str) -> bool {
        let mut kinds = self.kinds();
        let kind = kinds.entry(place).or_insert(Kind { name, is_passed: false, left_out: 0 });
        kind.left_out += u64::from(kind.is_passed);
        !std::mem::replace(&mut kind.is_passed, true)
    }

    /// Lets the next line of each kind through, and gives what was left out since the last sweep.
    fn sweep(&self) -> Vec<(&'static str, u64)> {
        let mut swept = Vec::new();
        self.kinds().retain(|_, kind| {
            if kind.left_out > 0 {
                swept.push((kind.name, kind.left_out));
            }
            // A kind that went on waits for the next sweep; one that was silent is forgotten.
            let goes_on = std::mem::take(&mut kind.left_out) > 0;
            kind.is_passed = false;
            goes_on
        });
        swept
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<Identifier, Kind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Filter<S> for LogThrottle {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return true;
        }
        let mut name = Name(None);
        event.record(&mut name);
        name.0.is_none_or(|name| self.pass(metadata.callsite(), name))
    }
}

/// The name of an event that repeats.
struct Name(Option<&'static str>);

impl Visit for Name {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.0 = REPEATING.into_iter().find(|name| *name == value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[cfg(test)]
mod tests {
    use std::io;

    use tracing_subscriber::fmt::layer;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{Layer, Registry};

    use super::*;

    /// A log that is kept.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn fail(times: usize) {
        (0..times).for_each(|_| tracing::error!(event = "store.failed", "the store failed"));
    }

    #[test]
    fn of_a_line_that_repeats_one_is_written_and_the_rest_are_counted() {
        let (kept, throttle) = (Kept::default(), LogThrottle::default());
        let writer = kept.clone();
        let lines = layer().with_writer(move || writer.clone()).with_filter(throttle.clone());
        tracing::subscriber::with_default(Registry::default().with(lines), || {
            fail(50);
            (0..3).for_each(|_| tracing::warn!(event = "message.dead", "a message is dead"));
            assert_eq!(throttle.sweep(), [("store.failed", 49)]);
            fail(2);
            assert_eq!(throttle.sweep(), [("store.failed", 1)]);
            assert_eq!(throttle.sweep(), []);
            assert!(throttle.kinds().is_empty());
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches("the store failed").count(), 2, "{text}");
        assert_eq!(text.matches("a message is dead").count(), 3, "{text}");
    }
}
