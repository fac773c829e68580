//! `redeliver suppressions` as it is written.

use std::path::PathBuf;

use clap::Subcommand;

use super::ReachArgs;

/// `redeliver suppressions`
#[derive(Debug, Subcommand)]
pub enum SuppressionsCommand {
    /// List suppressed addresses; with --json in the format of import
    List {
        /// Workspace; default: that of the key, or "default"
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Suppress addresses: nothing is sent to them
    Add {
        /// Addresses
        #[arg(required = true)]
        addresses: Vec<String>,
        /// Reason: unsubscribed, bounced or another word
        #[arg(long, value_name = "WORD", default_value = "unsubscribed")]
        reason: String,
        /// Workspace; default: that of the key, or "default"
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Remove an address from the list; its waiting messages are released
    Remove {
        /// Address
        address: String,
        /// Workspace; default: that of the key, or "default"
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Suppress the addresses of a file: one per line, or the output of list --json
    Import {
        /// File; - for standard input
        file: PathBuf,
        /// Workspace; default: that of the key, or "default"
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
}
