//! The messages, rows and requests that the rules are told with.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::settle::settle;
use redeliver_core::{
    Change, Content, DeadReason, Failure, InstanceId, Lane, Message, MessageId, Outcome, Policy, Route,
    State, Timestamp,
};
use redeliver_engine::store::{ClaimKind, ClaimRef, ClaimRequest, Inserted, Store};

/// An instance that the stories are told about. Its number needs all 64 bits.
pub const ANN: InstanceId = InstanceId(u64::MAX - 1);
/// Another one.
pub const BOB: InstanceId = InstanceId(2);
/// How long claims last here.
pub const LEASE: Duration = Duration::from_secs(60);

/// This many seconds after the stories begin, in 2027.
pub fn at(s: i64) -> Timestamp {
    Timestamp::from_ms(1_800_000_000_000 + s * 1_000)
}

/// The id of the n-th message; they sort by n.
pub fn id(n: u32) -> MessageId {
    let mut bits = [0x5a; 10];
    bits[6..].copy_from_slice(&n.to_be_bytes());
    MessageId::fresh(Timestamp::from_ms(1_799_000_000_000 + i64::from(n)), bits)
}

/// The n-th message: waiting on the route `mail`, due when the stories begin.
pub fn message(n: u32) -> Message {
    Message {
        id: id(n),
        workspace: "default".into(),
        route: "mail".into(),
        lane: Lane::Medium,
        key: None,
        state: State::Waiting { parked_for: None },
        due_at: at(0),
        scheduled_for: at(0),
        created_at: at(-10),
        first_sent_at: None,
        expires_at: None,
        generation: 0,
        attempts: 0,
        attempts_before: 0,
        max_attempts: None,
        losses: 0,
        unconfirmed: 0,
        possible_duplicates: 0,
        fence: 0,
        settled_claim: None,
        last_error: None,
        recipients: Vec::new(),
        is_dead_letter: false,
    }
}

/// The n-th message, standing like this.
pub fn standing(n: u32, state: State) -> Message {
    Message { state, ..message(n) }
}

/// A state: waiting.
pub fn waiting() -> State {
    State::Waiting { parked_for: None }
}

/// A state: delivered at this second.
pub fn delivered(s: i64) -> State {
    State::Delivered { at: at(s), receipt: None }
}

/// A state: cancelled at this second.
pub fn cancelled(s: i64) -> State {
    State::Cancelled { at: at(s), reason: "operator".into() }
}

/// A state: dead at one second, put away at another.
pub fn dead(s: i64, dismissed_s: Option<i64>) -> State {
    State::Dead { at: at(s), reason: DeadReason::Refused, dismissed_at: dismissed_s.map(at) }
}

/// The n-th message with a key.
pub fn keyed(n: u32, key: &str) -> Message {
    Message { key: Some(key.into()), ..message(n) }
}

/// What the n-th message carries, unless a story says otherwise.
pub fn content(n: u32) -> Content {
    Content::of_bytes(format!("body {n}"))
}

/// The row of a message with ordinary content.
pub fn row(message: Message) -> NewRow {
    let text = format!("body of {}", message.id);
    row_with(message, Content::of_bytes(text))
}

/// The row of a message with this content.
pub fn row_with(message: Message, content: Content) -> NewRow {
    let hash = message.key.as_ref().map(|_| content.hash(&message.route));
    NewRow { message, content: ContentSource::Given(Arc::new(content)), hash, spawn: None, revives: false }
}

/// The route that core decides with here: three tries a minute apart, word of the dead to `dead-letters`.
pub fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(60)]),
        jitter: Jitter::None,
        max_attempts: 3,
        expires_after: None,
    };
    Route { dead_letter: Some("dead-letters".into()), ..Route::new("mail", "scripted", policy) }
}

/// A request for everything due at the beginning, for Ann.
pub fn request() -> ClaimRequest {
    ClaimRequest {
        route: "mail".into(),
        lane: Lane::Medium,
        limit: 10_000,
        kind: ClaimKind::Trusted,
        instance: ANN,
        now: at(0),
        lease: LEASE,
        keeps_first_send: false,
    }
}

/// A record of a failed try.
pub fn failed_record(attempt: u32, s: i64) -> AttemptRecord {
    AttemptRecord {
        generation: 0,
        attempt,
        verdict: Verdict::Failed,
        at: at(s),
        due_at: Some(at(s - 3)),
        claimed_at: Some(at(s - 2)),
        sent_at: Some(at(s - 1)),
        instance: Some(ANN),
        failure: Some(Failure::new("try later").with_code("451")),
    }
}

/// An outcome: the other side took it.
pub fn took_it() -> Outcome {
    Outcome::Delivered { receipt: Some("250 ok".into()) }
}

/// An outcome: worth another try.
pub fn try_later() -> Outcome {
    Outcome::Failed(Failure::new("try later").with_code("451"))
}

/// An outcome: never worth another.
pub fn never() -> Outcome {
    Outcome::Refused(Failure::new("no such user").with_code("550"))
}

/// What a worker writes about the message that it claimed.
pub fn result(message: &Message, outcome: &Outcome, s: i64) -> Change {
    settle(message, outcome, &route(), at(s))
}

/// A change that only moves a message into another state, in nobody's name.
pub fn moved(message: &Message, state: State) -> Change {
    let next = Message { state, ..message.clone() };
    let change = settle(&next, &try_later(), &route(), at(0));
    Change {
        message: Message { fence: message.fence + 1, ..next },
        settles: None,
        attempt: None,
        spawn: None,
        ..change
    }
}

/// Has a new row kept.
pub async fn keep(store: &dyn Store, row: NewRow) {
    let id = row.message.id.clone();
    assert_eq!(store.insert(vec![row]).await.unwrap(), [Inserted::New], "{id} is new");
}

/// Has messages kept with ordinary contents.
pub async fn keep_all(store: &dyn Store, messages: impl IntoIterator<Item = Message>) {
    let rows: Vec<NewRow> = messages.into_iter().map(row).collect();
    let count = rows.len();
    assert_eq!(store.insert(rows).await.unwrap(), vec![Inserted::New; count]);
}

/// Claims as asked, and answers with the messages alone.
pub async fn claim(store: &dyn Store, request: ClaimRequest) -> Vec<Message> {
    store.claim(request).await.unwrap().claimed.into_iter().map(|(message, _)| message).collect()
}

/// Keeps the n-th message and claims it for Ann.
pub async fn keep_claimed(store: &dyn Store, n: u32) -> Message {
    keep(store, row(message(n))).await;
    claim_the_one(store, request()).await
}

/// Claims the one message that the request can find.
pub async fn claim_the_one(store: &dyn Store, request: ClaimRequest) -> Message {
    let claimed: [Message; 1] = claim(store, request).await.try_into().expect("one message is due");
    let [message] = claimed;
    message
}

/// The claim that a message is in.
pub fn claim_of(message: &Message) -> ClaimRef {
    let State::Claimed(lease) = &message.state else { panic!("{} is not claimed", message.id) };
    ClaimRef { id: message.id.clone(), claim: lease.claim }
}

/// The message as the store has it now.
pub async fn now_of(store: &dyn Store, id: &MessageId) -> Message {
    store.get(id.clone()).await.unwrap().unwrap_or_else(|| panic!("{id} is there"))
}

/// The ids of messages, in their order.
pub fn ids<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<MessageId> {
    messages.into_iter().map(|message| message.id.clone()).collect()
}

/// The ids of messages, sorted, where a rule promises no order.
pub fn sorted_ids<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<MessageId> {
    let mut ids = ids(messages);
    ids.sort();
    ids
}

/// The ids of the messages with these numbers.
pub fn numbered(numbers: impl IntoIterator<Item = u32>) -> Vec<MessageId> {
    numbers.into_iter().map(id).collect()
}

/// A text with everything that tends to be lost on the way.
pub fn odd_text() -> Arc<str> {
    "it's \"odd\"; -- %_*? \\ \r\n\t\u{2028}\u{feff} é e\u{301} ß 漢字 🦀 \u{10ffff} {} $1 :a @b ' OR 1=1"
        .into()
}
