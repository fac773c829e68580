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
    /// Where to listen, on loopback only; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = SINK_AT)]
    pub listen: SocketAddr,
    /// What to do to whom, such as 'defer 451 later x3 for bob@*'; can be given several times
    #[arg(long, value_name = "RULES")]
    pub script: Vec<Script>,
    /// Do nothing special to recipients such as defer@… and lose@…
    #[arg(long)]
    pub no_magic: bool,
    /// A directory to keep the mails in, and to find those of last time
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Encrypt, when the client asks for it or from the first byte
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(["starttls", "implicit"]))]
    pub tls: Option<String>,
    /// A file to write the certificate to that clients have to trust
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
    /// Take mails only after this login
    #[arg(long, value_name = "USER:PASSWORD", env = "REDELIVER_SINK_LOGIN", hide_env_values = true)]
    pub login: Option<String>,
    /// Print a line of JSON for whatever happens
    #[arg(long)]
    pub json: bool,
}

/// What to do with a sink that runs.
#[derive(Debug, Subcommand)]
pub enum SinkCommand {
    /// List the mails that it has kept
    List {
        /// Only the last so many
        count: Option<usize>,
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a mail, byte for byte
    Show {
        /// The mail's number
        number: u64,
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
        /// Print JSON: the envelope, and the mail as text
        #[arg(long)]
        json: bool,
    },
    /// Give it other rules; without any, it accepts everything again
    Tell {
        /// Such as 'defer 451 later x3 for bob@*'
        #[arg(value_name = "RULES")]
        script: Vec<Script>,
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
    },
    /// Have it forget its mails
    Clear {
        /// Which sink.
        #[command(flatten)]
        at: SinkAtArgs,
    },
}

/// Which sink a command talks to.
#[derive(Debug, ArgGroup)]
pub struct SinkAtArgs {
    /// Where it listens
    #[arg(long, value_name = "ADDRESS", default_value = SINK_AT)]
    pub at: SocketAddr,
}

/// Where a sink is unless told otherwise.
const SINK_AT: &str = "127.0.0.1:2525";
