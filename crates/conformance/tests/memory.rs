//! The reference store keeps every rule, and so do the simplest transport and intake.

mod peers;

mod store {
    use redeliver_engine::memory::MemoryStore;

    redeliver_conformance::store_tests!(MemoryStore::new());
}

mod access {
    use redeliver_engine::memory::MemoryStore;

    redeliver_conformance::access_tests!(MemoryStore::new());
}

mod transport {
    use super::peers::MemoryTransport;

    redeliver_conformance::transport_tests!(MemoryTransport::new(None));
}

mod intake {
    use super::peers::MemoryIntake;

    redeliver_conformance::intake_tests!(MemoryIntake::new(None));
}

mod campaigns {
    use redeliver_engine::memory::MemoryStore;
    redeliver_conformance::campaign_tests!(MemoryStore::new());
}
