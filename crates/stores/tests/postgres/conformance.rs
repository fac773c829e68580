//! The rules, on a database of its own for each.

use std::sync::OnceLock;

use redeliver_conformance::access::AccessRig;
use redeliver_conformance::campaigns::CampaignRig;
use redeliver_conformance::store::StoreRig;
use redeliver_engine::access::Access;
use redeliver_engine::campaigns::Campaigns;
use redeliver_engine::store::Store;
use redeliver_servers::pgbouncer::PgBouncer;
use redeliver_servers::postgres::{Database, PostgresServer};
use redeliver_stores::Postgres;
use redeliver_stores::postgres::OpenOptions;

/// A store in a database that lives as long as the test.
struct InDatabase {
    store: Postgres,
    _database: Database<'static>,
}

impl InDatabase {
    async fn on(server: &'static PostgresServer) -> Self {
        let database = server.database();
        let store = Postgres::open(&database.url(), OpenOptions::default()).await.unwrap();
        Self { store, _database: database }
    }

    /// The same, with everything but tables and news going through a pooler.
    async fn behind_a_pooler() -> Self {
        static POOLER: OnceLock<PgBouncer> = OnceLock::new();
        let database = PostgresServer::shared().database();
        let pooler = POOLER.get_or_init(|| PgBouncer::start(PostgresServer::shared()));
        let options = OpenOptions { direct_url: Some(database.url()), ..OpenOptions::default() };
        let store = Postgres::open(&pooler.url(&database), options).await.unwrap();
        Self { store, _database: database }
    }
}

impl StoreRig for InDatabase {
    fn store(&self) -> &dyn Store {
        &self.store
    }
}

impl AccessRig for InDatabase {
    fn access(&self) -> &dyn Access {
        &self.store
    }

    fn store(&self) -> &dyn Store {
        &self.store
    }
}

impl CampaignRig for InDatabase {
    fn campaigns(&self) -> &dyn Campaigns {
        &self.store
    }

    fn store(&self) -> &dyn Store {
        &self.store
    }
}

mod by_itself {
    use super::*;
    redeliver_conformance::store_tests!(InDatabase::on(PostgresServer::shared()).await);
    mod access {
        use super::*;
        redeliver_conformance::access_tests!(InDatabase::on(PostgresServer::shared()).await);
    }
    mod campaigns {
        use super::*;
        redeliver_conformance::campaign_tests!(InDatabase::on(PostgresServer::shared()).await);
    }

    #[test]
    fn it_really_is_an_older_version_than_18_and_none_before_15() {
        let version = PostgresServer::shared().say("postgres", "SHOW server_version_num");
        let major = version.parse::<u32>().unwrap() / 10_000;
        assert!((15..18).contains(&major), "{version}");
    }
}

mod behind_a_pooler {
    use super::*;
    redeliver_conformance::store_tests!(InDatabase::behind_a_pooler().await);
    mod access {
        use super::*;
        redeliver_conformance::access_tests!(InDatabase::behind_a_pooler().await);
    }
    mod campaigns {
        use super::*;
        redeliver_conformance::campaign_tests!(InDatabase::behind_a_pooler().await);
    }
}

mod on_18 {
    use super::*;
    redeliver_conformance::store_tests!(InDatabase::on(PostgresServer::shared_18()).await);
    mod access {
        use super::*;
        redeliver_conformance::access_tests!(InDatabase::on(PostgresServer::shared_18()).await);
    }
    mod campaigns {
        use super::*;
        redeliver_conformance::campaign_tests!(InDatabase::on(PostgresServer::shared_18()).await);
    }

    #[test]
    fn it_really_is_version_18() {
        let version = PostgresServer::shared_18().say("postgres", "SHOW server_version_num");
        assert!(version.starts_with("18"), "{version}");
    }
}
