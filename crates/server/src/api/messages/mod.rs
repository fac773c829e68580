//! `/v1/messages`: have them accepted, look at them, do something about them.

pub mod act;
pub mod content;
pub mod cursor;
pub mod edit;
pub mod list;
mod ndjson;
pub mod one;
mod read;
pub mod report;
pub mod submit;

pub use read::{check_workspace, read_message};
use redeliver_core::{Message, MessageId};

use crate::Server;
use crate::auth::Caller;
use crate::input::path::no_message;
use crate::problem::Problem;

/// A message that whoever asks may know of.
pub(crate) async fn find(server: &Server, caller: &Caller, id: &MessageId) -> Result<Message, Problem> {
    let message = server.engine.store().get(id.clone()).await?;
    message.filter(|message| caller.sees(message)).ok_or_else(|| no_message(id))
}
