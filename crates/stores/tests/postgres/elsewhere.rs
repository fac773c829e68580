//! A database that is somewhere else: encrypted ways to it, and another host that takes over.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redeliver_conformance::make::{id, message, row};
use redeliver_engine::store::Store;
use redeliver_servers::free_port;
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::Postgres;
use redeliver_stores::postgres::OpenOptions;
use tokio_postgres::NoTls;

use crate::alone::{run, until};

/// An authority that gives out certificates.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[test]
fn an_encrypted_way_is_checked_as_sslmode_says() {
    let server = PostgresServer::start();
    let (known, unknown) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &known).unwrap();
    server.encrypt(&certificate.pem(), &key.serialize_pem());
    let directory = tempfile::tempdir().unwrap();
    let keep = |name: &str, authority: &CertifiedIssuer<'static, KeyPair>| -> PathBuf {
        let path = directory.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        path
    };
    let (known, unknown) = (keep("known.pem", &known), keep("unknown.pem", &unknown));
    let url = |host: &str, mode: &str| {
        format!("postgres://postgres@{host}:{}/postgres?sslmode={mode}", server.port())
    };
    let trusting = |host: &str, mode: &str, root: &PathBuf| {
        format!("{}&sslrootcert={}", url(host, mode), root.display())
    };
    let encrypted = || {
        let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                   WHERE ssl AND application_name = 'redeliver'";
        server.say("postgres", sql) != "0"
    };
    run(async {
        let opens = async |url: String| Postgres::open(&url, OpenOptions::default()).await;
        // The server has begun to take encrypted connections once it takes one.
        until("it is encrypted", async || opens(url("127.0.0.1", "require")).await.is_ok()).await;
        for url in [
            url("127.0.0.1", "prefer"),
            url("127.0.0.1", "require"),
            trusting("127.0.0.1", "verify-ca", &known),
            trusting("localhost", "verify-full", &known),
        ] {
            let store = opens(url.clone()).await.unwrap_or_else(|error| panic!("{url}: {error}"));
            assert!(encrypted(), "{url}");
            drop(store);
        }
        for url in [
            trusting("127.0.0.1", "verify-full", &known),
            trusting("127.0.0.1", "verify-ca", &unknown),
            trusting("localhost", "verify-full", &unknown),
            url("localhost", "verify-full"),
        ] {
            assert!(opens(url.clone()).await.is_err(), "{url} was opened");
        }
        until("nobody is there any more", async || !encrypted()).await;
        let _plain = opens(url("127.0.0.1", "disable")).await.unwrap();
        assert!(!encrypted(), "it was to be plain");
    });
}

#[test]
fn a_standby_that_needs_the_past_is_seen_to_hold_back_vacuum_by_its_slot_or_by_itself() {
    let primary = PostgresServer::start();
    let standby = primary.standby(free_port());
    let set = |setting: &str| {
        standby.say("postgres", &format!("ALTER SYSTEM SET {setting}"));
        standby.say("postgres", "SELECT pg_reload_conf()");
    };
    run(async {
        let store = Postgres::open(&primary.url("postgres"), OpenOptions::default()).await.unwrap();
        let holds = async |who: &str| {
            let holders = store.health().await.unwrap().holders;
            holders.iter().any(|holder| holder.who.starts_with(who) && holder.since.is_none())
        };
        set("wal_receiver_status_interval = '1s'");
        set("hot_standby_feedback = on");
        // A session of its own does not hide it.
        let (session, connection) = tokio_postgres::connect(&primary.url("postgres"), NoTls).await.unwrap();
        tokio::spawn(connection);
        session.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
        until("its slot holds it back", async || holds("replication slot standby_").await).await;
        set("primary_slot_name = ''");
        until("it holds it back itself", async || holds("standby walreceiver at").await).await;
    });
}

#[test]
fn a_slot_that_needs_the_past_of_catalogs_alone_holds_back_none_of_our_rows() {
    let mut server = PostgresServer::start();
    server.say("postgres", "ALTER SYSTEM SET wal_level = logical");
    server.kill();
    server.resume();
    server.say("postgres", "SELECT pg_create_logical_replication_slot('feed', 'pgoutput')");
    run(async {
        let store = Postgres::open(&server.url("postgres"), OpenOptions::default()).await.unwrap();
        let holders = store.health().await.unwrap().holders;
        assert!(!holders.iter().any(|holder| holder.who.contains("feed")), "{holders:?}");
    });
}

#[test]
fn when_the_primary_dies_the_store_goes_on_with_the_standby_and_has_everything() {
    let mut primary = PostgresServer::start();
    let standby = primary.standby(free_port());
    let url =
        format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", standby.port(), primary.port());
    run(async {
        let store = Postgres::open(&url, OpenOptions::default()).await.unwrap();
        until("commits wait for the standby", async || {
            primary.say("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
                == "1"
        })
        .await;
        for n in 1..=20 {
            store.insert(vec![row(message(n))]).await.unwrap();
        }
        primary.kill();
        standby.promote();
        until("it is reached again", async || store.insert(vec![row(message(21))]).await.is_ok()).await;
        for n in 1..=21 {
            assert!(store.get(id(n)).await.unwrap().is_some(), "{n} was accepted");
        }
        let told = store.clock().now().as_ms();
        let said = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        assert!(told <= standby.say("postgres", said).parse::<i64>().unwrap());
    });
}
