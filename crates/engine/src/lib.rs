//! Drives messages along: claims what is due, has it carried, and writes down what came of it.
//!
//! The ports are [`store`], [`access`], [`transport`], [`intake`], [`gate`] and [`clock`]. Whether a message is retried
//! or dead is never decided here, only in `redeliver_core::settle`.

mod accept;
pub mod access;
mod apply;
pub mod aside;
mod attempt;
pub mod bring;
pub mod bulk;
pub mod campaign;
pub mod campaigns;
mod claim;
pub mod clock;
pub mod edit;
pub mod emit;
pub mod engine;
pub mod gate;
mod gates;
pub mod hand_off;
pub mod hear;
pub mod inline;
pub mod intake;
mod life;
mod limits;
mod maintain;
pub mod memory;
pub mod operate;
pub mod parts;
mod prune;
pub mod pulse;
mod reap;
mod run;
pub mod search;
pub mod sender;
pub mod span;
pub mod stop;
pub mod store;
pub mod transport;
mod wake;
mod work;

pub use engine::{Engine, Line, Settings};
pub use life::{Lateness, Unready};
pub use reap::Reaped;
