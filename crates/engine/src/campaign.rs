//! Campaigns as an engine works them: planned in parts, looked at once more before each mail goes out.
//!
//! Nothing here decides when a mail goes out: core's planner and calendar do. What is remembered here can vanish at any time.

mod act;
mod dispatch;
mod enter;
mod explain;
mod look;
mod plan;
mod preview;
mod suppress;
mod template;
mod tend;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::calendar::{Calendar, Zone};
use redeliver_core::campaign::{Campaign, NotNow, Problem, Ranges, Sending, Settings};
use redeliver_core::quota::Urgency;
use redeliver_core::{Name, Timestamp};
use tokio::sync::Notify;

use crate::campaigns::{CampaignRecord, Campaigns, Keyed};
use crate::store::StoreError;
pub use look::{CampaignCalendar, CampaignDay, Place, ScheduledMail};
use plan::Again;
pub use plan::Scheduling;
pub use preview::Unwritten;
use template::Templates;

/// Campaigns whose rules are remembered.
const REMEMBERED_MAX: usize = 1_000;
/// Ranges of slots that are remembered as offered, for each sender.
const OFFERS_MAX: usize = 10_000;

/// How soon a mail is looked at again whose window does not open as far as can be seen.
const NEVER_OPEN_WAIT: Duration = Duration::from_secs(86_400);

/// Why something was not done to a campaign.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum CampaignError {
    /// There is no such campaign, or this engine knows none.
    #[error("there is no campaign {0:?}")]
    NoCampaign(String),
    /// It makes no sense as the campaign stands.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// There is no such prospect.
    #[error("the campaign has no prospect {0:?}")]
    NoProspect(String),
    /// A prospect was stopped for good, and why.
    #[error("prospect {prospect:?} was stopped ({reason}), and that is final")]
    Stopped {
        /// Who.
        prospect: String,
        /// Why.
        reason: Name,
    },
    /// Its route can't carry campaigns, and why.
    #[error("{0}")]
    Route(String),
    /// Something is wrong with it.
    #[error("{} {}", .0.first().map_or("it", |problem| problem.field.as_str()), .0.first().map_or("is wrong", |problem| problem.problem.as_str()))]
    Wrong(Vec<Problem>),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an engine has at hand for campaigns.
pub(crate) struct Desk {
    pub(crate) store: Arc<dyn Campaigns>,
    rules: Mutex<HashMap<Name, (u64, Arc<Ways>)>>,
    /// The slots of each sender that were offered to mails that had to wait.
    offers: Mutex<HashMap<(Name, Name), Ranges>>,
    /// Whoever plans in a workspace: one at a time in this process.
    planning: Mutex<HashMap<Name, Arc<tokio::sync::Mutex<()>>>>,
    /// Up to which position the prospects of each campaign have come to their ends, while so many mails were scheduled.
    ended: Mutex<HashMap<Name, (u64, u64)>>,
    /// Second looks at those who could not be planned, as far as they have come.
    again: Mutex<HashMap<Name, Again>>,
    /// Told when there may be something to plan.
    woken: Notify,
}

/// The rules of one campaign, understood.
struct Ways {
    workspace: Name,
    campaign: Campaign,
    sending: Sending,
    templates: Templates,
    by_zone: Mutex<HashMap<String, Option<Calendar>>>,
}

impl Desk {
    pub(crate) fn new(store: Arc<dyn Campaigns>) -> Self {
        Self {
            store,
            rules: Mutex::default(),
            offers: Mutex::default(),
            planning: Mutex::default(),
            ended: Mutex::default(),
            again: Mutex::default(),
            woken: Notify::new(),
        }
    }

    /// What whoever plans in a workspace holds meanwhile.
    fn planning(&self, workspace: &Name) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(lock(&self.planning).entry(workspace.clone()).or_default())
    }

    /// The mails to some prospects, by their ids: of each, and of each step in order, the one that is known.
    async fn mails_of(
        &self,
        record: &CampaignRecord,
        prospects: Vec<&str>,
    ) -> Result<Vec<Vec<Option<Keyed>>>, StoreError> {
        let steps = record.definition.in_order();
        let keys =
            prospects.into_iter().flat_map(|id| steps.iter().map(move |step| record.key(id, step.order)));
        let mut found = self.store.by_keys(&record.workspace, keys.collect()).await?.into_iter();
        let mut mails = Vec::new();
        while found.len() > 0 {
            mails.push(found.by_ref().take(steps.len()).collect());
        }
        Ok(mails)
    }

    /// Remembers how far the second look at a campaign's prospects has come; that it is over, if it is.
    fn remember(&self, id: &str, again: Option<Again>) {
        match again {
            Some(again) => drop(lock(&self.again).insert(id.into(), again)),
            None => drop(lock(&self.again).remove(id)),
        }
    }

    /// The rules of a campaign by this version of its workspace's settings.
    async fn ways(&self, id: &str, settings_version: u64) -> Result<Option<Arc<Ways>>, CampaignError> {
        if let Some((version, ways)) = lock(&self.rules).get(id)
            && *version == settings_version
        {
            return Ok(Some(Arc::clone(ways)));
        }
        let Some(record) = self.store.campaign(id).await? else { return Ok(None) };
        let workspace = self.store.workspace(&record.workspace).await?;
        let ways = Arc::new(Ways::new(record.workspace, record.definition, &workspace.settings)?);
        let mut rules = lock(&self.rules);
        if rules.len() >= REMEMBERED_MAX {
            rules.clear();
        }
        rules.insert(id.into(), (workspace.settings_version, Arc::clone(&ways)));
        Ok(Some(ways))
    }

    /// A time for a mail that has to wait: open, not before a time, and offered to nobody else of its sender.
    fn offer(&self, ways: &Ways, calendar: &Calendar, not_before: Timestamp) -> Timestamp {
        let Some(slots) = ways.sending.spacing.slots(ways.sender()) else {
            return calendar.next_open(not_before).unwrap_or(not_before.plus(NEVER_OPEN_WAIT));
        };
        let mut offers = lock(&self.offers);
        let taken = offers.entry((ways.workspace.clone(), ways.sender().into())).or_default();
        if taken.len() > OFFERS_MAX {
            taken.clear();
        }
        let mut from = not_before;
        // A day has more slots than this only where the window is open nearly always.
        for _ in 0..OFFERS_MAX {
            let Some(open) = calendar.next_open(from) else {
                return not_before.plus(NEVER_OPEN_WAIT);
            };
            let cell = taken.free_from(slots.first_from(open));
            let at = slots.slot(cell);
            if calendar.is_open(at) {
                taken.insert(cell);
                return at;
            }
            from = at;
        }
        from
    }
}

impl Ways {
    fn new(workspace: Name, campaign: Campaign, settings: &Settings) -> Result<Self, CampaignError> {
        let sending = Sending::new(settings, campaign.settings.as_ref()).map_err(CampaignError::Wrong)?;
        let sending = Sending { urgency: Urgency::of(campaign.lane()), ..sending };
        let templates = Templates::new(&campaign).map_err(CampaignError::Wrong)?;
        Ok(Self { workspace, campaign, sending, templates, by_zone: Mutex::default() })
    }

    fn sender(&self) -> &str {
        self.campaign.from.as_ref().map_or("", |from| from.address.as_str())
    }

    /// When mails to somebody in this zone go out; the campaign's own hours where there is no such time there.
    fn calendar(&self, zone: Option<&Zone>) -> Calendar {
        let Some(zone) = zone else { return self.sending.calendar.clone() };
        let mut known = lock(&self.by_zone);
        let found =
            known.entry(zone.name().to_owned()).or_insert_with(|| self.sending.calendar.in_zone(zone).ok());
        found.clone().unwrap_or_else(|| self.sending.calendar.clone())
    }
}

/// Everything that is wrong with a campaign in a workspace with these settings, its templates included.
pub fn problems(campaign: &Campaign, workspace: &Settings) -> Vec<Problem> {
    let mut problems = campaign.problems();
    let wrong = |field: &str, problem: &str| Problem { field: field.to_owned(), problem: problem.to_owned() };
    match &campaign.from {
        None => problems.push(wrong("from", "is missing: threads and distances go by it")),
        Some(from) if !from.address.is_ascii() => {
            problems.push(wrong("from.address", "must be ASCII: write its domain as xn--…"));
        }
        Some(_) => {}
    }
    problems.extend(Templates::new(campaign).err().unwrap_or_default());
    match Sending::new(workspace, campaign.settings.as_ref()) {
        Ok(sending) => problems.extend(sending.cannot_be_kept().map(|what| wrong("settings.ramp_up", what))),
        Err(found) => problems.extend(found),
    }
    problems
}

/// What is wrong with a workspace's settings.
pub fn workspace_problems(settings: &Settings) -> Vec<Problem> {
    let mut problems = settings.problems();
    if let Ok(sending) = Sending::new(settings, None)
        && let Some(what) = sending.cannot_be_kept()
    {
        problems.push(Problem { field: "ramp_up".to_owned(), problem: what.to_owned() });
    }
    problems
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
