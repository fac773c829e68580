//! A message as callers see it.

use redeliver_core::attempt::AttemptId;
use redeliver_core::message::Fate;
use redeliver_core::outcome::Failure;
use redeliver_core::status::Status;
use redeliver_core::{Message, Route, State, Timestamp};
use redeliver_engine::Engine;
use serde::Serialize;
use utoipa::ToSchema;

/// Where a message stands, and what has happened to it so far.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MessageView {
    /// Which message.
    pub id: String,
    /// Whose.
    pub workspace: String,
    /// The way it travels.
    pub route: String,
    /// Its priority.
    #[schema(pattern = "^(critical|high|medium|low)$")]
    pub priority: &'static str,
    /// What its sender calls it.
    pub key: Option<String>,
    /// Where it stands, in a person's words.
    #[schema(pattern = "^(scheduled|due|retrying|held|sending|handed_off|delivered|dead|cancelled)$")]
    pub status: &'static str,
    /// Where it stands, as the store has it.
    #[schema(pattern = "^(waiting|claimed|handed_off|delivered|dead|cancelled)$")]
    pub state: &'static str,
    /// When it is, or was, to go out next.
    #[schema(format = DateTime)]
    pub due_at: String,
    /// When it was first to go out. Never moves.
    #[schema(format = DateTime)]
    pub scheduled_for: String,
    /// When it was accepted; null for a row of an application's table that doesn't say.
    #[schema(format = DateTime)]
    pub created_at: Option<String>,
    /// When sending it stops making sense.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Tries that got a verdict, those made elsewhere included.
    pub attempts: u32,
    /// Tries in all; unknown if the config no longer has its route.
    pub max_attempts: Option<u32>,
    /// Leases that ran out on it.
    pub losses: u32,
    /// Carryings that may have arrived without our knowing.
    pub possible_duplicates: u32,
    /// What went wrong last.
    pub last_error: Option<ErrorView>,
    /// Why it was given up.
    pub dead_reason: Option<&'static str>,
    /// Why it was cancelled.
    pub cancelled_for: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    /// When a person put it away.
    #[schema(format = DateTime)]
    pub dismissed_at: Option<String>,
    /// What the other side said when it took it.
    pub receipt: Option<String>,
    /// The gate that it is parked for.
    pub parked_for: Option<String>,
    /// The name of the try that is under way, which a report may give.
    pub attempt_id: Option<String>,
    /// Whether it is the word of another message's death.
    pub is_dead_letter: bool,
    /// Goes up with every change of who may write it next; an edit says which one it has seen.
    pub version: u64,
}

/// What went wrong.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ErrorView {
    /// The other side's code.
    pub code: Option<String>,
    /// What was said.
    pub text: String,
}

/// What became of one recipient.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecipientView {
    /// The recipient's place among to, cc and bcc.
    pub index: u32,
    /// What became of it.
    #[schema(pattern = "^(delivered|failed|refused)$")]
    pub outcome: &'static str,
    /// What went wrong.
    pub error: Option<ErrorView>,
}

impl MessageView {
    /// A message as callers see it now.
    pub fn of(message: &Message, engine: &Engine) -> Self {
        Self::at(message, engine.route(&message.route), engine.clock().now())
    }

    /// A message as callers see it at this time.
    pub fn at(message: &Message, route: Option<&Route>, now: Timestamp) -> Self {
        let Message { state, .. } = message;
        let is_under_way = matches!(state, State::Claimed(_) | State::HandedOff { .. });
        Self {
            id: message.id.to_string(),
            workspace: message.workspace.to_string(),
            route: message.route.to_string(),
            priority: message.lane.name(),
            key: message.key.as_ref().map(ToString::to_string),
            status: Status::of(message, now).name(),
            state: state.name(),
            due_at: message.due_at.to_string(),
            scheduled_for: message.scheduled_for.to_string(),
            created_at: told(message.created_at),
            expires_at: message.expires_at.map(|at| at.to_string()),
            attempts: message.attempts,
            max_attempts: route.map(|route| route.max_attempts(message)).or(message.max_attempts),
            losses: message.losses,
            possible_duplicates: message.possible_duplicates,
            last_error: message.last_error.as_ref().map(ErrorView::of),
            dead_reason: match state {
                State::Dead { reason, .. } => Some(reason.name()),
                _ => None,
            },
            cancelled_for: match state {
                State::Cancelled { reason, .. } => Some(reason.to_string()),
                _ => None,
            },
            ended_at: state.ended_at().and_then(told),
            dismissed_at: match state {
                State::Dead { dismissed_at, .. } => dismissed_at.and_then(told),
                _ => None,
            },
            receipt: match state {
                State::Delivered { receipt, .. } => receipt.as_ref().map(ToString::to_string),
                _ => None,
            },
            parked_for: match state {
                State::Waiting { parked_for } => parked_for.as_ref().map(ToString::to_string),
                _ => None,
            },
            attempt_id: is_under_way.then(|| AttemptId::of(message).to_string()),
            is_dead_letter: message.is_dead_letter,
            version: message.fence,
        }
    }
}

fn told(at: Timestamp) -> Option<String> {
    at.known().map(|at| at.to_string())
}

impl ErrorView {
    /// A failure as callers see it.
    pub fn of(failure: &Failure) -> Self {
        Self { code: failure.code.as_ref().map(ToString::to_string), text: failure.text.to_string() }
    }
}

impl RecipientView {
    /// The verdicts on a message's recipients, as far as there are any.
    pub fn all_of(message: &Message) -> Vec<Self> {
        let view = |index, fate: &Fate| {
            let (outcome, error) = match fate {
                Fate::Delivered => ("delivered", None),
                Fate::Failed(failure) => ("failed", Some(ErrorView::of(failure))),
                Fate::Refused(failure) => ("refused", Some(ErrorView::of(failure))),
            };
            Self { index, outcome, error }
        };
        message.recipients.iter().map(|verdict| view(verdict.index, &verdict.fate)).collect()
    }
}
