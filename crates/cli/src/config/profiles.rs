//! The configs that come with the binary, one for each of the systems that it can be.

/// A config that comes with the binary.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All profiles.
pub const ALL: &[Profile] = &[
    Profile { name: "email-outbox", text: include_str!("../../../../profiles/email-outbox.toml") },
    Profile { name: "broker-retry", text: include_str!("../../../../profiles/broker-retry.toml") },
    Profile { name: "email-dispatcher", text: include_str!("../../../../profiles/email-dispatcher.toml") },
    Profile { name: "notifications", text: include_str!("../../../../profiles/notifications.toml") },
    Profile { name: "campaigns", text: include_str!("../../../../profiles/campaigns.toml") },
];

/// The profile with this name.
pub fn find(name: &str) -> Option<Profile> {
    ALL.iter().copied().find(|profile| profile.name == name)
}
