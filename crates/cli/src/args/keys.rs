//! `redeliver keys` as it is written.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;

use super::ReachArgs;

/// `redeliver keys`
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it; it is shown only once
    Create {
        /// Name of the key
        #[arg(long)]
        name: String,
        /// Role; each includes the rights of those before it
        #[arg(long, value_parser = PossibleValuesParser::new(["viewer", "sender", "operator", "admin"]))]
        role: String,
        /// Workspace that the key is limited to; default: all
        #[arg(long)]
        workspace: Option<String>,
        /// Where the keys are.
        #[command(flatten)]
        reach: ReachArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List keys, without their secrets
    List {
        /// Where the keys are.
        #[command(flatten)]
        reach: ReachArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key; requests using it fail immediately
    Revoke {
        /// Id of the key, from `redeliver keys list`
        id: String,
        /// Where the keys are.
        #[command(flatten)]
        reach: ReachArgs,
    },
}
