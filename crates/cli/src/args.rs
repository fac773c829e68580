//! The command line as it is written.

pub mod campaign;
pub mod keys;
pub mod messages;
pub mod reach;
pub mod send;
pub mod sink;
pub mod suppressions;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ArgGroup, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::config::{StoreUrl, profiles};

pub use campaign::{CampaignArgs, CampaignCommand, ProspectArgs};
pub use keys::KeysCommand;
pub use messages::{
    ActArgs, AuditArgs, BulkArgs, BulkCommand, BulkOneArgs, CountArgs, DestinationsCommand, EditArgs,
    ExplainArgs, ExportArgs, ImportArgs, InstancesArgs, ListArgs, ReportArgs, RoutesCommand, SendersCommand,
    ShowArgs, StatsArgs, StopArgs, TailArgs,
};
pub use reach::{FilterArgs, OutputArgs, ReachArgs};
pub use send::{AboutArgs, MailArgs, SendArgs};
pub use sink::SinkArgs;
pub use suppressions::SuppressionsCommand;

/// Stores, sends and retries outbound messages that must not be lost.
///
/// Exit codes: 0 success, 1 failure, 2 wrong command line or config.
#[derive(Debug, Parser)]
#[command(name = "redeliver", version, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server: send due messages until stopped
    Serve(ServeArgs),
    /// Submit a message from flags, an .eml file or JSON
    Send(Box<SendArgs>),
    /// List the newest messages
    List(ListArgs),
    /// Show a message and what happened to it
    Show(ShowArgs),
    /// Explain the state of a message, and when it is sent next
    Explain(ExplainArgs),
    /// Send messages again now, with a new budget of attempts
    Retry(ActArgs),
    /// Cancel messages that have not been sent
    Cancel(ActArgs),
    /// Mark dead messages as handled: they leave counts and lists
    Dismiss(ActArgs),
    /// Undo dismiss
    Restore(ActArgs),
    /// Correct a message and send it again; the history keeps the original
    Edit(EditArgs),
    /// Report the result of a handed-off message, as its worker would
    Report(ReportArgs),
    /// Follow the newest 500 messages as they change, until Ctrl-C
    Tail(TailArgs),
    /// Submit the messages of a file; safe to repeat: each key is accepted once
    Import(ImportArgs),
    /// Export messages with their content, in the format of import; by default only unfinished ones,
    /// without recipients who already have the mail
    Export(ExportArgs),
    /// List, pause and resume routes
    #[command(subcommand)]
    Routes(RoutesCommand),
    /// List blocked destinations, pause and resume destinations
    #[command(subcommand)]
    Destinations(DestinationsCommand),
    /// Create, launch and stop campaigns; enrol prospects
    #[command(subcommand)]
    Campaign(CampaignCommand),
    /// List, add, remove and import suppressed addresses
    #[command(subcommand)]
    Suppressions(SuppressionsCommand),
    /// List, pause and resume senders
    #[command(subcommand)]
    Senders(SendersCommand),
    /// Count messages by route, or show the activity of the last minutes
    Stats(CountArgs),
    /// List live instances and their activity
    Instances(InstancesArgs),
    /// Group dead messages by error, largest group first
    Dead(StatsArgs),
    /// Retry, cancel or dismiss all matching messages
    #[command(subcommand)]
    Bulk(BulkCommand),
    /// List the actions of operators, newest first
    Audit(AuditArgs),
    /// Watch ten messages fail, be retried and end, in half a minute
    Demo(DemoArgs),
    /// Check a config and summarise it
    Check(CheckArgs),
    /// Show when messages are retried
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Create the queues of a broker
    #[command(subcommand)]
    Queues(QueuesCommand),
    /// Create or check an application's table whose rows a route sends
    #[command(subcommand)]
    Table(TableCommand),
    /// Create or upgrade the tables of a store; `serve` does this itself
    Migrate(MigrateArgs),
    /// Examine a store and report problems; changes nothing
    Doctor(DoctorArgs),
    /// Measure the speed of this machine and a store
    Bench(BenchArgs),
    /// Run a mail server for tests, which fails when told to
    Sink(SinkArgs),
    /// Print the completion script of a shell
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print the manual page, or write one per command
    Man {
        /// Directory to write the pages to
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print the version
    Version,
}

/// Which config a command works with.
#[derive(Debug, Clone, Default, ArgGroup)]
pub struct ConfigArgs {
    /// Config file; default: redeliver.toml if it exists and no profile is given
    #[arg(long, value_name = "FILE", env = "REDELIVER_CONFIG")]
    pub config: Option<PathBuf>,
    /// Built-in config; keys of the config file override it
    #[arg(long, value_name = "NAME", env = "REDELIVER_PROFILE",
          value_parser = PossibleValuesParser::new(profiles::ALL.iter().map(|profile| profile.name)))]
    pub profile: Option<String>,
}

/// `redeliver serve`
#[derive(Debug, ArgGroup)]
pub struct ServeArgs {
    /// Which config.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Part of the work: send what is due (scheduler), or send handed-off e-mails (sender)
    #[arg(long, value_enum, default_value_t = Role::Scheduler)]
    pub role: Role,
    /// File that holds the current time, to try out long waits: time stands still until the file changes
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub clock: Option<PathBuf>,
}

/// Which half of the work `redeliver serve` does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Sends what is due on every route, and runs the intakes.
    Scheduler,
    /// Sends the e-mails of applications' tables that were handed off.
    Sender,
}

/// `redeliver demo`
#[derive(Debug, ArgGroup)]
pub struct DemoArgs {
    /// New SQLite file for the messages; default: a temporary one
    #[arg(long, value_name = "sqlite:FILE", value_parser = StoreUrl::parse)]
    pub store: Option<StoreUrl>,
}

/// `redeliver table`
#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Print or run the statements that create a table and its index
    Init {
        /// Table of the config; default: all
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Run the statements; existing tables and indexes stay as they are
        #[arg(long)]
        apply: bool,
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Check whether a table has the required columns and index
    Check {
        /// Table of the config; default: all
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
    },
}

/// `redeliver migrate`
#[derive(Debug, ArgGroup)]
pub struct MigrateArgs {
    /// Which config.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// `redeliver doctor`
#[derive(Debug, ArgGroup)]
pub struct DoctorArgs {
    /// Which config.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `redeliver bench`
#[derive(Debug, ArgGroup)]
pub struct BenchArgs {
    /// Store to measure: a new SQLite file or a database without a store (removed afterwards), or memory:
    #[arg(long, value_name = "URL", value_parser = StoreUrl::parse)]
    pub store: StoreUrl,
    /// Messages per job
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    pub messages: usize,
    /// Future messages of the backlog job; messages of the lists; prospects of the campaign
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub backlog: usize,
    /// Run only these jobs
    #[arg(long, value_name = "JOB", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(BENCH_JOBS))]
    pub only: Vec<String>,
    /// Minutes of the retention job
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub minutes: u64,
    /// Use the program wrk as the client of accept_http, which needs less of the machine
    #[arg(long)]
    pub wrk: bool,
    /// Print one line of JSON per job
    #[arg(long)]
    pub json: bool,
}

/// The jobs of the benchmark.
const BENCH_JOBS: [&str; 14] = [
    "accept_batch",
    "accept_single",
    "accept_http",
    "drain",
    "lateness",
    "lanes",
    "retry_cycle",
    "backlog",
    // On a database only.
    "instances",
    "lists",
    "stats",
    "pages",
    "campaign",
    "retention",
];

/// `redeliver check`
#[derive(Debug, ArgGroup)]
pub struct CheckArgs {
    /// Which config.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// `redeliver policy`
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies of a config
    List {
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the timetable of a policy
    Show {
        /// Name of the policy
        name: String,
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    /// The command that does what each call of the API does. Some do what several calls do.
    const TWINS: [(&str, &str); 57] = [
        ("GET /v1/messages", "list"),
        ("POST /v1/messages", "send"),
        ("GET /v1/messages/{id}", "show"),
        ("GET /v1/messages/{id}/attempts", "show"),
        ("GET /v1/messages/{id}/edits", "show"),
        ("GET /v1/messages/{id}/explain", "explain"),
        ("POST /v1/messages/{id}/retry", "retry"),
        ("POST /v1/messages/{id}/cancel", "cancel"),
        ("POST /v1/messages/{id}/dismiss", "dismiss"),
        ("POST /v1/messages/{id}/restore", "restore"),
        ("POST /v1/messages/{id}/edit", "edit"),
        ("POST /v1/messages/{id}/report", "report"),
        ("GET /v1/routes", "routes list"),
        ("POST /v1/routes/{name}/pause", "routes pause"),
        ("POST /v1/routes/{name}/resume", "routes resume"),
        ("GET /v1/destinations", "destinations list"),
        ("POST /v1/destinations/{destination}/pause", "destinations pause"),
        ("POST /v1/destinations/{destination}/resume", "destinations resume"),
        ("GET /v1/campaigns", "campaign list"),
        ("POST /v1/campaigns", "campaign create"),
        ("GET /v1/campaigns/{campaign}", "campaign show"),
        ("POST /v1/campaigns/{campaign}/prospects", "campaign import"),
        ("GET /v1/campaigns/{campaign}/prospects/{prospect}", "campaign show"),
        ("POST /v1/campaigns/{campaign}/prospects/{prospect}/pause", "campaign pause"),
        ("POST /v1/campaigns/{campaign}/prospects/{prospect}/resume", "campaign resume"),
        ("POST /v1/campaigns/{campaign}/prospects/{prospect}/stop", "campaign stop"),
        ("GET /v1/campaigns/{campaign}/forecast", "campaign forecast"),
        ("GET /v1/campaigns/{campaign}/days", "campaign days"),
        ("POST /v1/campaigns/{campaign}/launch", "campaign launch"),
        ("POST /v1/campaigns/{campaign}/pause", "campaign pause"),
        ("POST /v1/campaigns/{campaign}/resume", "campaign resume"),
        ("POST /v1/campaigns/{campaign}/cancel", "campaign cancel"),
        ("GET /v1/campaigns/{campaign}/schedule", "campaign schedule"),
        ("GET /v1/workspaces/{workspace}/settings", "campaign settings"),
        ("PUT /v1/workspaces/{workspace}/settings", "campaign settings"),
        ("GET /v1/quotas", "campaign quotas"),
        ("GET /v1/suppressions", "suppressions list"),
        ("POST /v1/suppressions", "suppressions add"),
        ("DELETE /v1/suppressions/{address}", "suppressions remove"),
        ("GET /v1/senders", "senders list"),
        ("POST /v1/senders/{sender}/pause", "senders pause"),
        ("POST /v1/senders/{sender}/resume", "senders resume"),
        ("GET /v1/stats", "stats"),
        ("GET /v1/stats/minutes", "stats"),
        ("GET /v1/instances", "instances"),
        ("GET /v1/dead-letters/groups", "dead"),
        ("GET /v1/bulk", "bulk list"),
        ("POST /v1/bulk", "bulk retry"),
        ("GET /v1/bulk/{bulk}", "bulk show"),
        ("POST /v1/bulk/{bulk}/pause", "bulk pause"),
        ("POST /v1/bulk/{bulk}/resume", "bulk resume"),
        ("POST /v1/bulk/{bulk}/stop", "bulk stop"),
        ("GET /v1/audit", "audit"),
        ("GET /v1/keys", "keys list"),
        ("POST /v1/keys", "keys create"),
        ("DELETE /v1/keys/{id}", "keys revoke"),
        ("GET /readyz", "doctor"),
    ];

    #[test]
    fn every_call_of_the_api_has_its_command() {
        let whole = Args::command();
        for (call, command) in TWINS {
            let mut words = command.split(' ');
            let found = words.try_fold(&whole, |within, word| within.find_subcommand(word));
            assert!(found.is_some(), "{call}: there is no command {command}");
        }
        for (method, path, _) in
            redeliver_server::auth::rights::RIGHTS.iter().filter(|(_, path, _)| path.starts_with("/v1/"))
        {
            let call = format!("{method} {path}");
            assert!(TWINS.iter().any(|(known, _)| *known == call), "{call} has no command");
        }
    }
}

/// `redeliver queues`
#[derive(Debug, Subcommand)]
pub enum QueuesCommand {
    /// Create our missing queues as quorum queues that keep their dead letters; other queues stay as they are
    Init {
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
    },
}
