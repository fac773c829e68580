//! The ids of an application's rows: published as what they are, and asked for only if they can be.

use redeliver_conformance::make::{at, request};
use redeliver_core::Outcome;
use redeliver_engine::sender::{Desk, Handed, Taken};
use redeliver_servers::pgbouncer::PgBouncer;
use redeliver_servers::postgres::PostgresServer;

use crate::rig::{Put, Rig, mapping, row_id};
use crate::senders::with_mails;

#[test]
fn ids_are_published_as_what_their_column_holds() {
    redeliver_conformance::judge(async {
        let published = async |rig: &Rig, id: &str| {
            rig.put(&Put::failed(id, at(0)));
            let (_, content) = rig.store().claim(request()).await.unwrap().claimed.pop().unwrap();
            let said: serde_json::Value = serde_json::from_slice(&content.bytes).unwrap();
            said["EmailId"].clone()
        };
        let typed = |kind: &'static str| move |ddl: String| ddl.replace("uuid", kind);
        for kind in ["text", "character varying(20)"] {
            let rig = Rig::postgres_with(mapping(), typed(kind)).await;
            assert_eq!(published(&rig, "007").await, "007", "{kind}");
        }
        for kind in ["integer", "bigint", "numeric(20, 0)"] {
            let rig = Rig::postgres_with(mapping(), typed(kind)).await;
            assert_eq!(published(&rig, "7").await, 7, "{kind}");
        }
        assert_eq!(published(&Rig::sqlite(), "007").await, "007", "text");
    });
}

#[test]
fn an_id_that_its_column_cannot_have_is_no_row() {
    redeliver_conformance::judge(async {
        let wrong = [
            ("smallint", "40000"),
            ("integer", "3000000000"),
            ("bigint", "99999999999999999999"),
            ("bigint", "seven"),
            ("uuid", "urn:uuid:00000000-0000-0000-0000-000000000001"),
            ("numeric(3, 0)", "seven"),
            ("numeric(3, 0)", "12345"),
            ("character varying(3)", "abcd"),
            ("inet", "nowhere"),
        ];
        let pooler = PgBouncer::start(PostgresServer::shared());
        for (kind, id) in wrong {
            let rig = Rig::postgres_with(with_mails(), |ddl| ddl.replace("uuid", kind)).await;
            if kind == "character varying(3)" {
                rig.put(&Put::failed("abc", at(0)));
            }
            assert_eq!(rig.store().get(row_id(id)).await, Ok(None), "{kind} {id}");
            assert_eq!(rig.store().content(row_id(id)).await, Ok(None), "{kind} {id}");
            let handed = Handed { id: row_id(id), attempt: None };
            for desk in [rig.desk().await, rig.desk_behind(&pooler).await] {
                let taken = desk.take(&handed, at(1), at(61)).await;
                assert_eq!(taken, Ok(Taken::Idle("there is no such row")), "{kind} {id}");
                let mail = desk.content(&row_id(id)).await;
                assert!(matches!(mail, Ok(Err(Outcome::Failed(_)))), "{kind} {id}: {mail:?}");
            }
        }
    });
}

#[test]
fn a_row_with_more_tries_than_anybody_counts_is_a_row_all_the_same() {
    redeliver_conformance::judge(async {
        let rig = Rig::postgres_with(mapping(), |ddl| ddl.replace("integer", "numeric")).await;
        let id = "00000000-0000-0000-0000-000000000001";
        rig.put(&Put { status: "Pending", ..Put::failed(id, at(0)) });
        for count in ["1e30", "'NaN'"] {
            rig.place.say(&format!("UPDATE \"EmailLog\" SET \"AttemptCount\" = {count}"));
            let found = rig.store().get(row_id(id)).await.unwrap().unwrap();
            assert_eq!(found.attempts, i32::MAX as u32, "{count}");
        }
        let handed = Handed { id: row_id(id), attempt: None };
        let taken = rig.desk().await.take(&handed, at(1), at(61)).await;
        assert!(matches!(taken, Ok(Taken::Ours(_))), "{taken:?}");
    });
}
