//! Messages and what goes with them as columns: one array for each, so that one statement takes any number of rows.

use redeliver_core::{Content, Message, Timestamp};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::errors::{Fault, own_or_unfit};
use crate::encode::{attributes_to_text, failure_to_text, headers_to_bytes, recipients_to_text};
use crate::standing::{Standing, is_untouched};

/// A value for a statement, with its type: nothing is prepared, so that nothing else could tell it.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Declares arrays, one for each column, and the order in which a statement takes them.
macro_rules! columns {
    ($(#[$doc:meta])* $table:ident { $($column:ident: $value:ty = $sql:ident,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $table<'a> {
            $($column: Vec<$value>,)*
            rows: std::marker::PhantomData<&'a ()>,
        }

        impl $table<'_> {
            /// The arrays in the order in which the statement takes them.
            pub(super) fn params(&self) -> Vec<Param<'_>> {
                vec![$((&self.$column, Type::$sql),)*]
            }
        }
    };
}

columns! {
    /// Messages, in the order of the table's columns.
    Messages {
        id: Uuid = UUID_ARRAY,
        workspace: &'a str = TEXT_ARRAY,
        route: &'a str = TEXT_ARRAY,
        lane: i16 = INT2_ARRAY,
        state: i16 = INT2_ARRAY,
        due_at: i64 = INT8_ARRAY,
        ready_at: Option<i64> = INT8_ARRAY,
        suspect_at: Option<i64> = INT8_ARRAY,
        fence: i64 = INT8_ARRAY,
        attempts: i32 = INT4_ARRAY,
        losses: i32 = INT4_ARRAY,
        parked_for: Option<&'a str> = TEXT_ARRAY,
        instance: Option<i64> = INT8_ARRAY,
        claim: Option<i64> = INT8_ARRAY,
        lease_until: Option<i64> = INT8_ARRAY,
        started_at: Option<i64> = INT8_ARRAY,
        cancel_requested: bool = BOOL_ARRAY,
        handed_off_at: Option<i64> = INT8_ARRAY,
        report_by: Option<i64> = INT8_ARRAY,
        ended_at: Option<i64> = INT8_ARRAY,
        put_away_at: Option<i64> = INT8_ARRAY,
        receipt: Option<String> = TEXT_ARRAY,
        dead_reason: Option<i16> = INT2_ARRAY,
        dismissed_at: Option<i64> = INT8_ARRAY,
        cancelled_for: Option<String> = TEXT_ARRAY,
        key: Option<&'a str> = TEXT_ARRAY,
        scheduled_for: i64 = INT8_ARRAY,
        created_at: i64 = INT8_ARRAY,
        expires_at: Option<i64> = INT8_ARRAY,
        generation: i32 = INT4_ARRAY,
        attempts_before: i32 = INT4_ARRAY,
        max_attempts: Option<i32> = INT4_ARRAY,
        unconfirmed: i32 = INT4_ARRAY,
        possible_duplicates: i32 = INT4_ARRAY,
        settled_claim: Option<i64> = INT8_ARRAY,
        last_error: Option<String> = TEXT_ARRAY,
        recipients: Option<String> = TEXT_ARRAY,
        is_dead_letter: bool = BOOL_ARRAY,
        first_sent_at: Option<i64> = INT8_ARRAY,
    }
}

columns! {
    /// Messages that wait for their first try: what they bring, and nothing of what may become of them.
    Untried {
        id: Uuid = UUID_ARRAY,
        workspace: &'a str = TEXT_ARRAY,
        route: &'a str = TEXT_ARRAY,
        lane: i16 = INT2_ARRAY,
        due_at: i64 = INT8_ARRAY,
        key: Option<&'a str> = TEXT_ARRAY,
        scheduled_for: i64 = INT8_ARRAY,
        created_at: i64 = INT8_ARRAY,
        expires_at: Option<i64> = INT8_ARRAY,
        max_attempts: Option<i32> = INT4_ARRAY,
    }
}

columns! {
    /// What messages carry, without their ids.
    Contents {
        target: Option<&'a str> = TEXT_ARRAY,
        attributes: Option<String> = TEXT_ARRAY,
        headers: Option<Vec<u8>> = BYTEA_ARRAY,
        content_type: Option<&'a str> = TEXT_ARRAY,
        bytes: &'a [u8] = BYTEA_ARRAY,
    }
}

impl<'a> Messages<'a> {
    pub(super) fn push(&mut self, message: &'a Message) -> Result<(), Fault> {
        let standing = Standing::of(message);
        self.id.push(own_or_unfit(&message.id)?);
        self.workspace.push(&message.workspace);
        self.route.push(&message.route);
        self.lane.push(message.lane as i16);
        self.state.push(standing.state);
        self.due_at.push(message.due_at.as_ms());
        self.ready_at.push(standing.ready_at);
        self.suspect_at.push(standing.suspect_at);
        self.fence.push(message.fence as i64);
        // All bits of a count are kept; nothing here reckons with it.
        self.attempts.push(message.attempts as i32);
        self.losses.push(message.losses as i32);
        self.parked_for.push(standing.parked_for);
        self.instance.push(standing.instance);
        self.claim.push(standing.claim);
        self.lease_until.push(standing.lease_until);
        self.started_at.push(standing.started_at);
        self.cancel_requested.push(standing.cancel_requested);
        self.handed_off_at.push(standing.handed_off_at);
        self.report_by.push(standing.report_by);
        self.ended_at.push(standing.ended_at);
        self.put_away_at.push(standing.put_away_at);
        self.receipt.push(standing.receipt.map(without_nul));
        self.dead_reason.push(standing.dead_reason);
        self.dismissed_at.push(standing.dismissed_at);
        self.cancelled_for.push(standing.cancelled_for.map(without_nul));
        self.key.push(message.key.as_deref());
        self.scheduled_for.push(message.scheduled_for.as_ms());
        self.created_at.push(message.created_at.as_ms());
        self.expires_at.push(message.expires_at.map(Timestamp::as_ms));
        self.generation.push(message.generation as i32);
        self.attempts_before.push(message.attempts_before as i32);
        self.max_attempts.push(message.max_attempts.map(|count| count as i32));
        self.unconfirmed.push(message.unconfirmed as i32);
        self.possible_duplicates.push(message.possible_duplicates as i32);
        self.settled_claim.push(message.settled_claim.map(|claim| claim as i64));
        self.last_error.push(message.last_error.as_ref().map(failure_to_text).transpose()?);
        self.recipients.push(recipients_to_text(&message.recipients)?);
        self.is_dead_letter.push(message.is_dead_letter);
        self.first_sent_at.push(message.first_sent_at.map(Timestamp::as_ms));
        Ok(())
    }
}

impl<'a> Untried<'a> {
    /// Whether a message is one of these.
    pub(super) fn takes(message: &Message) -> bool {
        is_untouched(message)
            && [message.attempts, message.attempts_before] == [0; 2]
            && message.last_error.is_none()
    }

    pub(super) fn push(&mut self, message: &'a Message) -> Result<(), Fault> {
        self.id.push(own_or_unfit(&message.id)?);
        self.workspace.push(&message.workspace);
        self.route.push(&message.route);
        self.lane.push(message.lane as i16);
        self.due_at.push(message.due_at.as_ms());
        self.key.push(message.key.as_deref());
        self.scheduled_for.push(message.scheduled_for.as_ms());
        self.created_at.push(message.created_at.as_ms());
        self.expires_at.push(message.expires_at.map(Timestamp::as_ms));
        self.max_attempts.push(message.max_attempts.map(|count| count as i32));
        Ok(())
    }
}

impl<'a> Contents<'a> {
    pub(super) fn push(&mut self, content: &'a Content) -> Result<(), Fault> {
        self.target.push(content.target.as_deref());
        self.attributes.push(attributes_to_text(&content.attributes)?);
        self.headers.push(headers_to_bytes(&content.headers)?);
        self.content_type.push(content.content_type.as_deref());
        self.bytes.push(&content.bytes);
        Ok(())
    }
}

/// What others said goes into the database even where it has the one character that no text there can have: a result
/// must not be stuck for it.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
