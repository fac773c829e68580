//! How commands are told where the messages are, which of them are meant, and how to show them.

use std::path::PathBuf;

use clap::Args as ArgGroup;
use clap::builder::PossibleValuesParser;
use redeliver_core::Lane;
use redeliver_core::status::Status;

use super::ConfigArgs;
use crate::config::StoreUrl;

/// Where the messages are: with a server, in a file that no server holds, or in a database.
#[derive(Debug, Clone, Default, ArgGroup)]
#[command(next_help_heading = "Where the messages are")]
pub struct ReachArgs {
    /// Server, such as http://127.0.0.1:8086; default: REDELIVER_URL
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub url: Option<String>,
    /// File with the API key; default: the key in REDELIVER_KEY
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub key_file: Option<PathBuf>,
    /// Store to open without a server: sqlite:FILE or postgres://…; default: the store of the config
    #[arg(long, value_name = "STORE", value_parser = StoreUrl::parse)]
    pub store: Option<StoreUrl>,
    /// Which config.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Who reads what a command prints.
#[derive(Debug, Clone, Copy, Default, ArgGroup)]
pub struct OutputArgs {
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Show times in UTC instead of relative to now
    #[arg(long, conflicts_with = "json")]
    pub utc: bool,
}

/// Which messages.
#[derive(Debug, Clone, Default, ArgGroup)]
pub struct FilterArgs {
    /// Filter by status
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(Status::ALL.map(Status::name)))]
    pub status: Option<String>,
    /// Filter by route
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// Filter by workspace
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// Filter by priority
    #[arg(long, value_name = "PRIORITY", value_parser = PossibleValuesParser::new(Lane::ALL.map(Lane::name)))]
    pub priority: Option<String>,
    /// Filter by key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Filter by text in a recipient address or an attribute (slow: scans messages)
    #[arg(long, value_name = "TEXT")]
    pub recipient: Option<String>,
    /// Filter by text in the last error (slow: scans messages)
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
    /// Filter by error fingerprint, as `redeliver dead` prints it (slow: scans messages)
    #[arg(long, value_name = "FINGERPRINT")]
    pub fingerprint: Option<String>,
    /// Accepted at or after: a time, or an age such as 24h
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Accepted before: a time, or an age such as 24h
    #[arg(long, value_name = "TIME")]
    pub before: Option<String>,
    /// Include dismissed messages
    #[arg(long)]
    pub with_dismissed: bool,
}

impl FilterArgs {
    /// What is said, as the API's list takes it.
    pub fn params(&self) -> Vec<(&'static str, &str)> {
        let said = [
            ("status", self.status.as_deref()),
            ("route", self.route.as_deref()),
            ("workspace", self.workspace.as_deref()),
            ("priority", self.priority.as_deref()),
            ("key", self.key.as_deref()),
            ("recipient", self.recipient.as_deref()),
            ("error", self.error.as_deref()),
            ("fingerprint", self.fingerprint.as_deref()),
            ("since", self.since.as_deref()),
            ("before", self.before.as_deref()),
            ("with_dismissed", self.with_dismissed.then_some("true")),
        ];
        said.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
