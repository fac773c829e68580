//! Which mail of which campaign a message is. It is said in the message's attributes, so that gates find it there whether
//! the mail has been written yet or not.

use std::collections::BTreeMap;

use crate::content::Content;

/// What the bytes of a mail are that has not been written yet: there are none.
pub const STEP_TYPE: &str = "application/vnd.redeliver.campaign-step";

/// Which mail of which campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailOf {
    /// The campaign's id.
    pub campaign: String,
    /// The prospect's id.
    pub prospect: String,
    /// The step's number, from 1.
    pub step: u32,
    /// Who sends it.
    pub sender: String,
}

impl MailOf {
    /// The content of a mail that is yet to be written.
    pub fn to_content(&self) -> Content {
        let attributes = [
            ("campaign", self.campaign.clone()),
            ("prospect", self.prospect.clone()),
            ("step", self.step.to_string()),
            ("sender", self.sender.clone()),
        ];
        Content {
            attributes: BTreeMap::from(attributes.map(|(name, value)| (name.to_owned(), value))),
            content_type: Some(STEP_TYPE.into()),
            ..Content::default()
        }
    }

    /// The mail that a content is, or is yet to become; `None` if it is nothing of a campaign.
    pub fn of_content(content: &Content) -> Option<Self> {
        Self::of_attributes(&content.attributes)
    }

    /// The same by a content's attributes alone.
    pub fn of_attributes(attributes: &BTreeMap<String, String>) -> Option<Self> {
        let attribute = |name: &str| attributes.get(name).cloned();
        Some(Self {
            campaign: attribute("campaign")?,
            prospect: attribute("prospect")?,
            step: attribute("step")?.parse().ok()?,
            sender: attribute("sender")?,
        })
    }

    /// Whether a content is yet to be written.
    pub fn is_unwritten(content: &Content) -> bool {
        content.content_type.as_deref() == Some(STEP_TYPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_found_in_its_content() {
        let mail =
            MailOf { campaign: "c".into(), prospect: "p-1".into(), step: 2, sender: "a@example.org".into() };
        let content = mail.to_content();
        assert!(MailOf::is_unwritten(&content));
        assert_eq!(MailOf::of_content(&content), Some(mail));
        assert_eq!(MailOf::of_content(&Content::of_bytes("x")), None);
    }
}
