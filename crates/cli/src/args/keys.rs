//! `redeliver keys` as it is written.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;

use super::ReachArgs;

/// `redeliver keys`
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key and print it: it is shown this once
    Create {
        /// What people call it
        #[arg(long)]
        name: String,
        /// What it may do, each also what those before it may
        #[arg(long, value_parser = PossibleValuesParser::new(["viewer", "sender", "operator", "admin"]))]
        role: String,
        /// The only workspace that it reaches; without it, all of them
        #[arg(long)]
        workspace: Option<String>,
        /// Where the keys are.
        #[command(flatten)]
        reach: ReachArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the keys, without their secrets
    List {
        /// Where the keys are.
        #[command(flatten)]
        reach: ReachArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key worthless from now on
    Revoke {
        /// The key's id, as `redeliver keys list` shows it
        id: String,
        /// Where the keys are.
        #[command(flatten)]
        reach: ReachArgs,
    },
}
