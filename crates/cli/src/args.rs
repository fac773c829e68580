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

/// Takes over every outbound message that must not be lost.
///
/// Exit codes: 0 done, 1 could not be done, 2 wrong command line or config.
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
    /// Carry messages out until told to stop
    Serve(ServeArgs),
    /// Have a message accepted: a mail by flags, a kept mail, or JSON
    Send(Box<SendArgs>),
    /// List the newest messages
    List(ListArgs),
    /// Show a message and what happened to it
    Show(ShowArgs),
    /// Explain why a message is where it is, and when it can go out
    Explain(ExplainArgs),
    /// Start messages over, with a fresh budget of tries, due now
    Retry(ActArgs),
    /// Stop messages before they go out
    Cancel(ActArgs),
    /// Put dead messages away, out of counts and lists
    Dismiss(ActArgs),
    /// Bring dismissed messages back
    Restore(ActArgs),
    /// Correct what made a message hopeless, and send it again; what it said before is kept
    Edit(EditArgs),
    /// Say what became of a message that was handed off, as its worker would
    Report(ReportArgs),
    /// Follow the newest 500 messages as they come and change, until Ctrl-C
    Tail(TailArgs),
    /// Have the messages of a file accepted; run it again after it was cut short: a key is accepted once
    Import(ImportArgs),
    /// Write out messages and all that they carry, as import takes them; without --status, those that are delivered,
    /// cancelled or dead are left out, and so are recipients who have their mail
    Export(ExportArgs),
    /// List, pause and resume routes
    #[command(subcommand)]
    Routes(RoutesCommand),
    /// List destinations where nothing gets through, stop them, and let them go again
    #[command(subcommand)]
    Destinations(DestinationsCommand),
    /// Make campaigns, enrol prospects, launch and stop them
    #[command(subcommand)]
    Campaign(CampaignCommand),
    /// Whom a workspace writes to no more: list, add, remove, import
    #[command(subcommand)]
    Suppressions(SuppressionsCommand),
    /// List whoever is stopped of those that mails come from, stop them, and let them go again
    #[command(subcommand)]
    Senders(SendersCommand),
    /// Count the messages of each route, or show what was done in the last minutes
    Stats(CountArgs),
    /// List the instances that live, and what each is doing
    Instances(InstancesArgs),
    /// Group dead messages by their error, the largest group first
    Dead(StatsArgs),
    /// Do the same to all messages that match, and watch how far it has come
    #[command(subcommand)]
    Bulk(BulkCommand),
    /// List what people did, the newest first
    Audit(AuditArgs),
    /// Watch ten messages fail, be retried and end, in half a minute
    Demo(DemoArgs),
    /// Check a config and sum it up
    Check(CheckArgs),
    /// Show when messages are retried
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Make, list and revoke the keys of the API
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Make the queues of a broker
    #[command(subcommand)]
    Queues(QueuesCommand),
    /// Make or check an application's own table, whose rows a route carries
    #[command(subcommand)]
    Table(TableCommand),
    /// Make the tables of a store, or bring them up to date; `serve` does so by itself
    Migrate(MigrateArgs),
    /// Look whether a store and what is in it are well
    Doctor(DoctorArgs),
    /// Measure how fast this machine and a store are
    Bench(BenchArgs),
    /// Receive mails on this machine, send none, and fail as told
    Sink(SinkArgs),
    /// Print what a shell needs to complete this command line
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// The directory to write them to
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print the version
    Version,
}

/// Which config a command works with.
#[derive(Debug, Clone, Default, ArgGroup)]
pub struct ConfigArgs {
    /// The config file; without one and without a profile, redeliver.toml if it is there
    #[arg(long, value_name = "FILE", env = "REDELIVER_CONFIG")]
    pub config: Option<PathBuf>,
    /// A config that comes with the binary; keys of the config file win over it
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
    /// What to do: carry what is due (scheduler), or send the mails that were handed off (sender)
    #[arg(long, value_enum, default_value_t = Role::Scheduler)]
    pub role: Role,
    /// A file that says what time it is, for trying out what takes hours: the time stands still until it says a later one
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub clock: Option<PathBuf>,
}

/// Which half of the work `redeliver serve` does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Carries what is due on every route, and takes what comes in.
    Scheduler,
    /// Sends the mails of applications' tables that were handed off to it.
    Sender,
}

/// `redeliver demo`
#[derive(Debug, ArgGroup)]
pub struct DemoArgs {
    /// A new SQLite file to keep the messages in; without it, a temporary one
    #[arg(long, value_name = "sqlite:FILE", value_parser = StoreUrl::parse)]
    pub store: Option<StoreUrl>,
}

/// `redeliver table`
#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Print the statements that make a table and its index, or run them
    Init {
        /// Which of the config's tables; all of them without one
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Run the statements; what is there already is left alone
        #[arg(long)]
        apply: bool,
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Look whether a table has the columns and the index that it needs
    Check {
        /// Which of the config's tables; all of them without one
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
    /// The store to measure: a new SQLite file or a database without a store, which is gone afterwards, or memory:
    #[arg(long, value_name = "URL", value_parser = StoreUrl::parse)]
    pub store: StoreUrl,
    /// Messages in a job
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    pub messages: usize,
    /// Messages that are due much later, behind the backlog job; messages in the lists; prospects of the campaign
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub backlog: usize,
    /// Only these jobs
    #[arg(long, value_name = "JOB", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(BENCH_JOBS))]
    pub only: Vec<String>,
    /// Minutes that the retention job runs
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub minutes: u64,
    /// Have accept_http's messages sent by the program wrk, a client that takes little of the machine
    #[arg(long)]
    pub wrk: bool,
    /// Print a line of JSON for each job
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
        /// The policy's name
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
    /// Make the queues that are ours and missing: quorum queues, whose own dead letters are kept. Others are left alone
    Init {
        /// Which config.
        #[command(flatten)]
        config: ConfigArgs,
    },
}
