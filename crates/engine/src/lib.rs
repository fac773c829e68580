//! Drives messages along: claims what is due, has it carried, and writes down what came of it.
//!
//! The ports are [`store`], [`transport`], [`intake`], [`gate`] and [`clock`]. Whether a message is retried or dead is
//! never decided here, only in `redeliver_core::settle`.

pub mod clock;
pub mod gate;
pub mod intake;
pub mod memory;
pub mod stop;
pub mod store;
pub mod transport;
