//! What a mail of a campaign would say if it went out now, for whoever looks at it before it is written. Nothing is counted or
//! kept: it is written anew when it goes out.

use redeliver_core::campaign::MailOf;
use redeliver_core::email::Email;
use redeliver_core::{Content, Message};

use super::CampaignError;
use super::dispatch::{dossier, previous, threaded};
use crate::engine::Engine;

/// A mail that is yet to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Which mail of which campaign.
    pub of: MailOf,
    /// Whom it is for.
    pub to: String,
    /// What it would say now; an error says why it can't be written.
    pub written: Result<Email, String>,
}

impl Engine {
    /// The mail that a message is yet to become; `None` if it is written already, or is nothing of a campaign of its workspace.
    pub async fn unwritten(
        &self,
        message: &Message,
        content: &Content,
    ) -> Result<Option<Unwritten>, CampaignError> {
        let of = MailOf::of_content(content).filter(|_| MailOf::is_unwritten(content));
        let (Some(of), Some(desk)) = (of, &self.desk) else { return Ok(None) };
        let Some(dossier) = dossier(desk, &of, message).await? else { return Ok(None) };
        let Some(ways) = desk.ways(&of.campaign, dossier.settings_version).await? else { return Ok(None) };
        let prospect = &dossier.prospect.prospect;
        let before = previous(desk, &ways, &of).await?;
        let written = ways.templates.write(&ways.campaign, of.step, prospect);
        let written = written.map(|email| threaded(email, before.as_ref(), &ways));
        Ok(Some(Unwritten { of, to: prospect.email.clone(), written }))
    }
}
