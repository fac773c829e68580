//! Proves the engine in virtual time: real engine, real decisions, and every fault that a seed can draw.
//!
//! A run is a function of its seed: chaos, then healing, then everything must have settled. [`run::run`] does one;
//! the tests do a hundred thousand, and show that each of the planted bugs is caught.

pub mod batch;
pub mod clock;
pub mod crowd;
pub mod disk;
pub mod executor;
pub mod fleet_limits;
pub mod ledger;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod sources;
pub mod stage;
pub mod store;
pub mod stores;
pub mod threaded;
pub mod transport;
pub mod world;
