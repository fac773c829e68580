//! SQLite keeps every rule for stores, with threads of its own and without.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

use redeliver_conformance::access::AccessRig;
use redeliver_conformance::campaigns::CampaignRig;
use redeliver_conformance::store::StoreRig;
use redeliver_engine::access::Access;
use redeliver_engine::campaigns::Campaigns;
use redeliver_engine::store::Store;
use redeliver_stores::{OpenOptions, Sqlite, SyncSqlite};

/// A store in a file that lives as long as the test.
struct InFile {
    store: Sqlite,
    _directory: tempfile::TempDir,
}

impl InFile {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Sqlite::open(directory.path().join("store.db"), OpenOptions::default()).unwrap();
        Self { store, _directory: directory }
    }
}

impl StoreRig for InFile {
    fn store(&self) -> &dyn Store {
        &self.store
    }
}

impl AccessRig for InFile {
    fn access(&self) -> &dyn Access {
        &self.store
    }

    fn store(&self) -> &dyn Store {
        &self.store
    }
}

impl CampaignRig for InFile {
    fn campaigns(&self) -> &dyn Campaigns {
        &self.store
    }

    fn store(&self) -> &dyn Store {
        &self.store
    }
}

/// A store in memory that has been used before and cleared since.
fn cleared() -> SyncSqlite {
    let store = SyncSqlite::in_memory().unwrap();
    store.clear().unwrap();
    store
}

mod with_threads {
    use super::*;
    redeliver_conformance::store_tests!(InFile::new());
    mod access {
        use super::*;
        redeliver_conformance::access_tests!(InFile::new());
    }
    mod campaigns {
        use super::*;
        redeliver_conformance::campaign_tests!(InFile::new());
    }
}

mod inline {
    use super::*;
    redeliver_conformance::store_tests!(cleared());
    mod access {
        use super::*;
        redeliver_conformance::access_tests!(cleared());
    }
    mod campaigns {
        use super::*;
        redeliver_conformance::campaign_tests!(cleared());
    }
}
