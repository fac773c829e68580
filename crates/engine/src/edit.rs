//! Corrects a message and sends it again: read by whoever wants it, decided in core, written under the fence that was seen.

use std::sync::Arc;

use redeliver_core::edit::{Uneditable, Wanted, edit};
use redeliver_core::{Change, Content, Message};

use crate::engine::Engine;
use crate::store::StoreError;

/// Why a message was not corrected.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum EditError {
    /// It can't be, or not like this.
    #[error(transparent)]
    Uneditable(#[from] Uneditable),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// What a correction of this message, which carries this content, would change. Writes nothing.
    pub async fn plan_edit(
        &self,
        message: &Message,
        content: &Content,
        wanted: Wanted,
        actor: &Arc<str>,
    ) -> Result<Change, EditError> {
        let edits = self.store.edits(message.id.clone()).await?;
        let route = self.route_of(&wanted.route)?;
        Ok(edit(message, content, &edits, wanted, actor, route, self.clock.now())?)
    }

    /// Writes a correction that was planned, and gives the message back as it stands afterwards. It is not planned again if
    /// somebody else was faster: what they left is for whoever wanted it to look at.
    pub async fn edit(&self, planned: Change) -> Result<Message, EditError> {
        let (id, seen) = (planned.message.id.clone(), planned.expected_fence);
        if let Some(after) = self.write(planned).await? {
            return Ok(after);
        }
        let now = self.store.get(id).await?.map_or(seen + 1, |message| message.fence);
        Err(Uneditable::Stale { seen, now }.into())
    }
}
