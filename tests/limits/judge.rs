//! The verdict on what was sent.
//!
//! A rate limits when sends start. The store has that moment for each try that did not succeed, by the clock that slots are
//! given out by. A receiver sees a mail later, by as much as a busy machine takes to run two processes; that delay is
//! measured, and what the receiver sees is judged with it. A send whose process was killed before it stored the result has
//! no recorded start: in windows of a minute its arrival stands in for it, and there may be no more than a second's worth
//! of them.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::fleet::{Outage, Record};
use super::receiver::Arrival;
use super::{AT_ONCE, RATE, SLOW_FOR};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// What the clock of an instance may be ahead by: it counts whole milliseconds.
const AHEAD_MAX: Duration = Duration::from_millis(5);

/// What is known of the route with a rate.
pub struct RateVerdict {
    starts: usize,
    /// Most recorded starts in any second.
    second: usize,
    /// Most starts in any minute, those of lost sends included.
    minute: usize,
    /// Most arrivals in any second and any minute.
    arrivals: [usize; 2],
    /// The longest time from a start to its arrival.
    delay_max: Duration,
    /// Sends whose start is not recorded.
    lost: usize,
    span: Duration,
    pub share: f64,
}

/// What is known of the route with a concurrency limit.
pub struct ConcurrencyVerdict {
    sends: usize,
    at_once: usize,
    /// Sends that began before their process was stopped, and arrived after it went on.
    straddling: usize,
    span: Duration,
    pub share: f64,
}

pub fn judge_rate(arrivals: &[Arrival], records: &[Record], end: Duration) -> RateVerdict {
    let mut unseen: HashMap<&str, Vec<Duration>> = HashMap::new();
    records.iter().for_each(|record| unseen.entry(&record.key).or_default().push(record.sent_at));
    let (mut delay_max, mut lost) = (Duration::ZERO, Vec::new());
    for Arrival { key, at } in arrivals {
        let starts = unseen.entry(key).or_default();
        match starts.iter().position(|start| *start <= *at + AHEAD_MAX) {
            Some(place) => delay_max = delay_max.max(at.saturating_sub(starts.swap_remove(place))),
            None => lost.push(*at),
        }
    }
    let recorded: Vec<Duration> = records.iter().map(|record| record.sent_at).collect();
    let all: Vec<Duration> = recorded.iter().chain(&lost).copied().filter(|at| *at < end).collect();
    let arrived: Vec<Duration> = arrivals.iter().map(|arrival| arrival.at).collect();
    let span = end - all.iter().min().copied().expect("there were sends");
    RateVerdict {
        starts: all.len(),
        second: most_in(&recorded, SECOND),
        minute: most_in(&all, MINUTE),
        arrivals: [most_in(&arrived, SECOND), most_in(&arrived, MINUTE)],
        delay_max,
        lost: lost.len(),
        span,
        share: all.len() as f64 / (RATE as f64 * span.as_secs_f64()),
    }
}

pub fn judge_concurrency(
    arrivals: &[Arrival],
    records: &[Record],
    outage: Outage,
    end: Duration,
) -> ConcurrencyVerdict {
    // A process that is stopped between two lines of a mail goes on with it before it can know that it was stopped.
    let straddles = |arrival: &&Arrival| {
        let is_this = |record: &&Record| record.key == arrival.key && record.sent_at <= outage.from;
        arrival.at >= outage.until && records.iter().any(|record| is_this(&record))
    };
    let straddling = arrivals.iter().filter(straddles).count();
    let counted: Vec<Duration> =
        arrivals.iter().filter(|arrival| !straddles(arrival)).map(|arrival| arrival.at).collect();
    let span = end - counted.iter().min().copied().expect("there were sends");
    let busy = |at: &Duration| end.saturating_sub(*at).min(SLOW_FOR).as_secs_f64();
    ConcurrencyVerdict {
        sends: arrivals.len(),
        // Each mail takes the receiver so long: those that arrive within that time are there at once.
        at_once: most_in(&counted, SLOW_FOR),
        straddling,
        span,
        share: counted.iter().map(busy).sum::<f64>() / (AT_ONCE as f64 * span.as_secs_f64()),
    }
}

/// The most of these times in any window of this length.
fn most_in(times: &[Duration], window: Duration) -> usize {
    let mut times = times.to_vec();
    times.sort_unstable();
    let from_each = times.iter().enumerate().map(|(n, from)| {
        let rest = &times[n..];
        rest.partition_point(|at| *at < *from + window)
    });
    from_each.max().unwrap_or(0)
}

impl RateVerdict {
    pub fn assert_limit_holds(&self) {
        assert!(self.second <= RATE, "more starts in a second than the rate: {self}");
        assert!(self.minute <= 60 * RATE, "more starts in a minute than the rate: {self}");
        let [second, minute] = self.arrivals;
        // A tenth of the rate is spare, so that a minute of arrivals stands six seconds of delay.
        assert!(minute <= 60 * RATE, "more arrivals in a minute than the rate: {self}");
        let late = (RATE as f64 * (SECOND + self.delay_max).as_secs_f64()).ceil() as usize;
        assert!(second <= late + self.lost, "more arrivals in a second than their delay explains: {self}");
        assert!(self.lost <= RATE, "too many sends without a recorded start: {self}");
    }
}

impl ConcurrencyVerdict {
    pub fn assert_limit_holds(&self) {
        assert!(self.at_once <= AT_ONCE, "more sends at once than the limit: {self}");
    }
}

impl fmt::Display for RateVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { starts, second, minute, arrivals: [in_second, in_minute], lost, share, .. } = self;
        write!(
            f,
            "rate of {RATE}/s: {starts} starts in {:.1} s, {share:.3} of the rate; at most {second} in a second and \
             {minute} in a minute; at the receiver {in_second} and {in_minute}, up to {} ms later; {lost} lost",
            self.span.as_secs_f64(),
            self.delay_max.as_millis()
        )
    }
}

impl fmt::Display for ConcurrencyVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sends, at_once, straddling, share, .. } = self;
        write!(
            f,
            "{AT_ONCE} at once: {sends} sends in {:.1} s, {share:.3} of the limit; at most {at_once} at once; \
             {straddling} begun before the stop and arrived after it",
            self.span.as_secs_f64()
        )
    }
}
