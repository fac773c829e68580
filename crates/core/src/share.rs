//! How the lanes of a route share its permits, so that none starves another.

use crate::message::Lane;

/// The permits of one route: a reserve for each lane, and the rest for whoever comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permits {
    capacity: usize,
    reserve: [usize; 4],
    in_use: [usize; 4],
}

impl Permits {
    /// Half of `capacity` is reserved, in proportion to the lanes' weights; each lane has at least one.
    pub fn new(capacity: usize, weights: [u32; 4]) -> Self {
        let capacity = capacity.max(Lane::ALL.len());
        let total: usize = weights.iter().map(|weight| *weight as usize).sum::<usize>().max(1);
        let reserve = weights.map(|weight| (capacity / 2 * weight as usize / total).max(1));
        Self { capacity, reserve, in_use: [0; 4] }
    }

    /// How many more messages of this lane may be in the air.
    pub fn room(&self, lane: Lane) -> usize {
        let used: usize = self.in_use.iter().sum();
        let kept_for_others: usize = Lane::ALL
            .into_iter()
            .filter(|other| *other != lane)
            .map(|other| self.reserve[other as usize].saturating_sub(self.in_use[other as usize]))
            .sum();
        self.capacity.saturating_sub(used).saturating_sub(kept_for_others)
    }

    /// Takes permits of a lane.
    pub fn take(&mut self, lane: Lane, count: usize) {
        self.in_use[lane as usize] += count;
    }

    /// Gives permits of a lane back.
    pub fn give_back(&mut self, lane: Lane, count: usize) {
        self.in_use[lane as usize] = self.in_use[lane as usize].saturating_sub(count);
    }

    /// Messages in the air, all lanes together.
    pub fn in_use(&self) -> usize {
        self.in_use.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WEIGHTS: [u32; 4] = [8, 4, 2, 1];

    #[test]
    fn a_flood_of_one_lane_leaves_the_others_their_reserve() {
        let mut permits = Permits::new(100, WEIGHTS);
        permits.take(Lane::Low, permits.room(Lane::Low));
        for lane in [Lane::Critical, Lane::High, Lane::Medium] {
            assert!(permits.room(lane) >= 1, "{lane:?}");
        }
        assert!(permits.room(Lane::Critical) >= 26);
        assert_eq!(permits.room(Lane::Low), 0);
    }

    #[test]
    fn a_lane_alone_has_more_than_half() {
        assert!(Permits::new(100, WEIGHTS).room(Lane::Low) >= 50);
    }

    #[test]
    fn even_the_smallest_capacity_serves_every_lane() {
        let permits = Permits::new(1, WEIGHTS);
        assert!(Lane::ALL.into_iter().all(|lane| permits.room(lane) >= 1));
    }

    proptest! {
        #[test]
        fn never_more_than_the_capacity_and_never_a_starved_lane(
            capacity in 8usize..500, takes in prop::collection::vec((0usize..4, 0usize..100, any::<bool>()), 0..60)
        ) {
            let mut permits = Permits::new(capacity, WEIGHTS);
            for (lane, count, back) in takes {
                let lane = Lane::ALL[lane];
                if back { permits.give_back(lane, count) } else { permits.take(lane, count.min(permits.room(lane))) }
                prop_assert!(permits.in_use() <= capacity);
            }
            for lane in Lane::ALL {
                prop_assert!(permits.room(lane) >= 1 || permits.in_use[lane as usize] >= 1);
            }
        }
    }
}
