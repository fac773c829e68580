//! A client of AMQP 0-9-1, as much of it as Redeliver needs: no more than one word per message is believed, none is made
//! up, and nothing is done again by itself (docs/decisions has the page).

mod channel;
mod closed;
mod confirms;
mod connection;
pub mod frame;
mod handshake;
mod in_hand;
pub mod method;
pub mod properties;
pub mod table;
pub mod wire;

pub use channel::{Address, Channel, Delivery, Flow, NAME_HEADER};
pub use closed::{Closed, code};
pub use confirms::Confirm;
pub use connection::{Connection, Options, Stream};
pub use handshake::FRAME_BYTES_MAX;
pub use in_hand::Weight;
