//! Finds messages for people. What the store has an index for is asked of the store: status, route, workspace, priority,
//! key and the time of acceptance, which is in the id. A recipient and the words of an error have none, because it would
//! cost every message; they are looked for one by one, so many at a time, and the next page goes on from there. So are
//! rows of applications' tables by their times, which nothing says that their ids are in the order of.

use redeliver_core::bulk::Bulk;
use redeliver_core::email::Email;
use redeliver_core::fingerprint::fingerprint;
use redeliver_core::status::Status;
use redeliver_core::{Failure, Lane, Message, MessageId, Timestamp};

use crate::engine::Engine;
use crate::store::{Filter, StatusAt, StoreError};

/// Messages that are looked through for one page, at most.
pub const LOOKED_THROUGH_MAX: usize = 5_000;

/// Contents that are looked into for one page, at most: each is a question of its own.
pub const OPENED_MAX: usize = 300;

/// Messages that are fetched at once while looking through many.
const BATCH_LEN: usize = 500;

/// Behind every message of our own, where the rows of applications' tables begin.
const BEHIND_OURS: MessageId = MessageId::own(0);

/// Which messages somebody wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// What the store is asked.
    pub filter: Filter,
    /// Accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Accepted before this time.
    pub before: Option<Timestamp>,
    /// For somebody whose address has this in it, whatever the case; of what is no e-mail, one of its attributes.
    pub recipient: Option<String>,
    /// With an error that has this in its code or its words, whatever the case.
    pub error: Option<String>,
    /// Whose last error has this fingerprint.
    pub fingerprint: Option<String>,
    /// Those too of which nobody knows when they were accepted, whatever the times are.
    pub with_timeless: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The newest first.
    pub messages: Vec<Message>,
    /// Behind which message it goes on; `None` if there is nothing more.
    pub next: Option<MessageId>,
}

impl Search {
    /// What somebody asked for in a bulk operation. If they asked by no time, all that was there when it began is meant, and so
    /// is what nobody knows the time of.
    pub fn of(bulk: &Bulk, now: Timestamp) -> Self {
        let which = &bulk.which;
        let asked_by_time =
            which.since.is_some() || which.before.is_some_and(|before| before <= bulk.created_at);
        let status = which.status.as_deref().and_then(Status::from_name);
        Self {
            filter: Filter {
                workspace: which.workspace.clone(),
                route: which.route.clone(),
                lane: which.priority.as_deref().and_then(Lane::from_name),
                status: status.map(|status| StatusAt { status, now }),
                key: which.key.clone(),
                ..Filter::default()
            },
            since: which.since,
            before: which.before,
            recipient: which.recipient.as_deref().map(str::to_lowercase),
            error: which.error.as_deref().map(str::to_lowercase),
            fingerprint: which.fingerprint.clone(),
            with_timeless: !asked_by_time,
        }
    }

    /// Whether each message behind this one has to be looked at.
    fn looks_through(&self, after: Option<&MessageId>) -> bool {
        let by_time = self.since.is_some() || self.before.is_some();
        self.recipient.is_some()
            || self.error.is_some()
            || self.fingerprint.is_some()
            || by_time && (after == Some(&BEHIND_OURS) || matches!(after, Some(MessageId::Row(_))))
    }

    /// The next so many messages behind `after`; fewer where many had to be looked through.
    pub async fn find(
        &self,
        engine: &Engine,
        after: Option<MessageId>,
        len: usize,
    ) -> Result<Found, StoreError> {
        let mut found = Found { messages: Vec::new(), next: self.begin(after) };
        let has_rows = engine.routes().any(|route| route.table.is_some());
        let (mut seen, mut opened) = (0, 0);
        'pages: loop {
            // One more tells whether there is another page.
            let limit = if self.looks_through(found.next.as_ref()) { BATCH_LEN } else { len + 1 };
            let filter = Filter { after: found.next.clone(), limit, ..self.filter.clone() };
            let batch = engine.store().list(filter).await?;
            let is_last = batch.len() < limit;
            for message in batch {
                let is_ours = matches!(message.id, MessageId::Own(_));
                if is_ours && self.since.is_some_and(|since| message.created_at < since) {
                    // All of ours that follow are older still.
                    found.next = has_rows.then_some(BEHIND_OURS);
                    if has_rows {
                        continue 'pages;
                    }
                    return Ok(found);
                }
                if found.messages.len() == len || seen == LOOKED_THROUGH_MAX || opened == OPENED_MAX {
                    return Ok(found);
                }
                found.next = Some(message.id.clone());
                seen += usize::from(self.looks_through(found.next.as_ref()));
                if self.fits(&message) && self.is_for(engine, &message, &mut opened).await? {
                    found.messages.push(message);
                }
            }
            if is_last {
                found.next = None;
                return Ok(found);
            }
        }
    }

    /// Where to begin: ids of our own have the time in them, and come before those of applications' rows.
    fn begin(&self, after: Option<MessageId>) -> Option<MessageId> {
        match (self.before.map(|before| MessageId::fresh(before, [0; 10])), after) {
            (Some(first), None) => Some(first),
            (Some(first), Some(after @ MessageId::Own(_))) => Some(after.min(first)),
            (_, after) => after,
        }
    }

    fn fits(&self, message: &Message) -> bool {
        let has = |failure: &Failure, words: &str| {
            let code = failure.code.as_deref().unwrap_or_default();
            format!("{code} {}", failure.text).to_lowercase().contains(words)
        };
        let error = |words: &String| message.last_error.as_ref().is_some_and(|failure| has(failure, words));
        self.fits_time(message)
            && self.error.as_ref().is_none_or(error)
            && self
                .fingerprint
                .as_ref()
                .is_none_or(|wanted| *wanted == fingerprint(message.last_error.as_ref()))
    }

    fn fits_time(&self, message: &Message) -> bool {
        match message.created_at.known() {
            Some(at) => {
                self.since.is_none_or(|since| since <= at) && self.before.is_none_or(|before| at < before)
            }
            None => self.with_timeless || self.since.is_none() && self.before.is_none(),
        }
    }

    async fn is_for(
        &self,
        engine: &Engine,
        message: &Message,
        opened: &mut usize,
    ) -> Result<bool, StoreError> {
        let Some(wanted) = &self.recipient else { return Ok(true) };
        *opened += 1;
        let content = engine.store().content(message.id.clone()).await?;
        let Some(content) = content else { return Ok(false) };
        let has = |text: &str| text.to_lowercase().contains(wanted);
        Ok(match Email::of_content(&content) {
            Some(email) => email.is_ok_and(|email| email.recipients().any(|to| has(&to.address))),
            // A notification is for a device, and whatever else is said of whom it is for.
            None => content.attributes.values().any(|value| has(value)),
        })
    }
}
