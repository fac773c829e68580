//! What a person corrects in a message before it is sent again: whether that can be, what is different, and what is
//! remembered of it, so that the original is never lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::campaign::MailOf;
use crate::change::{Audit, Change};
use crate::content::Content;
use crate::email::Email;
use crate::event::{Event, Kind};
use crate::message::{Fate, Message, MessageId, Name, RecipientVerdict};
use crate::operate::{Unfit, retry};
use crate::route::Route;
use crate::time::Timestamp;

/// How often one message can be corrected: everything that it said before is kept.
pub const EDITS_MAX: usize = 50;

/// Bytes of all that is kept of what one message said before.
pub const EDITS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Fields that a deed names, at most; a message's own history has all of them.
const NAMED_MAX: usize = 20;

/// A message as it is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The version of the message that whoever wants it has seen: its fence.
    pub version: u64,
    /// The way it is to travel.
    pub route: Name,
    /// What it is to carry.
    pub content: Content,
}

/// What is different in one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which field, such as `email.subject` or `attributes.device_id`.
    pub field: String,
    /// What it said; null if it wasn't there.
    pub before: Value,
    /// What it says; null if it is gone.
    pub after: Value,
}

/// What is remembered of a correction, for as long as its message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditRecord {
    /// Who.
    pub actor: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// The generation that began with it.
    pub generation: u32,
    /// What is different.
    pub differences: Vec<Difference>,
}

/// Why a message can't be corrected like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uneditable {
    /// It is no longer as it was seen.
    #[error("the message has changed since version {seen}, it is at version {now}: look at it again")]
    Stale {
        /// The version that was seen.
        seen: u64,
        /// The version that it has.
        now: u64,
    },
    /// It makes no sense for the message as it stands.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// It is as it was.
    #[error("nothing would be different: retry it to send it again as it is")]
    Same,
    /// Everybody who would get it has it.
    #[error("everybody who is left has it already: dismiss it instead")]
    NobodyLeft,
    /// It is a row of an application's table.
    #[error("it is a row of an application's table: correct it there, then retry it")]
    Row,
    /// It has not been written.
    #[error(
        "it is written from its campaign's templates when it goes out: correct the campaign or its prospect"
    )]
    Unwritten,
    /// A campaign's mail would leave its campaign, and so its window and its quota.
    #[error("it is a mail of a campaign: its route and its attributes are the campaign's")]
    OfCampaign,
    /// It was corrected too often.
    #[error(
        "all that it said before would be more than {EDITS_MAX} corrections or {EDITS_BYTES_MAX} bytes: send a new message instead"
    )]
    TooOften,
}

/// Works out what a correction does to a message that was corrected like this before. `route` is the one that it is
/// to travel from now on. A message is sent again as by an operator's retry: with a fresh budget, under other attempt
/// ids, and with the Message-ID and the key that it has.
pub fn edit(
    message: &Message,
    content: &Content,
    edits: &[EditRecord],
    wanted: Wanted,
    actor: &Arc<str>,
    route: &Route,
    now: Timestamp,
) -> Result<Change, Uneditable> {
    if wanted.version != message.fence {
        return Err(Uneditable::Stale { seen: wanted.version, now: message.fence });
    }
    let (mut next, _) = retry(message, route, now).map_err(|hint| Unfit {
        action: "edit",
        state: message.state.name(),
        hint,
    })?;
    if route.table.is_some() || matches!(message.id, MessageId::Row(_)) {
        return Err(Uneditable::Row);
    }
    if MailOf::is_unwritten(content) {
        return Err(Uneditable::Unwritten);
    }
    let moves = wanted.route != message.route || wanted.content.attributes != content.attributes;
    if moves && MailOf::of_content(content).is_some() {
        return Err(Uneditable::OfCampaign);
    }
    let differences = differences(&message.route, content, &wanted.route, &wanted.content);
    if differences.is_empty() {
        return Err(Uneditable::Same);
    }
    let bytes = edits.iter().map(|record| size(&record.differences)).sum::<usize>() + size(&differences);
    if edits.len() >= EDITS_MAX || bytes > EDITS_BYTES_MAX {
        return Err(Uneditable::TooOften);
    }
    next.recipients = delivered(message, content, &wanted.content)?;
    next.route = wanted.route;
    let event = Event::of(&next, Kind::Edited, now);
    let mut change = Change::new(message, next, event);
    change.audit = Some(Audit {
        actor: actor.clone(),
        action: "edit",
        subject: message.id.to_string().into(),
        at: now,
        detail: Some(names(&differences).into()),
    });
    let generation = change.message.generation;
    change.edit = Some(EditRecord { actor: actor.clone(), at: now, generation, differences });
    change.content = Some(Arc::new(wanted.content));
    Ok(change)
}

fn size(differences: &[Difference]) -> usize {
    let one = |different: &Difference| different.before.to_string().len() + different.after.to_string().len();
    differences.iter().map(one).sum()
}

/// The fields that are different, without what they say: a deed is read by more people than a message, and outlives it.
fn names(differences: &[Difference]) -> String {
    let named: Vec<&str> = differences.iter().take(NAMED_MAX).map(|different| &*different.field).collect();
    match differences.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// What is different between two messages, field by field.
fn differences(route: &Name, before: &Content, to_route: &Name, after: &Content) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |field: String, before: Value, after: Value| {
        if before != after {
            found.push(Difference { field, before, after });
        }
    };
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
    note("route".to_owned(), route.as_ref().into(), to_route.as_ref().into());
    note("target".to_owned(), text(before.target.as_deref()), text(after.target.as_deref()));
    note(
        "content_type".to_owned(),
        text(before.content_type.as_deref()),
        text(after.content_type.as_deref()),
    );
    let names: BTreeSet<&String> = before.attributes.keys().chain(after.attributes.keys()).collect();
    for name in names {
        let value = |content: &Content| text(content.attributes.get(name).map(String::as_str));
        note(format!("attributes.{name}"), value(before), value(after));
    }
    match (parts(before), parts(after)) {
        (Some(before), Some(after)) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let value = |email: &Map<String, Value>| email.get(name).cloned().unwrap_or_default();
                note(format!("email.{name}"), value(&before), value(&after));
            }
        }
        _ => match (std::str::from_utf8(&before.bytes), std::str::from_utf8(&after.bytes)) {
            (Ok(before), Ok(after)) => note("payload".to_owned(), before.into(), after.into()),
            _ => {
                let encoded = |content: &Content| Value::from(STANDARD.encode(&content.bytes));
                note("payload_base64".to_owned(), encoded(before), encoded(after));
            }
        },
    }
    found
}

/// The fields of the e-mail that a content carries, if it carries one.
fn parts(content: &Content) -> Option<Map<String, Value>> {
    let email = Email::of_content(content)?.ok()?;
    match serde_json::to_value(email).ok()? {
        Value::Object(parts) => Some(parts),
        _ => None,
    }
}

/// The verdicts on recipients who have it, by their places in the corrected mail: they are not sent it again.
fn delivered(
    message: &Message,
    before: &Content,
    after: &Content,
) -> Result<Vec<RecipientVerdict>, Uneditable> {
    let email = |content| Email::of_content(content).and_then(Result::ok);
    let (Some(before), Some(after)) = (email(before), email(after)) else { return Ok(Vec::new()) };
    let has_it = |place: usize| {
        message.recipients.iter().any(|known| known.index as usize == place && known.fate == Fate::Delivered)
    };
    let mut have: Vec<&str> = before
        .recipients()
        .enumerate()
        .filter(|(place, _)| has_it(*place))
        .map(|(_, mailbox)| mailbox.address.as_str())
        .collect();
    let mut verdicts = Vec::new();
    let mut is_for_somebody = false;
    for (mailbox, index) in after.recipients().zip(0..) {
        match have.iter().position(|address| *address == mailbox.address) {
            Some(place) => {
                have.swap_remove(place);
                verdicts.push(RecipientVerdict { index, fate: Fate::Delivered });
            }
            None => is_for_somebody = true,
        }
    }
    if is_for_somebody { Ok(verdicts) } else { Err(Uneditable::NobodyLeft) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::email::Mailbox;
    use crate::message::{DeadReason, State};
    use crate::outcome::Failure;
    use crate::settle::tests::{at, claimed, message, route};

    fn mailbox(address: &str) -> Mailbox {
        Mailbox { address: address.to_owned(), name: None }
    }

    fn mail(to: &[&str]) -> Email {
        let to = to.iter().map(|address| mailbox(address)).collect();
        Email { to, subject: "Hi".to_owned(), text: Some("body".to_owned()), ..Email::default() }
    }

    fn content(email: &Email) -> Content {
        email.to_content().unwrap()
    }

    fn dead() -> Message {
        let state = State::Dead { at: at(1), reason: DeadReason::Refused, dismissed_at: None };
        Message { attempts: 3, last_error: Some(Failure::new("x")), ..message(state) }
    }

    fn to(message: &Message, before: &Content, after: Content) -> Result<Change, Uneditable> {
        let wanted = Wanted { version: message.fence, route: message.route.clone(), content: after };
        edit(message, before, &[], wanted, &"ada".into(), &route(), at(500))
    }

    fn fields(change: &Change) -> Vec<&str> {
        let record = change.edit.as_ref().unwrap();
        record.differences.iter().map(|different| different.field.as_str()).collect()
    }

    #[test]
    fn a_corrected_message_is_sent_again_and_what_it_said_is_kept() {
        let before = content(&mail(&["ada@exmaple.org"]));
        let after = content(&mail(&["ada@example.org"]));
        let change = to(&dead(), &before, after.clone()).unwrap();
        let next = &change.message;
        assert_eq!(
            (next.state.name(), next.attempts, next.generation, next.due_at),
            ("waiting", 0, 1, at(500))
        );
        assert_eq!((change.expected_fence, next.fence), (7, 8));
        assert_eq!(change.content.as_deref(), Some(&after));
        let record = change.edit.as_ref().unwrap();
        assert_eq!((&*record.actor, record.at, record.generation), ("ada", at(500), 1));
        let expected = Difference {
            field: "email.to".to_owned(),
            before: serde_json::json!(["ada@exmaple.org"]),
            after: serde_json::json!(["ada@example.org"]),
        };
        assert_eq!(record.differences, [expected]);
    }

    #[test]
    fn a_deed_names_the_fields_and_never_what_they_say() {
        let before = content(&mail(&["ada@exmaple.org"]));
        let email = Email { subject: "secret".to_owned(), ..mail(&["ada@example.org"]) };
        let audit = to(&dead(), &before, content(&email)).unwrap().audit.unwrap();
        assert_eq!((audit.action, audit.detail.as_deref()), ("edit", Some("email.subject, email.to")));
        let many = Content {
            attributes: (0..100).map(|n| (format!("a{n:02}"), String::new())).collect(),
            ..before.clone()
        };
        let detail = to(&dead(), &before, many).unwrap().audit.unwrap().detail.unwrap();
        assert!(detail.ends_with("attributes.a19 and 80 more"), "{detail}");
    }

    #[test]
    fn whatever_is_different_is_told_by_its_field() {
        let plain = Content::of_bytes(r#"{"a": 1}"#);
        let mut other = Content::of_bytes(r#"{"a": 2}"#);
        other.target = Some("queue".into());
        other.content_type = Some("application/json".into());
        other.attributes.insert("device".to_owned(), "d".to_owned());
        let change = to(&dead(), &plain, other.clone()).unwrap();
        assert_eq!(fields(&change), ["target", "content_type", "attributes.device", "payload"]);
        let record = change.edit.unwrap();
        assert_eq!(
            (&record.differences[0].before, &record.differences[3].before),
            (&Value::Null, &r#"{"a": 1}"#.into())
        );
        let bytes = Content::of_bytes(vec![255, 0]);
        let change = to(&dead(), &bytes, plain.clone()).unwrap();
        assert_eq!(change.edit.unwrap().differences[0].before, "/wA=");
        let wanted = Wanted { version: 7, route: "sms".into(), content: plain.clone() };
        let change = edit(&dead(), &plain, &[], wanted, &"ada".into(), &route(), at(500)).unwrap();
        assert_eq!((fields(&change), &*change.message.route), (vec!["route"], "sms"));
    }

    #[test]
    fn whoever_has_it_is_not_sent_it_again_wherever_they_stand_in_the_corrected_mail() {
        let verdict = |index, fate| RecipientVerdict { index, fate };
        let refused = Fate::Refused(Failure::new("no such user"));
        let recipients = vec![verdict(0, refused), verdict(1, Fate::Delivered), verdict(2, Fate::Delivered)];
        let partly = Message { recipients, ..dead() };
        let before = content(&mail(&["a@exmaple.org", "b@example.org", "c@example.org"]));
        let after = |to_whom: &[&str]| to(&partly, &before, content(&mail(to_whom)));
        let change = after(&["c@example.org", "b@example.org", "a@example.org"]).unwrap();
        assert_eq!(
            change.message.recipients,
            [verdict(0, Fate::Delivered), verdict(1, Fate::Delivered)],
            "and the third is sent it"
        );
        let change = after(&["b@example.org", "b@example.org"]).unwrap();
        assert_eq!(change.message.recipients, [verdict(0, Fate::Delivered)], "once each");
        assert_eq!(after(&["b@example.org", "c@example.org"]), Err(Uneditable::NobodyLeft));
    }

    #[test]
    fn what_was_not_seen_as_it_is_now_is_not_corrected() {
        let before = content(&mail(&["a@example.org"]));
        let wanted = Wanted { version: 6, route: "email".into(), content: Content::default() };
        let refused = edit(&dead(), &before, &[], wanted, &"ada".into(), &route(), at(500));
        assert_eq!(refused, Err(Uneditable::Stale { seen: 6, now: 7 }));
    }

    #[test]
    fn what_cannot_be_corrected_is_told_why() {
        let (before, after) = (content(&mail(&["a@example.org"])), content(&mail(&["b@example.org"])));
        assert_eq!(to(&dead(), &before, before.clone()), Err(Uneditable::Same));
        let wanted = |version| Wanted { version, route: "email".into(), content: after.clone() };
        let ada: Arc<str> = "ada".into();
        let record = |text: String| EditRecord {
            actor: ada.clone(),
            at: at(0),
            generation: 1,
            differences: vec![Difference {
                field: "payload".to_owned(),
                before: text.into(),
                after: Value::Null,
            }],
        };
        let after_all =
            |edits: &[EditRecord]| edit(&dead(), &before, edits, wanted(7), &ada, &route(), at(500));
        assert_eq!(after_all(&vec![record(String::new()); EDITS_MAX]), Err(Uneditable::TooOften));
        assert_eq!(after_all(&[record("x".repeat(EDITS_BYTES_MAX))]), Err(Uneditable::TooOften));
        assert!(after_all(&[record("x".repeat(1_000))]).is_ok());
        let table = Route { table: Some("log".into()), ..route() };
        assert_eq!(edit(&dead(), &before, &[], wanted(7), &ada, &table, at(500)), Err(Uneditable::Row));
        let Err(Uneditable::Unfit(unfit)) = to(&claimed(), &before, after.clone()) else {
            panic!("it is being sent")
        };
        assert!(unfit.to_string().starts_with("cannot edit a message that is claimed"), "{unfit}");
        let delivered = message(State::Delivered { at: at(0), receipt: None });
        assert!(matches!(to(&delivered, &before, after.clone()), Err(Uneditable::Unfit(_))));
    }

    #[test]
    fn a_mail_of_a_campaign_stays_in_its_campaign() {
        let of = MailOf { campaign: "c".into(), prospect: "p".into(), step: 1, sender: "s".into() };
        let unwritten = of.to_content();
        assert_eq!(to(&dead(), &unwritten, Content::default()), Err(Uneditable::Unwritten));
        let written = |to_whom: &str| Content {
            attributes: unwritten.attributes.clone(),
            ..content(&mail(&[to_whom]))
        };
        let before = written("a@exmaple.org");
        let free = Content { attributes: Default::default(), ..before.clone() };
        assert_eq!(to(&dead(), &before, free), Err(Uneditable::OfCampaign));
        assert_eq!(fields(&to(&dead(), &before, written("a@example.org")).unwrap()), ["email.to"]);
    }
}
