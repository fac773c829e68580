//! How many messages stand where, as far as a visitor may know: e-mails by themselves, everything else by itself, and what is
//! due of all of them.

use std::collections::BTreeSet;

use redeliver_core::status::Status;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::{Count, Filter, StatusAt, StoreError};

/// The states of a message that is still on its way.
pub(super) const PENDING: [&str; 3] = ["waiting", "claimed", "handed_off"];

/// Messages that are looked at one by one, at most, where the store has no number.
const LOOKED_AT_MAX: usize = 1_000;

/// How many, or how many at least.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) count: u64,
    pub(super) is_least: bool,
}

/// How many need time, and how many a person.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) pending: Amount,
    pub(super) dead: Amount,
}

/// How many messages stand where.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// E-mails, where a route carries them.
    pub(super) emails: Option<Open>,
    /// Everything else, where there is a route for it.
    pub(super) others: Option<Open>,
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
        let mut tally = Self::default();
        let counted = counts.iter().map(|count| &count.route);
        for route in engine.routes().map(|route| &route.name).chain(counted) {
            tally.open(engine, route);
        }
        match workspace {
            None => tally.count_all(engine, &counts, now).await?,
            Some(workspace) => tally.count_one_by_one(engine, &counts, workspace, now).await?,
        }
        Ok(tally)
    }

    /// Where messages of a route are counted.
    fn open(&mut self, engine: &Engine, route: &str) -> &mut Open {
        let open = if engine.carries_emails(route) { &mut self.emails } else { &mut self.others };
        open.get_or_insert_default()
    }

    async fn count_all(
        &mut self,
        engine: &Engine,
        counts: &[Count],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for count in counts {
            self.due.count += count.due;
            match count.state {
                "dead" => self.open(engine, &count.route).dead.count += count.count,
                "delivered" => self.delivered.count += count.count,
                state if PENDING.contains(&state) => {
                    self.open(engine, &count.route).pending.count += count.count;
                }
                _ => {}
            }
        }
        // The store knows what comes first in each lane.
        for count in counts.iter().filter(|count| count.due > 0) {
            let first = engine.store().next_due_at(count.route.clone(), count.lane).await?;
            let first = first.filter(|at| *at <= now);
            self.oldest_due_at = self.oldest_due_at.into_iter().chain(first).min();
        }
        Ok(())
    }

    /// The store counts all workspaces together, so that one of them is counted by looking, where there is anything at all.
    async fn count_one_by_one(
        &mut self,
        engine: &Engine,
        counts: &[Count],
        workspace: &Name,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let store = engine.store().as_ref();
        let known: BTreeSet<(&Name, &'static str)> =
            counts.iter().map(|count| (&count.route, count.state)).collect();
        for (route, state) in known {
            let of_route = Filter {
                workspace: Some(workspace.clone()),
                route: Some(route.clone()),
                limit: LOOKED_AT_MAX,
                ..Filter::default()
            };
            if state == "waiting" {
                let status = Some(StatusAt { status: Status::Due, now });
                let due = store.list(Filter { status, ..of_route.clone() }).await?;
                let oldest = due.iter().map(|message| message.due_at).min();
                self.oldest_due_at = self.oldest_due_at.into_iter().chain(oldest).min();
                self.due.add(due.len());
            }
            let found = || store.list(Filter { state: Some(state), ..of_route.clone() });
            match state {
                "dead" => self.open(engine, route).dead.add(found().await?.len()),
                "delivered" => self.delivered.add(found().await?.len()),
                state if PENDING.contains(&state) => {
                    self.open(engine, route).pending.add(found().await?.len());
                }
                _ => {}
            }
        }
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
