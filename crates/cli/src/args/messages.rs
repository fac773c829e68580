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
    /// At most so many, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 50, conflicts_with = "all",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// All of them, however many there are
    #[arg(long)]
    pub all: bool,
    /// Leave out whom a mail is for and what it is about, which takes a look at each message
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
    /// The message's id, or as much of its beginning as tells it from the others
    pub id: String,
    /// Show all that it carries
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
    /// The message's id, or as much of its beginning as tells it from the others
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
    /// The messages' ids, or as much of their beginnings as tells them from the others; - reads them from standard
    /// input, a line each
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Print a line of JSON for each message
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
    /// The message's id, or as much of its beginning as tells it from the others
    pub id: String,
    /// To whom, in place of those it is for now; can be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub to: Vec<String>,
    /// Who else is to read it, in place of those who are now
    #[arg(long, value_name = "ADDRESS")]
    pub cc: Vec<String>,
    /// Who else gets it without the others' knowing, in place of those who do now
    #[arg(long, value_name = "ADDRESS")]
    pub bcc: Vec<String>,
    /// Who writes; empty for the route's own sender
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// Who is answered; empty for nobody else
    #[arg(long, value_name = "ADDRESS")]
    pub reply_to: Option<String>,
    /// What it is about
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,
    /// Its words; - for standard input
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Its words as HTML; - for standard input
    #[arg(long, value_name = "HTML")]
    pub html: Option<String>,
    /// The JSON that it carries instead; - for standard input
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
    /// The way it is to travel
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// The queue, topic, stream or URL, where the route leaves it open; empty for none
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// For gates, targets and filters; an empty value takes it away; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::send::read_attribute)]
    pub attribute: Vec<(String, String)>,
    /// What is to be otherwise as the API takes it, from this file; - for standard input
    #[arg(long, value_name = "FILE")]
    pub from_json: Option<PathBuf>,
    /// Only show what would be different
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
    /// The message's id, or as much of its beginning as tells it from the others
    pub id: String,
    /// What became of it
    #[arg(value_parser = PossibleValuesParser::new(["delivered", "failed", "refused"]))]
    pub outcome: String,
    /// Which try it is about; without it, whichever is handed off
    #[arg(long, value_name = "ATTEMPT")]
    pub attempt_id: Option<String>,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
    /// Its code
    #[arg(long, value_name = "CODE")]
    pub error_code: Option<String>,
    /// How long to wait with the next try, at least
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
    /// How many to begin with
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    pub lines: usize,
    /// How often to look
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
    /// Messages as the API takes them, a line of JSON each; - for standard input
    pub file: PathBuf,
    /// Print a line of JSON for each line of the file
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
    /// A new file to write to; without it, standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where they are.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// `redeliver routes`
#[derive(Debug, Subcommand)]
pub enum RoutesCommand {
    /// List the routes, and which of them are paused
    List {
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Stop everything of a route until it is resumed
    Pause(StopArgs),
    /// Let everything of a route go again
    Resume(StopArgs),
}

/// `pause` and `resume` of `redeliver routes`, `destinations` and `senders`
#[derive(Debug, ArgGroup)]
pub struct StopArgs {
    /// The name, as `list` says it; a sender's is its address
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
    /// What the server has done in each of the last minutes instead, and how late
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
    /// List the destinations that are paused, held, throttled or whose breaker is open
    List {
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Stop everything to a destination until it is resumed
    Pause(StopArgs),
    /// Let everything to a destination go again, also after a login that was refused
    Resume(StopArgs),
}

/// `redeliver senders`
#[derive(Debug, Subcommand)]
pub enum SendersCommand {
    /// List the senders that are paused, or held after a login that was refused
    List {
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Stop everything of a sender until it is resumed
    Pause(StopArgs),
    /// Let everything of a sender go again, also after a login that was refused
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
    /// Start all that match over, with a fresh budget of tries
    Retry(BulkArgs),
    /// Stop all that match before they go out
    Cancel(BulkArgs),
    /// Put all dead ones that match away
    Dismiss(BulkArgs),
    /// List the newest bulk operations
    List(StatsArgs),
    /// Show how far one has come
    Show(BulkOneArgs),
    /// Have one wait
    Pause(BulkOneArgs),
    /// Let one go on
    Resume(BulkOneArgs),
    /// End one; what is done stays done
    Stop(BulkOneArgs),
}

/// `redeliver bulk retry`, `cancel` and `dismiss`
#[derive(Debug, ArgGroup)]
pub struct BulkArgs {
    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Only say what it would mean
    #[arg(long)]
    pub dry_run: bool,
    /// Messages in a second, at most
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rate: u32,
    /// 1, 10 and 100 before all the others, and stop if they fail again
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
    /// The operation's id
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
    /// What this key did
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// What was done, such as retry
    #[arg(long, value_name = "WORD")]
    pub action: Option<String>,
    /// What was done to this: a message's id, route:NAME, bulk:ID
    #[arg(long, value_name = "WHAT")]
    pub subject: Option<String>,
    /// At most so many, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 50, conflicts_with = "all",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// All of them, however many there are
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
