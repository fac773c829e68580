//! The command line of `redeliver sink`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ArgGroup, Subcommand};
use redeliver_sink::Script;

/// `redeliver sink`
#[derive(Debug, ArgGroup)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SinkArgs {
    /// What to do with one that runs; without it, one is run.
    #[command(subcommand)]
    pub command: Option<SinkCommand>,
    /// How one is run.
    #[command(flatten)]
    pub run: SinkRunArgs,
}

/// How a sink is run.
#[derive(Debug, ArgGroup)]
pub struct SinkRunArgs {
    /// Address to listen on, loopback only; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = SINK_AT)]
    pub listen: SocketAddr,
    /// Rule for recipients, such as 'defer 451 later x3 for bob@*'; repeatable
    #[arg(long, value_name = "RULES")]
    pub script: Vec<Script>,
    /// Treat recipients such as defer@… and lose@… like all others
    #[arg(long)]
    pub no_magic: bool,
    /// Directory to keep the e-mails in, also between runs
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Use TLS, from the first byte or by STARTTLS
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(["starttls", "implicit"]))]
    pub tls: Option<String>,
    /// File to write the certificate to, for clients to trust
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
    /// Require this login
    #[arg(long, value_name = "USER:PASSWORD", env = "REDELIVER_SINK_LOGIN", hide_env_values = true)]
    pub login: Option<String>,
    /// Print one line of JSON per event
    #[arg(long)]
    pub json: bool,
}

/// What to do with a sink that runs.
#[derive(Debug, Subcommand)]
pub enum SinkCommand {
    /// List the e-mails of a running sink
    List {
        /// Number of newest e-mails to list
        count: Option<usize>,
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print an e-mail, byte for byte
    Show {
        /// Number of the e-mail
        number: u64,
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
        /// Print JSON: the envelope, and the e-mail as text
        #[arg(long)]
        json: bool,
    },
    /// Replace the rules; without any, everything is accepted
    Tell {
        /// Rules, such as 'defer 451 later x3 for bob@*'
        #[arg(value_name = "RULES")]
        script: Vec<Script>,
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
    },
    /// Delete all e-mails
    Clear {
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
    },
}

/// Which sink a command talks to.
#[derive(Debug, ArgGroup)]
pub struct SinkAtArgs {
    /// Address of the sink
    #[arg(long, value_name = "ADDRESS", default_value = SINK_AT)]
    pub at: SocketAddr,
}

/// Where a sink is unless told otherwise.
const SINK_AT: &str = "127.0.0.1:2525";
