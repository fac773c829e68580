//! Requests, counted and timed. What counts them is found once and kept: looking for it costs more than counting.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Histogram};

pub(super) const REQUESTS: &str = "redeliver_http_requests_total";
pub(super) const REQUEST_SECONDS: &str = "redeliver_http_seconds";

/// What counts the requests of each path that was asked for so far.
#[derive(Default)]
pub(super) struct Requests(RwLock<HashMap<String, Vec<Counting>>>);

/// What counts one method and status of a path.
#[derive(Clone)]
struct Counting {
    method: &'static str,
    status: u16,
    count: Counter,
    seconds: Histogram,
}

impl Requests {
    /// One more, which took so long. `path` is a pattern of the router's, so that there are few.
    pub(super) fn count(&self, method: &'static str, path: &str, status: u16, took: Duration) {
        let counting = self.known(method, path, status).unwrap_or_else(|| self.learn(method, path, status));
        counting.count.increment(1);
        counting.seconds.record(took.as_secs_f64());
    }

    fn known(&self, method: &'static str, path: &str, status: u16) -> Option<Counting> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(path)?.iter().find(|known| (known.method, known.status) == (method, status)).cloned()
    }

    fn learn(&self, method: &'static str, path: &str, status: u16) -> Counting {
        let labels =
            [("method", method.to_owned()), ("path", path.to_owned()), ("status", status.to_string())];
        let count = metrics::counter!(REQUESTS, &labels);
        let seconds = metrics::histogram!(REQUEST_SECONDS, "method" => method, "path" => path.to_owned());
        let counting = Counting { method, status, count, seconds };
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(path.to_owned()).or_default().push(counting.clone());
        counting
    }
}
