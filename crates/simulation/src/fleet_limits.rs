//! Judges the limits of destinations over the whole fleet: how many sends started in any window, and how many are under
//! way at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use redeliver_core::{InstanceId, Name, Route, Timestamp};

/// The windows in which starts are counted.
const WINDOWS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The sends of limited routes, by destination.
#[derive(Default)]
pub struct FleetLimits {
    starts: HashMap<Name, VecDeque<Timestamp>>,
    under_way: Vec<Send>,
    sends: u64,
}

struct Send {
    number: u64,
    destination: Name,
    instance: InstanceId,
    at: Timestamp,
}

impl FleetLimits {
    /// A send starts. Gives its number, and what it exceeds, if anything. `is_void` says whether the sends that an
    /// instance started at a time are over although it has not had the time to end them.
    pub fn started(
        &mut self,
        route: &Route,
        destination: &str,
        instance: InstanceId,
        now: Timestamp,
        is_void: impl Fn(InstanceId, Timestamp) -> bool,
    ) -> (u64, Option<String>) {
        self.sends += 1;
        let number = self.sends;
        if route.rate.is_none() && route.destination_concurrency_max.is_none() {
            return (number, None);
        }
        let too_fast = self.count_start(route, destination, now);
        let send = Send { number, destination: destination.into(), instance, at: now };
        self.under_way.push(send);
        let others = self.under_way.iter().filter(|send| &*send.destination == destination);
        let at_once = others.filter(|send| !is_void(send.instance, send.at)).count();
        let too_many = route.destination_concurrency_max.filter(|max| at_once > *max);
        let too_many =
            too_many.map(|max| format!("{at_once} sends at once to {destination}, which may have {max}"));
        (number, too_fast.or(too_many))
    }

    fn count_start(&mut self, route: &Route, destination: &str, now: Timestamp) -> Option<String> {
        let rate = route.rate?;
        let starts = self.starts.entry(destination.into()).or_default();
        starts.push_back(now);
        let is_past = |at: &Timestamp| now.since(*at) >= WINDOWS[1];
        while starts.front().is_some_and(is_past) {
            starts.pop_front();
        }
        WINDOWS.into_iter().find_map(|window| {
            let count = starts.iter().filter(|at| now.since(**at) < window).count();
            let max = (rate.per_s * window.as_secs_f64()).ceil() as usize;
            (count > max).then(|| {
                format!("{count} sends started to {destination} in {window:?}, which may have {max}")
            })
        })
    }

    /// A send is over, or its process is.
    pub fn ended(&mut self, number: u64) {
        self.under_way.retain(|send| send.number != number);
    }
}
