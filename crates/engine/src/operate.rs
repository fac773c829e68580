//! What people do, and what outside workers report: read, decide in core, write under the fence, or look again.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use redeliver_core::attempt::AttemptId;
use redeliver_core::change::Audit;
use redeliver_core::explain::{Explanation, GateView, Way, explain};
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope};
use redeliver_core::operate::{Action, Unfit, operate};
use redeliver_core::report::{Report, Reported, report};
use redeliver_core::{Change, Message, MessageId, Outcome, State};

use crate::engine::Engine;
use crate::intake::Told;
use crate::store::{Applied, GateChange, StoreError};

/// How often a message that keeps changing under our hands is looked at again.
const LOOKS_MAX: usize = 8;

/// Why an operation did not happen.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum OperateError {
    /// There is no such message.
    #[error("there is no message {0}")]
    NoMessage(MessageId),
    /// It makes no sense for the message as it stands.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Does what a person wants to one message, and gives it back as it stands afterwards.
    pub async fn operate(
        &self,
        id: &MessageId,
        action: Action,
        actor: &Arc<str>,
    ) -> Result<Message, OperateError> {
        for _ in 0..LOOKS_MAX {
            let message = self.find(id).await?;
            let route = self.route_of(&message.route)?;
            let change = operate(&message, action, actor, route, self.clock.now())?;
            if let Some(after) = self.write(change).await? {
                return Ok(after);
            }
        }
        Err(StoreError::Unavailable(format!("message {id} keeps changing")).into())
    }

    /// Takes an outside worker's word about a message. Says whether it decided anything.
    pub async fn report(
        &self,
        id: &MessageId,
        attempt: Option<&AttemptId>,
        outcome: &Outcome,
    ) -> Result<bool, OperateError> {
        for _ in 0..LOOKS_MAX {
            let message = self.find(id).await?;
            let route = self.route_of(&message.route)?;
            match report(&message, attempt, outcome, route, self.clock.now()) {
                Reported::Applies(change) => {
                    if self.write(*change).await?.is_some() {
                        return Ok(true);
                    }
                }
                Reported::Ignored(record) => {
                    self.store.note(id.clone(), record).await?;
                    return Ok(false);
                }
            }
        }
        Err(StoreError::Unavailable(format!("message {id} keeps changing")).into())
    }

    /// Takes the words of outside workers side by side, those about one message one after the other.
    pub(crate) async fn take_reports(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        let mut told = vec![Told::NoMessage; batch.len()];
        let mut left: Vec<(usize, Report)> = batch.into_iter().enumerate().collect();
        while !left.is_empty() {
            let mut seen = HashSet::new();
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, report)| seen.insert(report.message.clone()));
            let answers = join_all(now.iter().map(|(_, report)| self.take_report(report))).await;
            for ((index, _), answer) in now.iter().zip(answers) {
                told[*index] = match answer {
                    // Its neighbours are told already, and would be told twice.
                    Err(StoreError::Unfit(why)) => Told::Unfit(why),
                    answer => answer?,
                };
            }
            left = later;
        }
        Ok(told)
    }

    async fn take_report(&self, report: &Report) -> Result<Told, StoreError> {
        if let Some(workspace) = &report.workspace {
            let message = self.store.get(report.message.clone()).await?;
            if message.is_none_or(|message| message.workspace != *workspace) {
                return Ok(Told::NoMessage);
            }
        }
        match self.report(&report.message, report.attempt.as_ref(), &report.outcome).await {
            Ok(true) => Ok(Told::Applied),
            Ok(false) => Ok(Told::Ignored),
            Err(OperateError::NoMessage(_) | OperateError::Unfit(_)) => Ok(Told::NoMessage),
            Err(OperateError::Store(error)) => Err(error),
        }
    }

    /// Says why a message is where it is, what it waits for, and when it can move; `None` if there is none.
    pub async fn explain(&self, id: &MessageId) -> Result<Option<Explanation>, StoreError> {
        let Some(message) = self.store.get(id.clone()).await? else { return Ok(None) };
        let content = self.store.content(id.clone()).await?.unwrap_or_default();
        let closed = self.store.gates().await?;
        let now = self.clock.now();
        let line = self.lines.get(&message.route);
        let destination = line.map(|line| line.destination(&message, &content));
        let of_campaign = match message.state {
            State::Waiting { .. } => self.campaign_gates(&message, &content, now).await?,
            _ => Vec::new(),
        };
        let way = line.zip(destination.as_deref()).map(|(line, destination)| {
            let lacks = line.transport(message.lane).lacks();
            let own = line.gates.iter();
            let own = own.map(|gate| GateView::of(gate.name(), gate.known(&message, &content, now), now));
            Way { route: &line.route, destination, lacks, own: own.chain(of_campaign).collect() }
        });
        Ok(Some(explain(&message, &content, way.as_ref(), &closed, now)))
    }

    /// Stops everything of a route, destination, sender, campaign or workspace until it is resumed.
    pub async fn pause(&self, scope: Scope, name: &str, actor: &Arc<str>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let key = GateKey::pause(scope, name);
        let record = GateRecord {
            key: key.clone(),
            version: 0,
            since: now,
            reason: format!("paused by {actor}").into(),
            closed: Closed::Paused,
        };
        self.set_gate(key, Some(record), Some(self.audit("pause", scope, name, actor))).await
    }

    /// Lets everything of a route, destination, sender, campaign or workspace go again, holds included; of a destination also
    /// what its breaker stops, and what it asked to be spared.
    pub async fn resume(&self, scope: Scope, name: &str, actor: &Arc<str>) -> Result<(), StoreError> {
        let mut keys = vec![GateKey::pause(scope, name), GateKey::hold(scope, name)];
        if scope == Scope::Destination {
            keys.extend([GateKey::throttle(name), GateKey::breaker(name)]);
        }
        for key in keys {
            self.set_gate(key, None, Some(self.audit("resume", scope, name, actor))).await?;
        }
        self.wake_all();
        Ok(())
    }

    fn audit(&self, action: &'static str, scope: Scope, name: &str, actor: &Arc<str>) -> Audit {
        let subject = format!("{}:{name}", scope.name()).into();
        Audit { actor: actor.clone(), action, subject, at: self.clock.now(), detail: None }
    }

    pub(crate) async fn set_gate(
        &self,
        key: GateKey,
        record: Option<GateRecord>,
        audit: Option<Audit>,
    ) -> Result<(), StoreError> {
        for _ in 0..LOOKS_MAX {
            self.refresh_gates().await?;
            let expected_version = self.gates.version(&key);
            if expected_version == 0 && record.is_none() {
                return Ok(());
            }
            let (record, audit) = (record.clone(), audit.clone());
            let change = GateChange { key: key.clone(), expected_version, record, audit };
            if self.store.put_gate(change).await? {
                return self.refresh_gates().await;
            }
        }
        Err(StoreError::Unavailable(format!("gate {key} keeps changing")))
    }

    async fn find(&self, id: &MessageId) -> Result<Message, OperateError> {
        self.store.get(id.clone()).await?.ok_or_else(|| OperateError::NoMessage(id.clone()))
    }

    /// Writes one change; `None` if somebody else was faster.
    pub(crate) async fn write(&self, change: Change) -> Result<Option<Message>, StoreError> {
        let (event, after) = (change.event.clone(), change.message.clone());
        let letter = change.spawn.as_ref().map(|row| row.message.clone());
        match self.store.apply(vec![change]).await?.pop() {
            Some(Applied::Applied | Applied::AlreadyMine) => {
                self.observer.observe(&event);
                self.wake_for(&after);
                letter.iter().for_each(|letter| self.wake_for(letter));
                Ok(Some(after))
            }
            Some(Applied::Superseded(_)) | None => Ok(None),
        }
    }
}
