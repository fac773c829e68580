//! The port to whatever remembers campaigns: what they are, whom they write to, what of them has been planned, and how much
//! of each quota is used.

use async_trait::async_trait;
use redeliver_core::campaign::{
    Allowance, Campaign, CampaignState, Ends, Ledger, Prospect, Settings, StepKey,
};
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::quota::{CounterKey, Whose};
use redeliver_core::{InstanceId, Message, MessageId, Name, Timestamp};

use crate::store::StoreError;

/// Remembers campaigns. Every call is one transaction; an answer means that it is durable.
#[async_trait]
pub trait Campaigns: Send + Sync + 'static {
    /// A workspace's settings; those that narrow nothing if none were ever given.
    async fn workspace(&self, workspace: &str) -> Result<WorkspaceRecord, StoreError>;

    /// Gives a workspace its settings, with the deed.
    async fn put_settings(&self, workspace: Name, settings: Settings, audit: Audit)
    -> Result<(), StoreError>;

    /// Keeps a new campaign, with the deed; `false` if there is one with that id already.
    async fn add_campaign(&self, campaign: CampaignRecord, audit: Audit) -> Result<bool, StoreError>;

    /// The campaign with this id.
    async fn campaign(&self, id: &str) -> Result<Option<CampaignRecord>, StoreError>;

    /// All campaigns of a workspace, oldest first.
    async fn campaigns(&self, workspace: &str) -> Result<Vec<CampaignRecord>, StoreError>;

    /// Campaigns of all workspaces that run and have somebody to plan, or whose last mail was to go out by now.
    async fn unfinished(&self, now: Timestamp) -> Result<Vec<Unfinished>, StoreError>;

    /// Moves a campaign from one state to another, with the deed; `false`, and nothing written, if it stands otherwise.
    async fn move_campaign(&self, change: CampaignChange) -> Result<bool, StoreError>;

    /// Enrols prospects in the order given, behind those who are there. Says of each whether it is new: an id that is known
    /// stays as it was.
    async fn enrol(&self, campaign: &str, prospects: Vec<Prospect>) -> Result<Vec<bool>, StoreError>;

    /// Puts what is said now in the place of what was said of a prospect; `false` if there is none.
    async fn correct(&self, campaign: &str, prospect: Prospect) -> Result<bool, StoreError>;

    /// A campaign's prospects behind a position, in order.
    async fn prospects(
        &self,
        campaign: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ProspectRecord>, StoreError>;

    /// Stops one prospect, with the deed; `false`, and nothing written, if there is none or it was stopped before.
    async fn stop_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        reason: &str,
        audit: Audit,
    ) -> Result<bool, StoreError>;

    /// Pauses one prospect as of the deed; `false`, and nothing written, if there is none, or they are paused or stopped.
    async fn pause_prospect(&self, campaign: &str, prospect: &str, audit: Audit) -> Result<bool, StoreError>;

    /// Lets one prospect go on, with the deed; `false`, and nothing written, if there is none or they are not paused.
    async fn resume_prospect(&self, campaign: &str, prospect: &str, audit: Audit)
    -> Result<bool, StoreError>;

    /// What has to be known before a mail to a prospect goes out; `None` if there is no such campaign or prospect.
    async fn dossier(&self, campaign: &str, prospect: &str) -> Result<Option<Dossier>, StoreError>;

    /// Marks that an instance plans a campaign until a time, unless another one's mark still holds. Taking over a mark whose time
    /// has passed counts as an interruption; a part that is kept, and a move of the campaign, forget them.
    async fn begin_planning(&self, mark: PlanningMark) -> Result<Planning, StoreError>;

    /// Takes the mark of this instance off a campaign: its planning ended in an orderly way.
    async fn end_planning(&self, campaign: &str, planner: InstanceId) -> Result<(), StoreError>;

    /// Keeps a part of a plan with its mails, if nobody has planned anything in the workspace since it was read and the
    /// campaign runs. A mail whose key is known is left out.
    async fn keep_part(&self, part: PlanPart) -> Result<PartKept, StoreError>;

    /// The messages of these keys, each as far as it is known.
    async fn by_keys(&self, workspace: &str, keys: Vec<String>) -> Result<Vec<Option<Keyed>>, StoreError>;

    /// Counts a mail in every row that it takes room in, and says when its sender is free again; or counts nothing, and says
    /// why not.
    async fn reserve(&self, request: ReserveRequest) -> Result<Reserved, StoreError>;

    /// What would keep a mail from being counted, found out without counting it.
    async fn room(&self, request: ReserveRequest) -> Result<Room, StoreError>;

    /// Takes back what was counted for a mail that did not go out.
    async fn give_back(&self, keys: Vec<CounterKey>) -> Result<(), StoreError>;

    /// Puts addresses on a workspace's list of those who want no more, with the deed if a person did it. Says how many are
    /// new: one that is there stays as it was.
    async fn suppress(
        &self,
        workspace: &str,
        addresses: Vec<Suppression>,
        at: Timestamp,
        audit: Option<Audit>,
    ) -> Result<u64, StoreError>;

    /// Takes an address off the list, with the deed; `false`, and nothing written, if it isn't there.
    async fn unsuppress(&self, workspace: &str, address: &str, audit: Audit) -> Result<bool, StoreError>;

    /// Why an address is on the list, if it is.
    async fn suppressed(&self, workspace: &str, address: &str) -> Result<Option<Name>, StoreError>;

    /// The addresses of the list behind one, in order, each with since when.
    async fn suppressions(
        &self,
        workspace: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Suppression, Timestamp)>, StoreError>;

    /// Mails of a campaign that went out, or may have: for each day on which there was one, in order, its number and theirs.
    async fn sent_by(&self, workspace: &str, campaign: &str) -> Result<Vec<(i64, u64)>, StoreError>;

    /// What is counted in the rows of a workspace for a day, by whose and name.
    async fn used_on(&self, workspace: &str, day: i64) -> Result<Vec<Used>, StoreError>;
}

/// A workspace, as far as campaigns are concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceRecord {
    /// Its settings.
    pub settings: Settings,
    /// Goes up when they change.
    pub settings_version: u64,
    /// Goes up when something is planned.
    pub plan_version: u64,
}

/// A campaign as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignRecord {
    /// Which one. Ids sort by the time they were made.
    pub id: Name,
    /// Whose.
    pub workspace: Name,
    /// What it is. Never changes.
    pub definition: Campaign,
    /// Where it stands.
    pub state: CampaignState,
    /// What of it has been planned.
    pub ledger: Ledger,
    /// How many prospects are enrolled.
    pub prospects: u64,
    /// How many mails have been scheduled.
    pub scheduled: u64,
    /// When the last of them was to go out.
    pub last_at: Option<Timestamp>,
    /// Why it was paused, if nobody did it by hand.
    pub paused_for: Option<Name>,
    /// How many of them have ended without going out. Counted with each change of a message, in the same transaction.
    pub ends: Ends,
    /// Since when it is there.
    pub created_at: Timestamp,
}

impl CampaignRecord {
    /// What the mail of a step to a prospect is called; what can't be called anything is nobody's.
    pub fn key(&self, prospect: &str, step: u32) -> String {
        let key = StepKey::new(prospect, &self.definition.sequence_id, step);
        key.map(String::from).unwrap_or_default()
    }
}

/// A running campaign that has something left to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Which one.
    pub id: Name,
    /// Whether everybody who is enrolled has been planned.
    pub is_planned: bool,
}

/// A move of a campaign from one state to another.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignChange {
    /// Which one.
    pub id: Name,
    /// Where it must stand.
    pub from: CampaignState,
    /// Where it is to stand.
    pub to: CampaignState,
    /// Why it is paused, if nobody does it by hand.
    pub paused_for: Option<Name>,
    /// Who did it.
    pub audit: Audit,
}

/// A prospect as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ProspectRecord {
    /// Their place in the order of enrolment, from 1.
    pub position: u64,
    /// Who.
    pub prospect: Prospect,
    /// Why nothing more goes out to them, if nothing does.
    pub stopped_for: Option<Name>,
    /// Since when they are paused, if they are. Whoever was stopped is paused no more.
    pub paused_at: Option<Timestamp>,
}

/// What has to be known before a mail goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Dossier {
    /// Whose its campaign is.
    pub workspace: Name,
    /// Where its campaign stands.
    pub state: CampaignState,
    /// The version of its workspace's settings.
    pub settings_version: u64,
    /// Whom it goes to.
    pub prospect: ProspectRecord,
}

/// Who plans a campaign, and for how long that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanningMark {
    /// Which campaign.
    pub campaign: Name,
    /// Which instance.
    pub planner: InstanceId,
    /// The time.
    pub now: Timestamp,
    /// Until when nobody else begins, unless it is renewed.
    pub until_at: Timestamp,
}

/// Whether planning can begin.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Planning {
    /// It is marked. So many plannings in a row were interrupted without keeping a part.
    Begun {
        /// How many.
        interruptions: u32,
    },
    /// Another instance's mark holds until this time, or the campaign is not there.
    Taken,
}

/// A part of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanPart {
    /// Of which campaign.
    pub campaign: Name,
    /// In which workspace.
    pub workspace: Name,
    /// What the workspace's `plan_version` must be.
    pub expected_version: u64,
    /// The plan as it stands with this part.
    pub ledger: Ledger,
    /// When the last of the campaign's mails goes out, this part's included.
    pub last_at: Option<Timestamp>,
    /// The mails.
    pub rows: Vec<NewRow>,
}

/// What became of a part of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKept {
    /// It is kept; so many of its mails are new, and the others were known.
    Kept(u64),
    /// Somebody else has planned something, or the campaign doesn't run: nothing was written.
    Superseded,
}

/// A message that a key stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed {
    /// Which one.
    pub id: MessageId,
    /// As it stands, while it is kept.
    pub message: Option<Message>,
}

/// What a mail takes when it goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct ReserveRequest {
    /// Whose workspace.
    pub workspace: Name,
    /// Who sends it.
    pub sender: Name,
    /// When.
    pub now: Timestamp,
    /// When the sender is free again after it.
    pub free_at: Timestamp,
    /// The rows that it takes room in, in the order of their keys.
    pub allowances: Vec<Allowance>,
}

/// What became of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is counted everywhere.
    Yes,
    /// The sender is free at this time.
    Busy(Timestamp),
    /// There is no room left in this one of its allowances.
    Full(usize),
}

/// What keeps a mail from being counted; nothing, if it would be.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// When its sender is free, if that is later.
    pub free_at: Option<Timestamp>,
    /// The first of its allowances that has no room left.
    pub full: Option<usize>,
}

/// Somebody who wants no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Their address, in small letters.
    pub address: String,
    /// Why, in a word.
    pub reason: Name,
}

/// What is counted in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Whose mails.
    pub whose: Whose,
    /// The name of whoever that is.
    pub name: Name,
    /// How many.
    pub used: u64,
    /// Days before it on which there was a mail, of the same.
    pub sending_days_before: u32,
}
