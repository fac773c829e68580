//! The commands that look at messages and do something about them, as they are written.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args as ArgGroup, Subcommand};
use redeliver_core::time::parse_span;

use super::reach::{FilterArgs, OutputArgs, ReachArgs};

/// `redeliver list`
#[derive(Debug, ArgGroup)]
pub struct ListArgs {
    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Maximum number of entries, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 50, conflicts_with = "all",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// List all entries
    #[arg(long)]
    pub all: bool,
    /// Omit recipient and subject (faster)
    #[arg(long, conflicts_with = "json")]
    pub brief: bool,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver show`
#[derive(Debug, ArgGroup)]
pub struct ShowArgs {
    /// Message id, or a unique prefix of it
    pub id: String,
    /// Show the whole content
    #[arg(long)]
    pub content: bool,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver explain`
#[derive(Debug, ArgGroup)]
pub struct ExplainArgs {
    /// Message id, or a unique prefix of it
    pub id: String,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver retry`, `cancel`, `dismiss` and `restore`
#[derive(Debug, ArgGroup)]
pub struct ActArgs {
    /// Message ids or unique prefixes; - reads them from standard input, one per line
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Print one line of JSON per message
    #[arg(long)]
    pub json: bool,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver edit`
#[derive(Debug, ArgGroup)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args([
    "to", "cc", "bcc", "from", "reply_to", "subject", "text", "html", "payload", "route", "target", "attribute", "from_json",
]))]
pub struct EditArgs {
    /// Message id, or a unique prefix of it
    pub id: String,
    /// New recipients (To); repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub to: Vec<String>,
    /// New Cc recipients; repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub cc: Vec<String>,
    /// New Bcc recipients; repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub bcc: Vec<String>,
    /// Sender (From); empty for the route's sender
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// Reply-To; empty for none
    #[arg(long, value_name = "ADDRESS")]
    pub reply_to: Option<String>,
    /// Subject
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,
    /// Text body; - for standard input
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// HTML body; - for standard input
    #[arg(long, value_name = "HTML")]
    pub html: Option<String>,
    /// New JSON content; - for standard input
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
    /// Route
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// Queue, topic or stream, if the route leaves it open; empty for none
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Attribute NAME=VALUE for gates, targets and filters; empty value removes it; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::send::read_attribute)]
    pub attribute: Vec<(String, String)>,
    /// File with the changes in the API's format; - for standard input
    #[arg(long, value_name = "FILE")]
    pub from_json: Option<PathBuf>,
    /// Show the changes without applying them
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver report`
#[derive(Debug, ArgGroup)]
pub struct ReportArgs {
    /// Message id, or a unique prefix of it
    pub id: String,
    /// Result
    #[arg(value_parser = PossibleValuesParser::new(["delivered", "failed", "refused"]))]
    pub outcome: String,
    /// Attempt that the report is about; default: the one handed off
    #[arg(long, value_name = "ATTEMPT")]
    pub attempt_id: Option<String>,
    /// Error message
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
    /// Error code
    #[arg(long, value_name = "CODE")]
    pub error_code: Option<String>,
    /// Minimum wait before the next attempt
    #[arg(long, value_name = "SPAN")]
    pub retry_after: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver tail`
#[derive(Debug, ArgGroup)]
pub struct TailArgs {
    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Number of messages to start with
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    pub lines: usize,
    /// Refresh interval
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = read_span)]
    pub every: Duration,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver import`
#[derive(Debug, ArgGroup)]
pub struct ImportArgs {
    /// File with one message per line, as JSON in the API's format; - for standard input
    pub file: PathBuf,
    /// Print one line of JSON per line of the file
    #[arg(long)]
    pub json: bool,
    /// Where to.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver export`
#[derive(Debug, ArgGroup)]
pub struct ExportArgs {
    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// New file to write to; default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver routes`
#[derive(Debug, Subcommand)]
pub enum RoutesCommand {
    /// List routes and whether they are paused
    List {
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Pause a route
    Pause(StopArgs),
    /// Resume a route
    Resume(StopArgs),
}

/// `pause` and `resume` of `redeliver routes`, `destinations` and `senders`
#[derive(Debug, ArgGroup)]
pub struct StopArgs {
    /// Name, as `list` shows it; for a sender, its address
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver stats`
#[derive(Debug, ArgGroup)]
pub struct CountArgs {
    /// Show the activity and lateness of the last minutes instead
    #[arg(long)]
    pub minutes: bool,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver destinations`
#[derive(Debug, Subcommand)]
pub enum DestinationsCommand {
    /// List destinations that are paused, held, throttled or behind an open breaker
    List {
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Pause a destination
    Pause(StopArgs),
    /// Resume a destination, also after a refused login
    Resume(StopArgs),
}

/// `redeliver senders`
#[derive(Debug, Subcommand)]
pub enum SendersCommand {
    /// List senders that are paused, or held after a refused login
    List {
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Pause a sender
    Pause(StopArgs),
    /// Resume a sender, also after a refused login
    Resume(StopArgs),
}

/// `redeliver dead` and `redeliver bulk list`
#[derive(Debug, ArgGroup)]
pub struct StatsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver instances`
#[derive(Debug, ArgGroup)]
pub struct InstancesArgs {
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver bulk`
#[derive(Debug, Subcommand)]
pub enum BulkCommand {
    /// Retry all matching messages, with a new budget of attempts
    Retry(BulkArgs),
    /// Cancel all matching messages that have not been sent
    Cancel(BulkArgs),
    /// Dismiss all matching dead messages
    Dismiss(BulkArgs),
    /// List the newest bulk operations
    List(StatsArgs),
    /// Show the progress of a bulk operation
    Show(BulkOneArgs),
    /// Pause a bulk operation
    Pause(BulkOneArgs),
    /// Resume a bulk operation
    Resume(BulkOneArgs),
    /// Stop a bulk operation; finished changes stay
    Stop(BulkOneArgs),
}

/// `redeliver bulk retry`, `cancel` and `dismiss`
#[derive(Debug, ArgGroup)]
pub struct BulkArgs {
    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Show the effect without applying it
    #[arg(long)]
    pub dry_run: bool,
    /// Maximum messages per second
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rate: u32,
    /// Send 1, 10 and 100 messages first, and stop if they fail
    #[arg(long)]
    pub canary: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver bulk show`, `pause`, `resume` and `stop`
#[derive(Debug, ArgGroup)]
pub struct BulkOneArgs {
    /// Id of the bulk operation
    pub id: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver audit`
#[derive(Debug, ArgGroup)]
pub struct AuditArgs {
    /// Actions of this key
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Action, such as retry
    #[arg(long, value_name = "WORD")]
    pub action: Option<String>,
    /// Subject of the action: a message id, route:NAME or bulk:ID
    #[arg(long, value_name = "WHAT")]
    pub subject: Option<String>,
    /// Maximum number of entries, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 50, conflicts_with = "all",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// List all entries
    #[arg(long)]
    pub all: bool,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// Reads a span that somebody can wait for.
pub fn read_span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    if span.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(span) }
}
