//! What is true of an application's table alone: whose word counts, what is written where, and what is refused.

use std::time::Duration;

use redeliver_conformance::make::{ANN, BOB, LEASE, at, never, request, took_it};
use redeliver_core::operate::{Action, operate};
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::settle::{lapse, rescue, settle};
use redeliver_core::{DeadReason, Message, Outcome, Policy, Route, State};
use redeliver_engine::store::{Applied, ClaimRequest, Filter, Store, StoreError};
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::mapping::{Mapping, TableName, Times, Words};
use redeliver_stores::postgres::OpenOptions;
use redeliver_stores::postgres::table::{Clock, PostgresTable};
use redeliver_stores::sqlite::table::SqliteTable;

use crate::rig::{Put, Rig, mapping, row_id};

/// Tells a story on a table in each database.
macro_rules! on_both {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                redeliver_conformance::judge(async {
                    stories::$name(&Rig::sqlite()).await;
                    stories::$name(&Rig::postgres().await).await;
                });
            }
        )*
    };
}

on_both! {
    a_published_row_is_pending_with_its_lock_cleared_and_its_time_written
    a_late_publisher_cannot_write_over_the_next_one
    what_the_application_writes_meanwhile_wins
    a_result_said_twice_is_known_even_when_the_sender_was_quicker
    a_lost_publishing_goes_again_under_the_same_attempt_id_and_says_so
    a_publishing_that_failed_leaves_the_row_failed_and_counts_nothing
    used_up_rows_are_found_and_die_with_their_error_kept
    the_word_of_a_death_has_the_error_that_the_row_died_of
    a_failed_row_without_a_time_is_given_one
    a_persons_retry_starts_the_row_over_as_the_document_says
    a_dismissal_needs_a_word_for_it
    an_application_row_is_never_deleted
    nothing_is_accepted_into_a_table
    two_instances_never_take_the_same_row
    rows_are_listed_after_our_own_messages_and_counted_by_their_words
}

const ONE: &str = "00000000-0000-0000-0000-000000000001";
const TWO: &str = "00000000-0000-0000-0000-000000000002";

pub fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(60)]),
        jitter: Jitter::None,
        max_attempts: 3,
        expires_after: None,
    };
    Route { dead_letter: Some("dead-letters".into()), ..Route::new("mail", "scripted", policy) }
}

pub async fn claim_one(store: &dyn Store, s: i64) -> Message {
    let claims = store.claim(ClaimRequest { now: at(s), ..request() }).await.unwrap();
    let [(message, _)] = claims.claimed.try_into().unwrap();
    message
}

pub async fn write(store: &dyn Store, change: redeliver_core::Change) -> Applied {
    store.apply(vec![change]).await.unwrap().pop().unwrap()
}

pub async fn get(store: &dyn Store, id: &str) -> Message {
    store.get(row_id(id)).await.unwrap().unwrap()
}

mod stories {
    use super::*;

    pub(super) async fn a_published_row_is_pending_with_its_lock_cleared_and_its_time_written(rig: &Rig) {
        rig.put(&Put { key: Some("k-1".to_owned()), ..Put::failed(ONE, at(0)) });
        let claims = rig.store().claim(request()).await.unwrap();
        let (message, content) = &claims.claimed[0];
        assert_eq!(content.bytes, format!(r#"{{"EmailId":"{ONE}","MessageKey":"k-1"}}"#));
        assert_eq!(content.content_type.as_deref(), Some("application/json"));
        assert_eq!(rig.place.say("SELECT \"Status\" FROM \"EmailLog\""), "RetryQueued");
        let change = settle(message, &Outcome::HandedOff, &route(), at(5));
        assert_eq!(write(rig.store(), change).await, Applied::Applied);
        let row = rig.place.say("SELECT \"Status\", \"AttemptCount\", \"LockedUntil\" FROM \"EmailLog\"");
        assert_eq!(row, "Pending|1|");
        let after = get(rig.store(), ONE).await;
        assert_eq!(after.state, State::HandedOff { since: at(5), report_by: None });
    }

    pub(super) async fn a_late_publisher_cannot_write_over_the_next_one(rig: &Rig) {
        rig.put(&Put::failed(ONE, at(0)));
        let first = claim_one(rig.store(), 0).await;
        assert_eq!(write(rig.store(), lapse(&first, &route(), at(61)).unwrap()).await, Applied::Applied);
        let late = settle(&first, &Outcome::HandedOff, &route(), at(62));
        assert!(matches!(write(rig.store(), late.clone()).await, Applied::Superseded(Some(_))));
        let second = claim_one(rig.store(), 63).await;
        assert!(matches!(write(rig.store(), late).await, Applied::Superseded(Some(_))));
        let change = settle(&second, &Outcome::HandedOff, &route(), at(64));
        assert_eq!(write(rig.store(), change).await, Applied::Applied);
    }

    pub(super) async fn what_the_application_writes_meanwhile_wins(rig: &Rig) {
        rig.put(&Put::failed(ONE, at(0)));
        let claimed = claim_one(rig.store(), 0).await;
        rig.place.say("UPDATE \"EmailLog\" SET \"Status\" = 'Sent', \"LockedUntil\" = NULL");
        let change = settle(&claimed, &Outcome::HandedOff, &route(), at(1));
        let Applied::Superseded(Some(now)) = write(rig.store(), change).await else {
            panic!("the mail is sent")
        };
        assert!(matches!(now.state, State::Delivered { .. }));
        assert_eq!(rig.place.say("SELECT \"Status\" FROM \"EmailLog\""), "Sent");
    }

    pub(super) async fn a_result_said_twice_is_known_even_when_the_sender_was_quicker(rig: &Rig) {
        rig.put(&Put::failed(ONE, at(0)));
        let claimed = claim_one(rig.store(), 0).await;
        let change = settle(&claimed, &Outcome::HandedOff, &route(), at(1));
        assert_eq!(write(rig.store(), change.clone()).await, Applied::Applied);
        assert_eq!(write(rig.store(), change.clone()).await, Applied::AlreadyMine);
        rig.place.say("UPDATE \"EmailLog\" SET \"Status\" = 'Sent'");
        assert_eq!(write(rig.store(), change).await, Applied::AlreadyMine);
        assert_eq!(rig.place.say("SELECT \"Status\" FROM \"EmailLog\""), "Sent");
    }

    pub(super) async fn a_lost_publishing_goes_again_under_the_same_attempt_id_and_says_so(rig: &Rig) {
        rig.put(&Put::failed(ONE, at(0)));
        let first = claim_one(rig.store(), 0).await;
        let attempt = redeliver_core::AttemptId::of(&first);
        // Whoever claimed it is gone; another instance knows nothing but the row.
        let other = rig.again().await;
        assert_eq!(other.lapsed(at(59), 10).await.unwrap(), []);
        let [lapsed] = other.lapsed(at(60), 10).await.unwrap().try_into().unwrap();
        assert_eq!(write(&other, lapse(&lapsed, &route(), at(60)).unwrap()).await, Applied::Applied);
        let second = claim_one(&other, 60).await;
        assert_eq!(redeliver_core::AttemptId::of(&second), attempt);
        assert_eq!((second.unconfirmed, second.possible_duplicates, second.is_suspect()), (1, 1, false));
        assert_eq!(other.attempts(row_id(ONE)).await.unwrap().len(), 1);
        // The next try is another one, of which nothing is in doubt.
        let report = settle(&second, &Outcome::Failed(redeliver_core::Failure::new("451")), &route(), at(61));
        assert_eq!(write(&other, report).await, Applied::Applied);
        let third = claim_one(&other, 500).await;
        assert_eq!((third.attempts, third.unconfirmed, third.possible_duplicates), (2, 0, 1));
    }

    pub(super) async fn a_publishing_that_failed_leaves_the_row_failed_and_counts_nothing(rig: &Rig) {
        rig.put(&Put { last_error: Some("451 later".to_owned()), ..Put::failed(ONE, at(0)) });
        let claimed = claim_one(rig.store(), 0).await;
        let until = redeliver_core::outcome::Until::At(at(7));
        let deferred = Outcome::Deferred { until, reason: "the broker is away".into() };
        assert_eq!(write(rig.store(), settle(&claimed, &deferred, &route(), at(1))).await, Applied::Applied);
        let row = rig
            .place
            .say("SELECT \"Status\", \"AttemptCount\", \"LastError\", \"LockedUntil\" FROM \"EmailLog\"");
        assert_eq!(row, "Failed|1|451 later|");
        assert_eq!(claim_one(rig.store(), 7).await.attempts, 1);
    }

    pub(super) async fn used_up_rows_are_found_and_die_with_their_error_kept(rig: &Rig) {
        let error = Some("550 nobody".to_owned());
        rig.put(&Put {
            attempts: 3,
            last_error: error,
            key: Some("k".to_owned()),
            ..Put::failed(ONE, at(9_000))
        });
        rig.put(&Put { attempts: 2, ..Put::failed(TWO, at(9_000)) });
        let [stranded] = rig.store().stranded(at(0), 10).await.unwrap().try_into().unwrap();
        let death = rescue(&stranded, &route(), at(0)).unwrap();
        assert_eq!(write(rig.store(), death.clone()).await, Applied::Applied);
        let row = rig.place.say(&format!(
            "SELECT \"Status\", \"DeadReason\", \"LastError\", \"AttemptCount\" FROM \"EmailLog\" WHERE \"EmailId\" = '{ONE}'"
        ));
        assert_eq!(row, "Dead|MaxAttemptsExceeded|550 nobody|3");
        // The row has no place for when it died.
        let reason = DeadReason::AttemptsExhausted;
        assert_eq!(get(rig.store(), ONE).await.state, State::Dead { at: at(0), reason, dismissed_at: None });
        // Said by two instances, it is one word of one death.
        assert!(matches!(write(rig.store(), death).await, Applied::Superseded(Some(_))));
        let letters = Filter { route: Some("dead-letters".into()), limit: 10, ..Filter::default() };
        let [letter] = rig.store().list(letters).await.unwrap().try_into().unwrap();
        assert_eq!(letter.key.as_deref(), Some(format!("dead:mail:log:{ONE}:0").as_str()));
        let content = rig.store().content(letter.id).await.unwrap().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&content.bytes).unwrap();
        assert_eq!(said["DeadReason"], "MaxAttemptsExceeded");
        assert_eq!((&said["EmailId"], &said["MessageKey"]), (&ONE.into(), &"k".into()));
        assert_eq!((&said["LastError"], &said["AttemptCount"]), (&"550 nobody".into(), &3.into()));
    }

    pub(super) async fn the_word_of_a_death_has_the_error_that_the_row_died_of(rig: &Rig) {
        rig.put(&Put { last_error: Some("451 later".to_owned()), ..Put::failed(ONE, at(0)) });
        let claimed = claim_one(rig.store(), 0).await;
        let refused = Outcome::Refused(redeliver_core::Failure::new("550 nobody"));
        assert_eq!(write(rig.store(), settle(&claimed, &refused, &route(), at(1))).await, Applied::Applied);
        let letters = Filter { route: Some("dead-letters".into()), limit: 10, ..Filter::default() };
        let [letter] = rig.store().list(letters).await.unwrap().try_into().unwrap();
        let content = rig.store().content(letter.id).await.unwrap().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&content.bytes).unwrap();
        assert_eq!(said["LastError"], "550 nobody");
        assert_eq!(rig.place.say("SELECT \"LastError\" FROM \"EmailLog\""), "550 nobody");
    }

    pub(super) async fn a_failed_row_without_a_time_is_given_one(rig: &Rig) {
        rig.put(&Put { next_attempt_at: None, ..Put::failed(ONE, at(0)) });
        let [stranded] = rig.store().stranded(at(0), 10).await.unwrap().try_into().unwrap();
        let change = rescue(&stranded, &route(), at(0)).unwrap();
        assert_eq!(write(rig.store(), change).await, Applied::Applied);
        assert_eq!(get(rig.store(), ONE).await.due_at, at(60));
        assert_eq!(rig.store().stranded(at(0), 10).await.unwrap(), []);
        assert_eq!(claim_one(rig.store(), 60).await.attempts, 1);
    }

    pub(super) async fn a_persons_retry_starts_the_row_over_as_the_document_says(rig: &Rig) {
        rig.put(&Put { last_error: Some("x".to_owned()), attempts: 2, ..Put::failed(ONE, at(0)) });
        let claimed = claim_one(rig.store(), 0).await;
        assert_eq!(write(rig.store(), settle(&claimed, &never(), &route(), at(1))).await, Applied::Applied);
        let dead = get(rig.store(), ONE).await;
        assert!(matches!(dead.state, State::Dead { reason: DeadReason::Refused, .. }));
        let retry = operate(&dead, Action::Retry, &"ada".into(), &route(), at(100)).unwrap();
        assert_eq!(write(rig.store(), retry).await, Applied::Applied);
        let row = rig
            .place
            .say("SELECT \"Status\", \"AttemptCount\", \"DeadReason\", \"LockedUntil\" FROM \"EmailLog\"");
        assert_eq!(row, "Failed|0||");
        let again = claim_one(rig.store(), 100).await;
        assert_eq!((again.generation, again.attempts, again.due_at), (1, 0, at(100)));
        assert_eq!(rig.store().audit(10).await.unwrap()[0].action, "retry");
    }

    pub(super) async fn a_dismissal_needs_a_word_for_it(rig: &Rig) {
        rig.put(&Put { status: "Dead", ..Put::failed(ONE, at(0)) });
        let dead = get(rig.store(), ONE).await;
        let dismiss = operate(&dead, Action::Dismiss, &"ada".into(), &route(), at(1)).unwrap();
        let refused = rig.store().apply(vec![dismiss]).await;
        let Err(StoreError::Unfit(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("tables.log.words.dismissed"), "{why}");
        assert_eq!(rig.store().audit(10).await.unwrap(), []);
    }

    pub(super) async fn an_application_row_is_never_deleted(rig: &Rig) {
        rig.put(&Put { status: "Sent", ..Put::failed(ONE, at(0)) });
        let prune = redeliver_engine::store::PruneRequest {
            route: "mail".into(),
            before: at(10_000),
            key_retention: None,
            now: at(10_000),
            limit: 100,
        };
        assert_eq!(rig.store().prune(prune).await.unwrap().messages, 0);
        assert_eq!(rig.place.say("SELECT count(*) FROM \"EmailLog\""), "1");
    }

    pub(super) async fn nothing_is_accepted_into_a_table(rig: &Rig) {
        let refused = rig
            .store()
            .insert(vec![redeliver_conformance::make::row(redeliver_conformance::make::message(1))]);
        let Err(StoreError::Unfit(why)) = refused.await else { panic!("it was accepted") };
        assert!(why.contains("\"EmailLog\""), "{why}");
    }

    pub(super) async fn two_instances_never_take_the_same_row(rig: &Rig) {
        let id = |n: u32| format!("00000000-0000-0000-0000-{n:012}");
        let rows: Vec<Put> = (0..200).map(|n| Put::failed(id(n), at(0))).collect();
        rig.put_all(&rows);
        let other = rig.again().await;
        let take = async |store: &dyn Store, instance| {
            let mut taken = Vec::new();
            loop {
                let claims = store.claim(ClaimRequest { limit: 7, instance, ..request() }).await.unwrap();
                if claims.claimed.is_empty() {
                    return taken;
                }
                taken.extend(claims.claimed.into_iter().map(|(message, _)| message.id));
            }
        };
        let (mut all, others) = tokio::join!(take(rig.store(), ANN), take(&other, BOB));
        all.extend(others);
        all.sort();
        assert_eq!(all.len(), 200);
        all.dedup();
        assert_eq!(all.len(), 200, "none was taken twice");
    }

    pub(super) async fn rows_are_listed_after_our_own_messages_and_counted_by_their_words(rig: &Rig) {
        rig.put(&Put::failed(ONE, at(0)));
        rig.put(&Put { status: "Dead", ..Put::failed(TWO, at(0)) });
        let own = Message { route: "letters".into(), ..redeliver_conformance::make::message(5) };
        rig.store().insert(vec![redeliver_conformance::make::row(own.clone())]).await.unwrap();
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = rig.store().list(Filter { after, limit: 1, ..Filter::default() }).await.unwrap();
            let Some(message) = page.into_iter().next() else { break };
            after = Some(message.id.clone());
            seen.push(message.id);
        }
        assert_eq!(seen, [own.id, row_id(TWO), row_id(ONE)]);
        let counts = rig.store().counts(at(0)).await.unwrap();
        let of = |state| counts.iter().find(|count| &*count.route == "mail" && count.state == state).unwrap();
        assert_eq!((of("waiting").count, of("waiting").due, of("dead").count), (1, 1, 1));
        assert_eq!(of("dead").reason, Some("refused"));
    }
}

#[test]
fn a_row_with_a_word_for_it_can_be_dismissed_and_restored() {
    redeliver_conformance::judge(async {
        let words = Words { dismissed: Some("Archived".to_owned()), ..Words::default() };
        let rig = Rig::sqlite_with(Mapping { words, ..mapping() });
        rig.put(&Put { status: "Dead", ..Put::failed(ONE, at(0)) });
        for (action, status) in [(Action::Dismiss, "Archived"), (Action::Restore, "Dead")] {
            let change =
                operate(&get(rig.store(), ONE).await, action, &"ada".into(), &route(), at(1)).unwrap();
            assert_eq!(write(rig.store(), change).await, Applied::Applied);
            assert_eq!(rig.place.say("SELECT \"Status\" FROM \"EmailLog\""), status);
        }
    });
}

#[test]
fn a_tick_takes_what_was_due_when_it_began_and_the_next_is_an_interval_later() {
    redeliver_conformance::judge(async {
        let rig = Rig::sqlite_with(Mapping { retry_interval: Duration::from_secs(60), ..mapping() });
        rig.put(&Put::failed(ONE, at(0)));
        rig.put(&Put::failed(TWO, at(30)));
        let claims = rig.store().claim(request()).await.unwrap();
        assert_eq!((claims.claimed.len(), claims.next_due_at), (1, Some(at(60))));
        let early = rig.store().claim(ClaimRequest { now: at(59), ..request() }).await.unwrap();
        assert_eq!((early.claimed.len(), early.next_due_at), (0, Some(at(60))));
        let change = settle(&claims.claimed[0].0, &took_it(), &route(), at(59));
        write(rig.store(), change).await;
        assert_eq!(claim_one(rig.store(), 60).await.id, row_id(TWO));
    });
}

#[test]
fn a_renewed_claim_is_still_its_holders_to_settle() {
    redeliver_conformance::judge(async {
        for rig in [Rig::sqlite(), Rig::postgres().await] {
            rig.put(&Put::failed(ONE, at(0)));
            let claimed = claim_one(rig.store(), 0).await;
            let claim = redeliver_conformance::make::claim_of(&claimed);
            assert_eq!(rig.store().renew(vec![claim], at(40).plus(LEASE)).await.unwrap(), [true]);
            assert_eq!(rig.store().lapsed(at(61), 10).await.unwrap(), []);
            let change = settle(&claimed, &Outcome::HandedOff, &route(), at(62));
            assert_eq!(write(rig.store(), change).await, Applied::Applied);
        }
    });
}

#[test]
fn what_a_rule_of_the_applications_forbids_is_not_said_to_work_in_a_moment() {
    redeliver_conformance::judge(async {
        let rig = Rig::postgres().await;
        rig.put(&Put::failed(ONE, at(0)));
        let claimed = claim_one(rig.store(), 0).await;
        rig.place.say("ALTER TABLE \"EmailLog\" ADD CHECK (\"Status\" <> 'Pending')");
        let change = settle(&claimed, &Outcome::HandedOff, &route(), at(1));
        let written = rig.store().apply(vec![change]).await;
        assert!(matches!(written, Err(StoreError::Unfit(_))), "{written:?}");
    });
}

#[test]
fn times_without_a_zone_are_read_in_the_tables() {
    redeliver_conformance::judge(async {
        let zoned = Mapping { zone: "Europe/Paris".to_owned(), ..mapping() };
        let without = |ddl: String| ddl.replace("timestamp with time zone", "timestamp");
        let rig = Rig::postgres_with(zoned.clone(), without).await;
        // The stories begin on 2027-01-15 at 08:00 UTC, which is 09:00 in Paris.
        let insert = |zone: &str| {
            format!(
                "INSERT INTO \"EmailLog\" (\"EmailId\", \"Status\", \"NextAttemptAt\") VALUES ('{ONE}', 'Failed', '2027-01-15 09:00:00{zone}')"
            )
        };
        rig.place.say(&insert(""));
        assert_eq!(rig.store().claim(ClaimRequest { now: at(-1), ..request() }).await.unwrap().claimed, []);
        assert_eq!(claim_one(rig.store(), 0).await.due_at, at(0));
        assert_eq!(rig.place.say("SELECT \"LockedUntil\" FROM \"EmailLog\""), "2027-01-15 09:01:00");
        let rig = Rig::sqlite_with(Mapping { times: Times::Text, ..zoned });
        rig.place.say(&insert(""));
        assert_eq!(rig.store().claim(ClaimRequest { now: at(-1), ..request() }).await.unwrap().claimed, []);
        assert_eq!(claim_one(rig.store(), 0).await.due_at, at(0));
        assert_eq!(rig.place.say("SELECT \"LockedUntil\" FROM \"EmailLog\""), "2027-01-15 09:01:00.000000");
    });
}

#[test]
fn odd_names_and_words_are_quoted() {
    redeliver_conformance::judge(async {
        let database = PostgresServer::shared().database();
        let mut odd =
            Mapping::new("log", "mail", TableName::parse("\"o'dd\".\"E\"\"; DROP TABLE x; --\"").unwrap());
        odd.columns.status = "sta\"tus".to_owned();
        odd.columns.next_attempt_at = "{id}".to_owned();
        odd.words.failed = "it's failed".to_owned();
        odd.retry_interval = Duration::ZERO;
        PostgresTable::init(&database.url(), &OpenOptions::default(), &odd).await.unwrap();
        let url = database.url();
        let rows = PostgresTable::open(&url, OpenOptions::default(), odd.clone(), Clock::Database);
        let rows = rows.await.unwrap();
        database.say(&format!(
            "INSERT INTO {} (\"EmailId\", \"sta\"\"tus\", \"{{id}}\") VALUES (7, 'it''s failed', now() - interval '1 s')",
            odd.table.quoted()
        ));
        let due = redeliver_stores::adopted::Due {
            by: redeliver_core::Timestamp::MAX,
            now: at(0),
            lease: LEASE,
            attempts_max: 8,
            limit: 10,
        };
        use redeliver_stores::adopted::Rows;
        let claimed = rows.claim(due).await.unwrap();
        assert_eq!((claimed.len(), claimed[0].id.as_str()), (1, "7"));
        let ahead = database.say(&format!(
            "SELECT \"LockedUntil\" - now() BETWEEN interval '0' AND interval '60 s' FROM {}",
            odd.table.quoted()
        ));
        assert_eq!(ahead, "t", "a lease counts from the database's time, whatever the caller's is");
    });
}

#[test]
fn a_table_without_its_index_is_refused_with_the_one_to_make() {
    redeliver_conformance::judge(async {
        let database = PostgresServer::shared().database();
        let url = database.url();
        let open = || PostgresTable::open(&url, OpenOptions::default(), mapping(), Clock::Caller);
        let refused = async |word: &str| {
            let Err(error) = open().await else { panic!("it was opened") };
            assert!(error.to_string().contains(word), "{error}");
            error.to_string()
        };
        refused("there is no table \"EmailLog\"").await;
        PostgresTable::init(&database.url(), &OpenOptions::default(), &mapping()).await.unwrap();
        assert!(open().await.is_ok());
        database.say("DROP INDEX \"EmailLog_Status_NextAttemptAt\"");
        // One that only knows some of the rows is no use.
        database.say(
            "CREATE INDEX partly ON \"EmailLog\" (\"Status\", \"NextAttemptAt\") WHERE \"AttemptCount\" > 3",
        );
        let why = refused("CREATE INDEX CONCURRENTLY").await;
        let make = why.split("make one: ").nth(1).unwrap();
        database.say(make);
        assert!(open().await.is_ok(), "the advice is good");
        database.say("ALTER TABLE \"EmailLog\" DROP COLUMN \"LockedUntil\", DROP COLUMN \"LastError\"");
        let why = refused("\"LockedUntil\"").await;
        assert!(why.contains("\"LastError\""), "{why}");
    });
}

#[test]
fn a_sqlite_table_without_its_index_is_refused_with_the_one_to_make() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.db");
    SqliteTable::init(&path, &mapping()).unwrap();
    assert!(SqliteTable::open(&path, mapping()).is_ok());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("DROP INDEX \"EmailLog_Status_NextAttemptAt\"").unwrap();
    let Err(error) = SqliteTable::open(&path, mapping()) else { panic!("it was opened") };
    let why = error.to_string();
    db.execute_batch(why.split("make one: ").nth(1).unwrap()).unwrap();
    assert!(SqliteTable::open(&path, mapping()).is_ok(), "the advice is good");
}

#[test]
fn a_status_may_be_an_enum_or_a_number() {
    redeliver_conformance::judge(async {
        let numbers = ["0", "1", "2", "3", "4"].map(str::to_owned);
        let [pending, failed, retry_queued, sent, dead] = numbers;
        let numbered = Words { pending, failed, retry_queued, sent, dead, ..Words::default() };
        let words = "CREATE TYPE standing AS ENUM ('Pending', 'Failed', 'RetryQueued', 'Sent', 'Dead');";
        for (words, kind, before) in [(Words::default(), "standing", words), (numbered, "smallint", "")] {
            let text = "\"Status\" text";
            let other = |ddl: String| format!("{before}{}", ddl.replace(text, &format!("\"Status\" {kind}")));
            let rig = Rig::postgres_with(Mapping { words: words.clone(), ..mapping() }, other).await;
            rig.place.say(&format!(
                "INSERT INTO \"EmailLog\" (\"EmailId\", \"Status\", \"NextAttemptAt\") VALUES ('{ONE}', '{}', '2027-01-15')",
                words.failed
            ));
            let claimed = claim_one(rig.store(), 0).await;
            let change = settle(&claimed, &Outcome::HandedOff, &route(), at(1));
            assert_eq!(write(rig.store(), change).await, Applied::Applied);
            assert_eq!(rig.place.say("SELECT \"Status\" FROM \"EmailLog\""), words.pending);
            let listed =
                rig.store().list(Filter { state: Some("handed_off"), limit: 9, ..Filter::default() });
            assert_eq!(listed.await.unwrap().len(), 1);
            assert_eq!(rig.store().counts(at(0)).await.unwrap()[0].state, "handed_off");
        }
    });
}
