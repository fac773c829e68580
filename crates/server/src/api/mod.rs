//! The calls of the API, one file for each resource.

pub mod audit;
pub mod bulk;
pub mod campaigns;
pub mod dead_letters;
pub mod destinations;
pub mod health;
pub mod instances;
pub mod keys;
pub mod messages;
pub mod outbox;
pub mod routes;
pub mod senders;
pub mod stats;
pub mod suppressions;
pub mod view;
pub mod workspaces;
