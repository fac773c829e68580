//! What a mail of a campaign waits for, as whoever asks why is told. Nothing is counted, and nothing is kept.

use redeliver_core::campaign::{CampaignState, Follows, MailOf};
use redeliver_core::explain::GateView;
use redeliver_core::gate::GateKey;
use redeliver_core::{Content, Message, State, Timestamp};

use super::dispatch::{BUSY, OUTSIDE, SUPPRESSED, dossier, full, previous, reservation, whom};
use super::plan::zone_of;
use super::{CampaignError, Desk, Ways};
use crate::campaigns::Dossier;
use crate::engine::Engine;
use crate::store::StoreError;

/// Why a mail never follows the step before it.
const REFUSED_BEFORE: &str = "the step before it was refused; it is cancelled when due";

impl Engine {
    /// What stands before a mail of a campaign, in the order in which it is asked; nothing for any other message.
    pub(crate) async fn campaign_gates(
        &self,
        message: &Message,
        content: &Content,
        now: Timestamp,
    ) -> Result<Vec<GateView>, StoreError> {
        let (Some(of), Some(desk)) = (MailOf::of_content(content), &self.desk) else { return Ok(Vec::new()) };
        let Some(dossier) = dossier(desk, &of, message).await? else { return Ok(Vec::new()) };
        let mut gates = vec![its_campaign(&dossier)];
        if !waits_for(message, GateKey::is_prospect) {
            gates.push(its_prospect(&dossier));
        }
        if !waits_for(message, GateKey::is_suppression) {
            let address = whom(content, &dossier.prospect.prospect);
            let is_on_it = desk.store.suppressed(&message.workspace, &address).await?.is_some();
            gates.push(gate("suppression", is_on_it.then(|| (None, SUPPRESSED.to_owned()))));
        }
        match desk.ways(&of.campaign, dossier.settings_version).await {
            Ok(Some(ways)) => gates.extend(times(desk, &ways, &of, &dossier, message, now).await?),
            Ok(None) => {}
            Err(CampaignError::Store(error)) => return Err(error),
            Err(wrong) => gates.push(GateView::closed("window", None, wrong.to_string())),
        }
        Ok(gates)
    }
}

fn its_campaign(dossier: &Dossier) -> GateView {
    let is_ended = dossier.state == CampaignState::Cancelled;
    let words = || (None, "its campaign was cancelled; it is cancelled when due".to_owned());
    gate("campaign", is_ended.then(words))
}

fn its_prospect(dossier: &Dossier) -> GateView {
    let record = &dossier.prospect;
    let stopped = |reason| format!("prospect was stopped ({reason}); it is cancelled when due");
    let paused = |since| format!("prospect is paused since {since} until an operator resumes them");
    let words = record.stopped_for.as_ref().map(stopped).or_else(|| record.paused_at.map(paused));
    gate("prospect", words.map(|words| (None, words)))
}

/// Whether such a gate is among the shared ones of this message, because it waits there.
fn waits_for(message: &Message, is_such: fn(&GateKey) -> bool) -> bool {
    matches!(&message.state, State::Waiting { parked_for: Some(key) } if is_such(key))
}

/// The gates with a known end: the step before, the window, the sender's distance, the quotas.
async fn times(
    desk: &Desk,
    ways: &Ways,
    of: &MailOf,
    dossier: &Dossier,
    message: &Message,
    now: Timestamp,
) -> Result<Vec<GateView>, StoreError> {
    let zone = zone_of(&dossier.prospect.prospect);
    let mut gates = Vec::new();
    if of.step > 1 {
        let before = previous(desk, ways, of).await?;
        gates.push(match before.map_or(Follows::Now, |before| before.lets(ways, zone.as_ref(), of, now)) {
            Follows::Now => GateView::open("step"),
            Follows::NotBefore { at, reason } => GateView::closed("step", Some(at), reason),
            Follows::Never { .. } => GateView::closed("step", None, REFUSED_BEFORE),
        });
    }
    let calendar = ways.calendar(zone.as_ref());
    let is_open = calendar.is_open(now);
    gates.push(gate("window", (!is_open).then(|| (calendar.next_open(now), OUTSIDE.to_owned()))));
    let request = reservation(ways, message, of, now);
    let allowances = request.allowances.clone();
    let room = desk.store.room(request).await?;
    // What has room again outside of the window goes when that opens.
    let open_from = |at| calendar.next_open(at).unwrap_or(at);
    gates.push(gate("spacing", room.free_at.map(|at| (Some(open_from(at)), BUSY.to_owned()))));
    gates.push(gate(
        "quota",
        room.full.map(|index| {
            let (at, reason) = full(allowances.get(index), now);
            (Some(open_from(at)), reason)
        }),
    ));
    Ok(gates)
}

/// A gate that is closed for what is said, if anything is.
fn gate(name: &str, closed: Option<(Option<Timestamp>, String)>) -> GateView {
    match closed {
        None => GateView::open(name),
        Some((until, reason)) => GateView::closed(name, until, reason),
    }
}
