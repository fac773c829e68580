//! The reference store keeps every rule.

use redeliver_engine::memory::MemoryStore;

redeliver_conformance::store_tests!(MemoryStore::new());
