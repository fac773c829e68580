//! The last look before a mail of a campaign goes out: whether it still may, and what it says. Whatever has changed since it
//! was planned counts here: a pause, a stop, a window, a quota.

use std::time::Duration;

use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{Allowance, CampaignState, Follows, MailOf, Prospect, StepKey, follows};
use redeliver_core::classify::is_hard_bounce;
use redeliver_core::email::{Email, message_id};
use redeliver_core::gate::{Closed, GateKey, Scope};
use redeliver_core::outcome::Until;
use redeliver_core::quota::{CounterKey, may_have_gone_out};
use redeliver_core::{Content, Failure, Message, Name, Outcome, State, Timestamp};

use super::plan::zone_of;
use super::{CampaignError, Desk, Ways};
use crate::campaigns::{Dossier, Keyed, ReserveRequest, Reserved, Suppression};
use crate::emit::Counted;
use crate::engine::Engine;
use crate::store::StoreError;

/// How soon a mail is looked at again that could not be looked at.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// Why a mail waits whose recipient wants no more.
pub(super) const SUPPRESSED: &str = "recipient is suppressed";
/// Why a mail waits whose prospect was paused.
const PAUSED: &str = "paused by an operator";
/// Why a mail waits whose window is closed.
pub(super) const OUTSIDE: &str = "it is outside its sending window";
/// Why a mail waits whose sender keeps a distance.
pub(super) const BUSY: &str = "its sender is keeping its spacing";
/// How soon one that this instance can do nothing with.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// A mail that may go out now, and what it was counted in.
pub(crate) struct Prepared {
    workspace: Name,
    address: String,
    /// What it says, where that has just been written.
    pub(crate) content: Option<Content>,
    counted: Vec<CounterKey>,
}

impl Engine {
    /// Looks whether a mail of a campaign may go out now, and writes and counts it; else what stands in for the try. A message
    /// that is nothing of a campaign passes.
    pub(crate) async fn prepare(
        &self,
        message: &Message,
        content: &Content,
    ) -> Result<Option<Prepared>, Outcome> {
        let Some(of) = MailOf::of_content(content) else { return Ok(None) };
        let now = self.clock.now();
        let is_unwritten = MailOf::is_unwritten(content);
        let Some(desk) = &self.desk else {
            let until = Until::At(now.plus(LONG_WAIT));
            let reason = "this instance knows no campaigns".into();
            return if is_unwritten { Err(Outcome::Deferred { until, reason }) } else { Ok(None) };
        };
        match self.keep_out(desk, &of, message, content, now).await {
            Ok(Some(outcome)) => return Err(outcome),
            Ok(None) => {}
            Err(error) => {
                self.observer.store_failed("looking who wants no more", &error);
                return Err(deferred(now.plus(SHORT_WAIT), "the store does not answer"));
            }
        }
        match self.look(desk, &of, message, content, now).await {
            Ok(looked) => looked,
            Err(CampaignError::Store(error)) => {
                self.observer.store_failed("looking at a campaign", &error);
                Err(deferred(now.plus(SHORT_WAIT), "the store does not answer"))
            }
            Err(other) => Err(deferred(now.plus(LONG_WAIT), &other.to_string())),
        }
    }

    /// What stands in for the try if whoever a mail is for wants no more: it waits until they are taken off the list.
    async fn keep_out(
        &self,
        desk: &Desk,
        of: &MailOf,
        message: &Message,
        content: &Content,
        now: Timestamp,
    ) -> Result<Option<Outcome>, StoreError> {
        let Some(dossier) = dossier(desk, of, message).await? else { return Ok(None) };
        if dossier.state == CampaignState::Cancelled || dossier.prospect.stopped_for.is_some() {
            return Ok(None);
        }
        let address = whom(content, &dossier.prospect.prospect);
        if desk.store.suppressed(&message.workspace, &address).await?.is_none() {
            return Ok(None);
        }
        let key = GateKey::suppression(&message.workspace);
        if !self.gates.is_closed(&key) {
            // Somebody was taken off the list, and all who waited are let go: were the gate closed behind the first of them
            // who is still on it, it would keep the others in.
            if self.store.parked().await?.contains(&key) {
                return Ok(Some(deferred(now.plus(LONG_WAIT), SUPPRESSED)));
            }
            self.close(key.clone(), Closed::Suppressed, SUPPRESSED, now).await?;
        }
        // Taken off the list before the gate was closed, nobody would open it any more.
        match desk.store.suppressed(&message.workspace, &address).await? {
            Some(_) => Ok(Some(Outcome::Deferred { until: Until::Opens(key), reason: SUPPRESSED.into() })),
            None => Ok(None),
        }
    }

    /// What stands in for the try if whoever a mail is for is paused: it waits until they are resumed.
    async fn wait_for_prospect(
        &self,
        desk: &Desk,
        of: &MailOf,
        message: &Message,
        since: Timestamp,
    ) -> Result<Option<Outcome>, StoreError> {
        let key = GateKey::prospect(&of.campaign, &of.prospect);
        self.close(key.clone(), Closed::Paused, PAUSED, since).await?;
        // Resumed before the gate was closed, nobody would open it any more.
        let is_paused = |dossier: &Dossier| dossier.prospect.paused_at.is_some();
        if dossier(desk, of, message).await?.as_ref().is_some_and(is_paused) {
            return Ok(Some(Outcome::Deferred { until: Until::Opens(key), reason: PAUSED.into() }));
        }
        self.set_gate(key, None, None).await?;
        Ok(None)
    }

    /// Gives back what a mail was counted in, if nothing went out; and writes down who can't be reached at all.
    pub(crate) async fn account(&self, prepared: &Prepared, outcome: &Outcome) {
        self.note_bounce(prepared, outcome).await;
        let Some(desk) = self.desk.as_ref().filter(|_| !may_have_gone_out(outcome)) else { return };
        if prepared.counted.is_empty() {
            return;
        }
        // What can't be given back stays counted: a day may end below its quota, and never above.
        match desk.store.give_back(prepared.counted.clone()).await {
            Ok(()) => {
                prepared.counted.iter().for_each(|key| self.observer.quota(key.whose, Counted::Returned))
            }
            Err(error) => self.observer.store_failed("giving back a quota", &error),
        }
    }

    async fn note_bounce(&self, prepared: &Prepared, outcome: &Outcome) {
        let Outcome::Refused(failure) = outcome else { return };
        let Some(desk) = self.desk.as_ref().filter(|_| is_hard_bounce(failure)) else { return };
        let bounced = Suppression { address: prepared.address.clone(), reason: "bounced".into() };
        let now = self.clock.now();
        // What can't be written down is found out again with the next mail.
        if let Err(error) = desk.store.suppress(&prepared.workspace, vec![bounced], now, None).await {
            self.observer.store_failed("writing down who can't be reached", &error);
        }
    }

    async fn look(
        &self,
        desk: &Desk,
        of: &MailOf,
        message: &Message,
        content: &Content,
        now: Timestamp,
    ) -> Result<Result<Option<Prepared>, Outcome>, CampaignError> {
        let is_unwritten = MailOf::is_unwritten(content);
        let Some(dossier) = dossier(desk, of, message).await? else {
            let gone = Outcome::Refused(Failure::new("its campaign or its prospect is gone"));
            return Ok(if is_unwritten { Err(gone) } else { Ok(None) });
        };
        match dossier.state {
            CampaignState::Running | CampaignState::Done => {}
            CampaignState::Draft | CampaignState::Paused => {
                let until = Until::Opens(GateKey::pause(Scope::Campaign, &of.campaign));
                return Ok(Err(Outcome::Deferred { until, reason: "its campaign is paused".into() }));
            }
            CampaignState::Cancelled => return Ok(Err(skipped("campaign_cancelled"))),
        }
        if let Some(reason) = &dossier.prospect.stopped_for {
            return Ok(Err(skipped(reason)));
        }
        if let Some(since) = dossier.prospect.paused_at
            && let Some(outcome) = self.wait_for_prospect(desk, of, message, since).await?
        {
            return Ok(Err(outcome));
        }
        let Some(ways) = desk.ways(&of.campaign, dossier.settings_version).await? else {
            return Ok(Ok(None));
        };
        let prospect = &dossier.prospect.prospect;
        let zone = zone_of(prospect);
        let before = previous(desk, &ways, of).await?;
        if let Some(outcome) = before.as_ref().and_then(|before| before.keeps(&ways, zone.as_ref(), of, now))
        {
            return Ok(Err(outcome));
        }
        let calendar = ways.calendar(zone.as_ref());
        if !calendar.is_open(now) {
            return Ok(Err(deferred(desk.offer(&ways, &calendar, now), OUTSIDE)));
        }
        let written = match is_unwritten {
            false => None,
            true => match ways.templates.write(&ways.campaign, of.step, prospect) {
                Ok(email) => Some(in_thread(email, before.as_ref(), &ways, content)),
                Err(wrong) => return Ok(Err(Outcome::Refused(Failure::new(wrong)))),
            },
        };
        let request = reservation(&ways, message, of, now);
        let allowances = request.allowances.clone();
        let (not_before, reason) = match desk.store.reserve(request).await? {
            Reserved::Yes => {
                allowances
                    .iter()
                    .for_each(|allowance| self.observer.quota(allowance.key.whose, Counted::Used));
                let counted = allowances.into_iter().map(|allowance| allowance.key).collect();
                let (workspace, address) = (message.workspace.clone(), whom(content, prospect));
                return Ok(Ok(Some(Prepared { workspace, address, content: written, counted })));
            }
            Reserved::Busy(free_at) => (free_at, BUSY.to_owned()),
            Reserved::Full(index) => {
                allowances
                    .get(index)
                    .iter()
                    .for_each(|full| self.observer.quota(full.key.whose, Counted::Full));
                full(allowances.get(index), now)
            }
        };
        Ok(Err(deferred(desk.offer(&ways, &calendar, not_before), &reason)))
    }
}

/// What a mail takes when it goes out now.
pub(super) fn reservation(ways: &Ways, message: &Message, of: &MailOf, now: Timestamp) -> ReserveRequest {
    let slots = ways.sending.spacing.slots(ways.sender());
    ReserveRequest {
        workspace: message.workspace.clone(),
        sender: ways.sender().into(),
        now,
        free_at: slots.map_or(now, |slots| slots.free_at(now)),
        allowances: ways.sending.counters(&message.workspace, &of.campaign, ways.sender(), now),
    }
}

/// When there may be room again in what is full, and what that is.
pub(super) fn full(allowance: Option<&Allowance>, now: Timestamp) -> (Timestamp, String) {
    let whose = allowance.map_or("", |full| full.key.whose.name());
    let again_at = allowance.map_or(now.plus(LONG_WAIT), |full| full.again_at(now));
    (again_at, format!("the quota of its {whose} is used up"))
}

/// What is known of a mail's campaign and prospect. What a message says of itself may be somebody's invention: a campaign of
/// another workspace is none of its own.
pub(super) async fn dossier(
    desk: &Desk,
    of: &MailOf,
    message: &Message,
) -> Result<Option<Dossier>, StoreError> {
    let found = desk.store.dossier(&of.campaign, &of.prospect).await?;
    Ok(found.filter(|dossier| dossier.workspace == message.workspace))
}

/// Whom a mail is for: who stands in it, once it is written, because a person may have corrected the address since.
pub(super) fn whom(content: &Content, prospect: &Prospect) -> String {
    let written = Email::of_content(content).and_then(Result::ok);
    let to = written.and_then(|email| email.to.into_iter().next()).map(|to| to.address);
    to.unwrap_or_else(|| prospect.email.clone()).to_lowercase()
}

/// The mail of the step before, and how that one stands.
pub(super) struct Before {
    keyed: Keyed,
    thread: Vec<Keyed>,
}

pub(super) async fn previous(desk: &Desk, ways: &Ways, of: &MailOf) -> Result<Option<Before>, StoreError> {
    let keys =
        (1..of.step).filter_map(|step| StepKey::new(&of.prospect, &ways.campaign.sequence_id, step).ok());
    let keys: Vec<String> = keys.map(|key| key.to_string()).collect();
    if keys.is_empty() {
        return Ok(None);
    }
    let mut thread: Vec<Option<Keyed>> = desk.store.by_keys(&ways.workspace, keys).await?;
    let Some(keyed) = thread.pop().flatten() else { return Ok(None) };
    Ok(Some(Before { keyed, thread: thread.into_iter().flatten().collect() }))
}

impl Before {
    /// Whether the next step may go out now, as far as this one is concerned.
    pub(super) fn lets(&self, ways: &Ways, zone: Option<&Zone>, of: &MailOf, now: Timestamp) -> Follows {
        let Some(message) = &self.keyed.message else { return Follows::Now };
        let delay_days = ways.campaign.in_order().get(of.step as usize - 1).map_or(0, |step| step.delay_days);
        follows(message, delay_days, zone.unwrap_or(&ways.sending.zone), now)
    }

    /// What keeps the next step from going out now.
    fn keeps(&self, ways: &Ways, zone: Option<&Zone>, of: &MailOf, now: Timestamp) -> Option<Outcome> {
        match self.lets(ways, zone, of, now) {
            Follows::Now => None,
            Follows::NotBefore { at, reason } => Some(deferred(at, reason)),
            Follows::Never { reason } => Some(skipped(reason)),
        }
    }
}

/// What an answer to those before it carries.
fn in_thread(email: Email, before: Option<&Before>, ways: &Ways, content: &Content) -> Content {
    // An e-mail of texts can always be written.
    let written = threaded(email, before, ways).to_content().unwrap_or_default();
    Content { attributes: content.attributes.clone(), headers: content.headers.clone(), ..written }
}

/// The mail as an answer to those before it that went out.
pub(super) fn threaded(mut email: Email, before: Option<&Before>, ways: &Ways) -> Email {
    let went_out = |keyed: &&Keyed| {
        keyed.message.as_ref().is_none_or(|message| matches!(message.state, State::Delivered { .. }))
    };
    let thread = before.into_iter().flat_map(|before| before.thread.iter().chain([&before.keyed]));
    let ids: Vec<String> =
        thread.filter(went_out).map(|keyed| message_id(&keyed.id, ways.sender())).collect();
    email.in_reply_to = ids.last().cloned();
    email.references = ids;
    email
}

fn deferred(until: Timestamp, reason: &str) -> Outcome {
    Outcome::Deferred { until: Until::At(until), reason: reason.into() }
}

fn skipped(reason: &str) -> Outcome {
    Outcome::Skipped { reason: reason.into() }
}
