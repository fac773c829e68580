//! What is asked, what counts as a yes, and how long nobody is asked again.

use std::time::Duration;

use redeliver_core::breaker::BreakerConfig;

use super::template::Template;

/// How a service is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct EligibilityConfig {
    /// Where the service is, such as `http://devices:8080`; without it nobody is asked, and everybody counts as active.
    pub url: Option<String>,
    /// What is asked for there.
    pub path: Template,
    /// The field of the answer that says it, with dots between the names of objects within objects.
    pub active_field: String,
    /// What that field says of whoever is active.
    pub active_values: Vec<String>,
    /// Statuses that say that nobody is active there.
    pub inactive_statuses: Vec<u16>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long an answer counts for the next message to the same.
    pub cache_for: Duration,
    /// How soon a message is checked again whose check could not be made.
    pub again_after: Duration,
    /// When the service is left alone because it doesn't answer.
    pub breaker: BreakerConfig,
}

impl Default for EligibilityConfig {
    fn default() -> Self {
        Self {
            url: None,
            path: Template::default(),
            active_field: "active".to_owned(),
            active_values: vec!["true".to_owned()],
            inactive_statuses: vec![404],
            timeout: Duration::from_secs(2),
            cache_for: Duration::from_secs(5),
            again_after: Duration::from_secs(5),
            breaker: BreakerConfig {
                failures_max: 5,
                open_for: Duration::from_secs(5),
                open_for_max: Duration::from_secs(60),
                recover_per_s: 100,
            },
        }
    }
}
