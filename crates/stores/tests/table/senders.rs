//! What a sender takes of an application's table, what it leaves alone, and what it writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redeliver_conformance::make::{at, request};
use redeliver_core::accept::{NewMessage, Source};
use redeliver_core::destination::HOLD_PROBE;
use redeliver_core::email::Email;
use redeliver_core::gate::Scope;
use redeliver_core::outcome::{Blame, Until};
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::settle::settle;
use redeliver_core::{AttemptId, Content, Failure, Name, Outcome, Policy, Route};
use redeliver_engine::clock::{Clock, ManualClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::engine::{Engine, Line, Settings};
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::sender::{Desk, Handed, Pace, Sender, Taken};
use redeliver_engine::stop::{Stop, stop_pair};
use redeliver_engine::store::{Applied, ClaimRequest};
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_stores::mails::{MailColumns, MailSource};
use redeliver_stores::mapping::Mapping;
use redeliver_stores::table::TableStore;

use crate::rig::{Place, Put, Rig, mapping, row_id};

/// Tells a story on a table in each database.
macro_rules! on_both {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                redeliver_conformance::judge(async {
                    stories::$name(&Rig::sqlite_with(with_mails())).await;
                    stories::$name(&Rig::postgres_with(with_mails(), |ddl| ddl).await).await;
                });
            }
        )*
    };
}

on_both! {
    a_mail_is_read_from_its_columns
    a_mail_is_read_by_a_query
    a_question_that_cannot_be_asked_is_known_before_anything_is_sent
    two_senders_never_have_the_same_row
    a_sender_that_vanished_loses_its_row_and_its_mail_may_come_twice
    a_mail_of_a_row_keeps_the_date_of_its_first_send
    a_quick_sender_takes_the_row_from_its_publisher
    what_is_sent_waits_or_is_about_another_attempt_is_left_alone
    a_sending_that_came_too_late_writes_nothing
    what_comes_of_a_sending_is_written_before_it_is_answered_for
    a_hand_off_that_nobody_can_read_is_dropped
    a_mail_that_nobody_can_read_fails_its_row_and_no_other
    a_paused_route_is_sent_nothing_and_its_rows_wait_without_cost
    a_refused_login_holds_the_mail_server_and_costs_no_row_a_try
}

const ONE: &str = "00000000-0000-0000-0000-000000000001";

pub fn with_mails() -> Mapping {
    let columns = MailColumns {
        to: "To".to_owned(),
        subject: Some("Subject".to_owned()),
        text: Some("Body".to_owned()),
        ..MailColumns::default()
    };
    Mapping { mail: Some(MailSource::Columns(columns)), ..mapping() }
}

fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(60)]),
        jitter: Jitter::None,
        max_attempts: 3,
        expires_after: None,
    };
    Route { dead_letter: Some("dead-letters".into()), ..Route::new("mail", "scripted", policy) }
}

fn pending(attempts: i64) -> Put {
    Put { status: "Pending", attempts, ..Put::failed(ONE, at(0)) }
}

fn handed(attempt: Option<u32>) -> Handed {
    let name = |attempt| AttemptId { message: row_id(ONE), generation: 0, attempt };
    Handed { id: row_id(ONE), attempt: attempt.map(name) }
}

fn brought(redelivered: bool) -> NewMessage {
    let content = Content::of_bytes(format!(r#"{{"EmailId":"{ONE}"}}"#));
    NewMessage { source: Source::Broker { redelivered }, ..NewMessage::new("mail", content) }
}

fn row(rig: &Rig) -> String {
    rig.place.say("SELECT \"Status\", \"AttemptCount\", coalesce(\"LastError\", '') FROM \"EmailLog\"")
}

/// Comes to the same at every try.
pub struct Always(pub Outcome);

#[async_trait::async_trait]
impl Transport for Always {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        self.0.clone()
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "here".into()
    }
}

/// An engine that carries nothing, whose gates a sender goes through.
async fn engine(rig: &Rig, clock: Arc<dyn Clock>) -> Arc<Engine> {
    let publisher: Arc<dyn Transport> = Arc::new(Always(Outcome::HandedOff));
    let transports = HashMap::from([("scripted".into(), publisher)]);
    let line = Line::new(route(), &transports, Vec::new()).unwrap();
    let store = Arc::new(rig.again().await);
    Arc::new(Engine::new(store, clock, Arc::new(Silence), Settings::default(), vec![line]))
}

fn sender_of(engine: &Arc<Engine>, desk: TableStore, outcome: Outcome, stop: &Stop) -> Sender {
    let pace = Pace { lease: Duration::from_secs(60), send_timeout: Duration::from_secs(20) };
    let ends: (Arc<dyn Desk>, Arc<dyn Transport>) = (Arc::new(desk), Arc::new(Always(outcome)));
    Sender::new(Arc::clone(engine), "mail", ends, pace, stop.clone()).unwrap()
}

async fn sender(rig: &Rig, outcome: Outcome, stop: &Stop) -> Sender {
    let engine = engine(rig, ManualClock::at(at(10))).await;
    sender_of(&engine, rig.desk().await, outcome, stop)
}

/// Has a sender send the only row, which was handed off anew.
async fn send(rig: &Rig, engine: &Arc<Engine>, outcome: Outcome, stop: &Stop) {
    rig.place.say("UPDATE \"EmailLog\" SET \"Status\" = 'Pending'");
    let sender = sender_of(engine, rig.desk().await, outcome, stop);
    assert_eq!(sender.accept(vec![brought(false)]).await.unwrap(), [Accepted::New(row_id(ONE))]);
}

fn put_mail(rig: &Rig) {
    rig.put(&pending(1));
    rig.place.say("UPDATE \"EmailLog\" SET \"To\" = 'ada@example.org', \"Body\" = 'Hello'");
}

mod stories {
    use super::*;

    pub(super) async fn a_mail_is_read_from_its_columns(rig: &Rig) {
        rig.put(&pending(0));
        rig.place.say(
            "UPDATE \"EmailLog\" SET \"To\" = 'ada@example.org', \"Subject\" = 'Hi', \"Body\" = 'Hello'",
        );
        let content = rig.desk().await.content(&row_id(ONE)).await.unwrap().unwrap();
        let email = Email::of_content(&content).unwrap().unwrap();
        assert_eq!((email.to[0].address.as_str(), email.subject.as_str()), ("ada@example.org", "Hi"));
        assert_eq!(email.text.as_deref(), Some("Hello"));
    }

    pub(super) async fn a_mail_is_read_by_a_query(rig: &Rig) {
        rig.put(&pending(0));
        rig.place.say("CREATE TABLE mails (log text, address text)");
        rig.place.say(&format!("INSERT INTO mails VALUES ('{ONE}', 'bob@example.org')"));
        let query = "SELECT m.address AS \"to\", 'Hello' AS html, 7 AS subject FROM mails AS m \
                     JOIN \"EmailLog\" AS e ON CAST(e.\"EmailId\" AS text) = m.log WHERE e.\"EmailId\" = :id";
        let mapping = Mapping { mail: Some(MailSource::Query(query.to_owned())), ..with_mails() };
        let desk = rig.desk_with(mapping).await;
        desk.check_mails().await.unwrap();
        let content = desk.content(&row_id(ONE)).await.unwrap().unwrap();
        let email = Email::of_content(&content).unwrap().unwrap();
        assert_eq!((email.to[0].address.as_str(), email.html.as_deref()), ("bob@example.org", Some("Hello")));
        assert_eq!(email.subject, "7");
    }

    pub(super) async fn a_question_that_cannot_be_asked_is_known_before_anything_is_sent(rig: &Rig) {
        for source in [None, Some(MailSource::Query("SELECT nothing FROM nowhere WHERE x = :id".to_owned()))]
        {
            let desk = rig.desk_with(Mapping { mail: source, ..with_mails() }).await;
            assert!(desk.check_mails().await.is_err());
        }
        if let Place::Postgres(_) = rig.place {
            let query = "SELECT 'x'::int AS \"to\" FROM \"EmailLog\" WHERE \"EmailId\" = :id";
            let mail = Some(MailSource::Query(query.to_owned()));
            let desk = rig.desk_with(Mapping { mail, ..with_mails() }).await;
            assert!(desk.check_mails().await.is_err(), "whatever row it is asked for");
        }
        rig.desk().await.check_mails().await.unwrap();
    }

    pub(super) async fn two_senders_never_have_the_same_row(rig: &Rig) {
        rig.put(&pending(0));
        let (ann, bob) = (rig.desk().await, rig.desk().await);
        let Taken::Ours(taken) = ann.take(&handed(Some(1)), at(10), at(70)).await.unwrap() else {
            panic!("it is free")
        };
        assert!(matches!(bob.take(&handed(Some(1)), at(11), at(71)).await.unwrap(), Taken::Locked(_)));
        let outcome = Outcome::Delivered { receipt: None };
        assert_eq!(ann.record(settle(&taken, &outcome, &route(), at(12))).await.unwrap(), Applied::Applied);
        assert_eq!(row(rig), "Sent|1|");
        assert!(matches!(bob.take(&handed(Some(1)), at(13), at(73)).await.unwrap(), Taken::Idle(_)));
    }

    pub(super) async fn a_sender_that_vanished_loses_its_row_and_its_mail_may_come_twice(rig: &Rig) {
        rig.put(&pending(0));
        let (ann, bob) = (rig.desk().await, rig.desk().await);
        let Taken::Ours(first) = ann.take(&handed(None), at(10), at(70)).await.unwrap() else {
            panic!("it is free")
        };
        let Taken::Ours(second) = bob.take(&handed(None), at(80), at(140)).await.unwrap() else {
            panic!("its lock has passed")
        };
        let outcome = Outcome::Delivered { receipt: None };
        let late = ann.record(settle(&first, &outcome, &route(), at(81))).await.unwrap();
        assert!(matches!(late, Applied::Superseded(_)), "{late:?}");
        let failed = Outcome::Failed(Failure::new("451 later"));
        assert_eq!(bob.record(settle(&second, &failed, &route(), at(82))).await.unwrap(), Applied::Applied);
        let known = rig.store().get(row_id(ONE)).await.unwrap().unwrap();
        assert_eq!(known.possible_duplicates, 1);
        let history = rig.store().attempts(row_id(ONE)).await.unwrap();
        assert_eq!(history.iter().map(|one| one.verdict.name()).collect::<Vec<_>>(), ["lost", "failed"]);
    }

    pub(super) async fn a_mail_of_a_row_keeps_the_date_of_its_first_send(rig: &Rig) {
        let take = async |from: i64| {
            let taken = rig.desk().await.take(&handed(None), at(from), at(from + 60)).await.unwrap();
            let Taken::Ours(taken) = taken else { panic!("it is free: {taken:?}") };
            *taken
        };
        let hand_off_again = || {
            rig.place.say("UPDATE \"EmailLog\" SET \"Status\" = 'Pending', \"LockedUntil\" = NULL");
        };
        rig.put(&pending(0));
        let held = take(10).await;
        assert_eq!(held.first_sent_at, Some(at(10)));
        let closed = Outcome::Deferred { until: Until::At(at(30)), reason: "closed".into() };
        rig.desk().await.record(settle(&held, &closed, &route(), at(11))).await.unwrap();

        hand_off_again();
        assert_eq!(take(400).await.first_sent_at, Some(at(400)), "nothing was sent before");
        let second = take(500).await;
        assert_eq!(second.first_sent_at, Some(at(400)), "its sender vanished, and may have sent it");
        let mut failed = settle(&second, &Outcome::Failed(Failure::new("451 later")), &route(), at(501));
        failed.attempt.as_mut().unwrap().sent_at = Some(at(500));
        assert_eq!(rig.desk().await.record(failed).await.unwrap(), Applied::Applied);

        hand_off_again();
        assert_eq!(take(900).await.first_sent_at, Some(at(400)), "a later try is the same mail");
    }

    pub(super) async fn a_quick_sender_takes_the_row_from_its_publisher(rig: &Rig) {
        rig.put(&Put::failed(ONE, at(0)));
        let claims = rig.store().claim(ClaimRequest { now: at(5), ..request() }).await.unwrap();
        let (claimed, _) = &claims.claimed[0];
        let desk = rig.desk().await;
        let Taken::Ours(taken) = desk.take(&handed(Some(2)), at(6), at(66)).await.unwrap() else {
            panic!("what came was published")
        };
        let published = settle(claimed, &Outcome::HandedOff, &route(), at(7));
        let told = rig.store().apply(vec![published]).await.unwrap();
        assert_eq!(told, [Applied::AlreadyMine], "its publisher hears that it was handed off");
        let failed = Outcome::Failed(Failure::new("451 later"));
        assert_eq!(desk.record(settle(&taken, &failed, &route(), at(8))).await.unwrap(), Applied::Applied);
        assert_eq!(row(rig), "Failed|2|451 later");
        assert_eq!(rig.store().get(row_id(ONE)).await.unwrap().unwrap().due_at, at(68));
    }

    pub(super) async fn what_is_sent_waits_or_is_about_another_attempt_is_left_alone(rig: &Rig) {
        let desk = rig.desk().await;
        let idle = |taken: Taken| assert!(matches!(taken, Taken::Idle(_)), "{taken:?}");
        idle(desk.take(&handed(None), at(1), at(61)).await.unwrap());
        rig.put(&pending(1));
        idle(desk.take(&handed(Some(1)), at(1), at(61)).await.unwrap());
        for status in ["Sent", "Failed", "Dead", "Unheard of"] {
            rig.place.say(&format!("UPDATE \"EmailLog\" SET \"Status\" = '{status}'"));
            idle(desk.take(&handed(Some(2)), at(1), at(61)).await.unwrap());
            assert_eq!(row(rig), format!("{status}|1|"));
        }
    }

    pub(super) async fn a_sending_that_came_too_late_writes_nothing(rig: &Rig) {
        rig.put(&pending(0));
        let desk = rig.desk().await;
        let Taken::Ours(taken) = desk.take(&handed(None), at(10), at(70)).await.unwrap() else {
            panic!("it is free")
        };
        rig.place.say("UPDATE \"EmailLog\" SET \"Status\" = 'Dead', \"LockedUntil\" = NULL");
        let failed = Outcome::Failed(Failure::new("451 later"));
        let late = desk.record(settle(&taken, &failed, &route(), at(12))).await.unwrap();
        assert!(matches!(late, Applied::Superseded(_)), "{late:?}");
        assert_eq!(row(rig), "Dead|0|");
    }

    pub(super) async fn what_comes_of_a_sending_is_written_before_it_is_answered_for(rig: &Rig) {
        let (_stopper, stop) = stop_pair();
        let failed = || Outcome::Failed(Failure::new("451 later"));
        let refused = Outcome::Refused(Failure::new("550 nobody"));
        for (outcome, attempts, wanted) in [
            (failed(), 0, "Failed|1|451 later"),
            (failed(), 2, "Dead|3|451 later"),
            (refused, 0, "Dead|1|550 nobody"),
            (Outcome::Delivered { receipt: None }, 1, "Sent|2|"),
        ] {
            rig.place.say("DELETE FROM \"EmailLog\"");
            rig.put(&pending(attempts));
            rig.place.say("UPDATE \"EmailLog\" SET \"To\" = 'ada@example.org', \"Body\" = 'Hello'");
            let answers = sender(rig, outcome, &stop).await.accept(vec![brought(false)]).await.unwrap();
            assert_eq!(answers, [Accepted::New(row_id(ONE))]);
            assert_eq!(row(rig), wanted);
        }
        let kept = rig.store().attempts(row_id(ONE)).await.unwrap();
        assert!(!kept.is_empty());
        for record in kept {
            assert_eq!(
                (record.claimed_at, record.sent_at),
                (Some(at(10)), Some(at(10))),
                "as its sender did"
            );
        }
        let letters = rig.store().counts(at(100)).await.unwrap();
        assert!(letters.iter().any(|count| &*count.route == "dead-letters"), "{letters:?}");
    }

    pub(super) async fn a_paused_route_is_sent_nothing_and_its_rows_wait_without_cost(rig: &Rig) {
        let (_stopper, stop) = stop_pair();
        let clock = ManualClock::at(at(10));
        let engine = engine(rig, clock.clone()).await;
        put_mail(rig);
        engine.pause(Scope::Route, "mail", &"ada".into()).await.unwrap();
        send(rig, &engine, Outcome::Delivered { receipt: None }, &stop).await;
        assert_eq!(row(rig), "Failed|1|", "it waits for its next hand-off");
        engine.resume(Scope::Route, "mail", &"ada".into()).await.unwrap();
        send(rig, &engine, Outcome::Delivered { receipt: None }, &stop).await;
        assert_eq!(row(rig), "Sent|2|");
    }

    pub(super) async fn a_refused_login_holds_the_mail_server_and_costs_no_row_a_try(rig: &Rig) {
        let (_stopper, stop) = stop_pair();
        let clock = ManualClock::at(at(10));
        let engine = engine(rig, clock.clone()).await;
        put_mail(rig);
        let refused = || Outcome::Failed(Failure::new("535 who are you").blaming(Blame::Credential));
        send(rig, &engine, refused(), &stop).await;
        assert_eq!(row(rig), "Failed|1|");
        // Nobody asks the mail server again: it would have taken this one.
        send(rig, &engine, Outcome::Delivered { receipt: None }, &stop).await;
        assert_eq!(row(rig), "Failed|1|");
        clock.advance(HOLD_PROBE);
        send(rig, &engine, Outcome::Delivered { receipt: None }, &stop).await;
        assert_eq!(row(rig), "Sent|2|", "one finds out that the login is good again");
    }

    pub(super) async fn a_hand_off_that_nobody_can_read_is_dropped(rig: &Rig) {
        rig.put(&pending(0));
        let (stopper, stop) = stop_pair();
        let sender = sender(rig, Outcome::Delivered { receipt: None }, &stop).await;
        for body in ["", "[]", "{}", r#"{"EmailId":null}"#, r#"{"EmailId":[1]}"#] {
            let bad = NewMessage::new("mail", Content::of_bytes(body.to_owned()));
            assert_eq!(sender.accept(vec![bad]).await.unwrap(), [Accepted::NoRoute], "{body}");
        }
        stopper.stop();
        assert!(sender.accept(vec![brought(true)]).await.is_err(), "nothing is begun any more");
        assert_eq!(row(rig), "Pending|0|");
    }

    pub(super) async fn a_mail_that_nobody_can_read_fails_its_row_and_no_other(rig: &Rig) {
        let (_stopper, stop) = stop_pair();
        let text = match &rig.place {
            Place::Postgres(_) => "CAST(\"Body\" AS integer)",
            Place::Sqlite { .. } => "json(\"Body\")",
        };
        let query =
            format!("SELECT \"To\" AS \"to\", {text} AS text FROM \"EmailLog\" WHERE \"EmailId\" = :id");
        let mapping = Mapping { mail: Some(MailSource::Query(query)), ..with_mails() };
        put_mail(rig);
        let engine = engine(rig, ManualClock::at(at(10))).await;
        for (body, wanted) in [("Hello", "Failed|2|the mail of this row cannot be read"), ("7", "Sent|3|")] {
            rig.place.say(&format!("UPDATE \"EmailLog\" SET \"Status\" = 'Pending', \"Body\" = '{body}'"));
            let desk = rig.desk_with(mapping.clone()).await;
            let sender = sender_of(&engine, desk, Outcome::Delivered { receipt: None }, &stop);
            assert_eq!(sender.accept(vec![brought(false)]).await.unwrap(), [Accepted::New(row_id(ONE))]);
            assert!(row(rig).starts_with(wanted), "{}", row(rig));
        }
        // Where no mail can be read at all, no row is to blame.
        let lost = MailSource::Query("SELECT nothing FROM nowhere WHERE x = :id".to_owned());
        let desk = rig.desk_with(Mapping { mail: Some(lost), ..with_mails() }).await;
        rig.place.say("UPDATE \"EmailLog\" SET \"Status\" = 'Pending'");
        let sender = sender_of(&engine, desk, Outcome::Delivered { receipt: None }, &stop);
        assert!(sender.accept(vec![brought(false)]).await.is_err(), "it is brought again");
    }
}
