//! The page of one message: the course of each try, and what became of each recipient.

use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::email::{Email, Mailbox};
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::operate::{Action, operate};
use redeliver_core::{Change, Failure, Message, MessageId, State, Timestamp};
use redeliver_engine::access::Role;
use redeliver_engine::store::{Applied, Store};

use crate::stage::{Stage, mail};

/// Lets a waiting message stand otherwise.
async fn put(stage: &Stage, id: &MessageId, change: impl Fn(Message) -> Message) {
    let before = stage.get(id).await;
    let route = stage.engine.route(&before.route).unwrap();
    let deed = operate(&before, Action::Cancel, &"stage".into(), route, before.due_at).unwrap();
    let message = Message { fence: deed.message.fence, ..change(before) };
    assert_eq!(stage.store.apply(vec![Change { message, ..deed }]).await.unwrap(), [Applied::Applied]);
}

async fn page_of(stage: &Stage, role: Role, id: &MessageId) -> String {
    stage.reader(role, None).await.get(&format!("/admin/messages/{id}")).await.body
}

/// What the page says of the courses of tries, without its tags.
fn courses(page: &str) -> Vec<String> {
    let inside = |part: &str| part.split_once("</span>").unwrap().0.to_owned();
    let untagged = |part: String| {
        let words = part.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, after)| after));
        words.collect::<String>()
    };
    page.split("<span class=\"course\">").skip(1).map(inside).map(untagged).collect()
}

fn ms(from: Timestamp, ms: u64) -> Option<Timestamp> {
    Some(from.plus(Duration::from_millis(ms)))
}

#[tokio::test]
async fn each_past_try_says_when_it_was_due_claimed_sent_and_answered() {
    let (stage, clock) = Stage::with_hand_on_clock();
    let id = stage.accept(mail("Tour")).await;
    let due_at = stage.engine.clock().now();
    let whole = AttemptRecord {
        generation: 0,
        attempt: 2,
        verdict: Verdict::Failed,
        at: ms(due_at, 1_243).unwrap(),
        due_at: Some(due_at),
        claimed_at: ms(due_at, 40),
        sent_at: ms(due_at, 43),
        instance: Some(stage.engine.instance()),
        failure: Some(Failure::new("4.3.2 later").with_code("451")),
    };
    let old = AttemptRecord { attempt: 1, due_at: None, claimed_at: None, sent_at: None, ..whole.clone() };
    let lost = AttemptRecord { attempt: 3, verdict: Verdict::Lost, claimed_at: None, ..whole.clone() };
    for record in [old, whole, lost] {
        stage.store.note(id.clone(), record).await.unwrap();
    }
    clock.advance(Duration::from_secs(60));
    let page = page_of(&stage, Role::Viewer, &id).await;
    assert_eq!(
        courses(&page),
        [
            "due 2026-12-01 09:00:00 UTC, claimed 40 ms later, sent 3 ms later, answered 1.2 s later",
            "due 2026-12-01 09:00:00 UTC, sent 43 ms later, no answer 1.2 s later",
        ],
        "a try of which only the end is known says no more than that"
    );
    assert!(page.contains("title=\"2026-12-01 09:00:00.040 UTC\""), "exactly on hover: {page}");
    assert!(page.contains("Attempt 1: failed"), "{page}");
}

#[tokio::test]
async fn a_message_that_went_out_says_by_which_try() {
    let (stage, _) = Stage::with_hand_on_clock();
    let delivered = stage.accept(mail("Tour")).await;
    put(&stage, &delivered, |before| {
        let state = State::Delivered { at: ms(before.due_at, 300).unwrap(), receipt: None };
        Message { state, attempts: 3, generation: 1, ..before }
    })
    .await;
    let page = page_of(&stage, Role::Viewer, &delivered).await;
    assert!(page.contains("Attempt 3, generation 1: delivered"), "{page}");
    assert_eq!(courses(&page), ["due 2026-12-01 09:00:00 UTC, delivered 300 ms later"]);
    let handed = stage.accept(mail("Tour")).await;
    put(&stage, &handed, |before| {
        let state = State::HandedOff { since: ms(before.due_at, 20).unwrap(), report_by: None };
        Message { state, attempts: 1, ..before }
    })
    .await;
    let page = page_of(&stage, Role::Operator, &handed).await;
    assert!(page.contains("Attempt 2: handed off to an outside worker"), "{page}");
    assert_eq!(courses(&page), ["due 2026-12-01 09:00:00 UTC, handed off 20 ms later"]);
}

#[tokio::test]
async fn what_became_of_each_recipient_is_told_and_who_it_is_to_operators_only() {
    let stage = Stage::new();
    let mailbox = |address: &str| Mailbox { address: address.to_owned(), name: None };
    let email = Email {
        to: ["ada@example.org", "bob@example.org"].map(mailbox).to_vec(),
        bcc: vec![mailbox("eve@example.org")],
        text: Some("Hello".to_owned()),
        ..Email::default()
    };
    let id = stage.accept(NewMessage::new("email", email.to_content().unwrap())).await;
    let none = page_of(&stage, Role::Admin, &id).await;
    assert!(!none.contains("<h3>Recipients</h3>"), "{none}");
    put(&stage, &id, |before| {
        let later = Failure::new("4.2.2 mailbox full").with_code("452");
        let never = Failure::new("5.1.1 no such user").with_code("550");
        let fates = [Fate::Delivered, Fate::Failed(later), Fate::Refused(never)];
        let verdict = |(fate, index)| RecipientVerdict { index, fate };
        Message { recipients: fates.into_iter().zip(0..).map(verdict).collect(), ..before }
    })
    .await;
    let said = |word: &str, who: &str, why: &str| {
        let why = if why.is_empty() { String::new() } else { format!("<span class=\"why\">{why}</span>") };
        format!("<div><dt>{word}</dt><dd>{who}{why}</dd></div>")
    };
    let operators = page_of(&stage, Role::Operator, &id).await;
    let viewers = page_of(&stage, Role::Viewer, &id).await;
    for (word, who, number, why) in [
        ("Delivered", "ada@example.org", 1, ""),
        ("Failed", "bob@example.org", 2, "452 4.2.2 mailbox full"),
        ("Refused", "eve@example.org", 3, "550 5.1.1 no such user"),
    ] {
        assert!(operators.contains(&said(word, who, why)), "{operators}");
        assert!(viewers.contains(&said(word, &format!("Recipient {number}"), why)), "{viewers}");
        assert!(!viewers.contains(&said(word, who, why)), "{viewers}");
    }
}
