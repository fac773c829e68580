//! How many e-mails stand where, as far as a visitor may know.

use redeliver_core::status::Status;
use redeliver_core::{Lane, Name, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::{Count, Filter, StatusAt, Store, StoreError};

use super::emails::email_routes;

/// The states of an e-mail that is still on its way.
pub(super) const PENDING: [&str; 3] = ["waiting", "claimed", "handed_off"];

/// Messages that are looked at one by one, at most, where the store has no number.
const LOOKED_AT_MAX: usize = 1_000;

/// How many, or how many at least.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) count: u64,
    pub(super) is_least: bool,
}

/// How many e-mails stand where.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) pending: Amount,
    pub(super) failed: Amount,
    pub(super) delivered: Amount,
    pub(super) due: Amount,
    /// The longest due of those that were looked at.
    pub(super) oldest_due_at: Option<Timestamp>,
}

impl Tally {
    /// Counts what this workspace has, or all of them.
    pub(super) async fn take(engine: &Engine, workspace: Option<&Name>) -> Result<Self, StoreError> {
        let (store, now) = (engine.store().as_ref(), engine.clock().now());
        let counts = store.counts(now).await?;
        let routes = email_routes(store, workspace, &counts).await?;
        let mut tally = match workspace {
            None => Self::of_all(&counts, &routes),
            Some(_) => Self::default(),
        };
        for route in &routes {
            if workspace.is_none() {
                tally.look_at_lanes(store, route, now).await?;
                continue;
            }
            let of_route = Filter {
                workspace: workspace.cloned(),
                route: Some(route.clone()),
                limit: LOOKED_AT_MAX,
                ..Filter::default()
            };
            let due = Some(StatusAt { status: Status::Due, now });
            let due = store.list(Filter { status: due, ..of_route.clone() }).await?;
            let oldest = due.iter().map(|message| message.due_at).min();
            tally.oldest_due_at = tally.oldest_due_at.into_iter().chain(oldest).min();
            tally.due.add(due.len());
            tally.count_one_by_one(store, &of_route).await?;
        }
        Ok(tally)
    }

    fn of_all(counts: &[Count], routes: &[Name]) -> Self {
        let mut tally = Self::default();
        for count in counts.iter().filter(|count| routes.contains(&count.route)) {
            tally.due.count += count.due;
            match count.state {
                "dead" => tally.failed.count += count.count,
                "delivered" => tally.delivered.count += count.count,
                state if PENDING.contains(&state) => tally.pending.count += count.count,
                _ => {}
            }
        }
        tally
    }

    /// The store knows what comes first in each lane.
    async fn look_at_lanes(
        &mut self,
        store: &dyn Store,
        route: &Name,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for lane in Lane::ALL {
            let first = store.next_due_at(route.clone(), lane).await?.filter(|at| *at <= now);
            self.oldest_due_at = self.oldest_due_at.into_iter().chain(first).min();
        }
        Ok(())
    }

    /// The store counts all workspaces together, so that one of them is counted by looking.
    async fn count_one_by_one(&mut self, store: &dyn Store, of_route: &Filter) -> Result<(), StoreError> {
        let in_state = |state| Filter { state: Some(state), ..of_route.clone() };
        for state in PENDING {
            self.pending.add(store.list(in_state(state)).await?.len());
        }
        self.failed.add(store.list(in_state("dead")).await?.len());
        self.delivered.add(store.list(in_state("delivered")).await?.len());
        Ok(())
    }
}

impl Amount {
    fn add(&mut self, seen: usize) {
        self.count += seen as u64;
        self.is_least |= seen >= LOOKED_AT_MAX;
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.count, if self.is_least { "+" } else { "" })
    }
}
