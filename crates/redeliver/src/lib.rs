//! The library face: an outbox inside an application.
