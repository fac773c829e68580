//! `redeliver campaign` as it is written.

use std::path::PathBuf;

use clap::{Args as ArgGroup, Subcommand};

use super::{OutputArgs, ReachArgs};

/// `redeliver campaign`
#[derive(Debug, Subcommand)]
pub enum CampaignCommand {
    /// Create a campaign from a JSON file in the API's format; prints its id
    Create {
        /// File; - for standard input
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Where to.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// List the campaigns of a workspace
    List {
        /// Workspace; default: that of the key, or "default"
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show a campaign or one of its prospects
    Show(ProspectArgs),
    /// Enrol the prospects of a file (CSV or lines of JSON); safe to repeat: each id is enrolled once
    Import {
        /// Campaign id
        id: String,
        /// File; CSV if its name ends in .csv, otherwise lines of JSON
        file: PathBuf,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Forecast when a campaign would be done; changes nothing
    Forecast(CampaignArgs),
    /// Show a campaign's calendar: planned, sent and capacity of each day
    Days(CampaignArgs),
    /// Launch a campaign and schedule its e-mails; safe to repeat: nothing is scheduled twice
    Launch(CampaignArgs),
    /// Pause a campaign or one of its prospects
    Pause(ProspectArgs),
    /// Resume a campaign or one of its prospects
    Resume(ProspectArgs),
    /// Cancel a campaign: no more of its e-mails are sent
    Cancel(CampaignArgs),
    /// Stop a prospect: no more e-mails of the campaign are sent to them
    Stop {
        /// Campaign id
        id: String,
        /// Prospect id
        prospect: String,
        /// Reason: replied, unsubscribed, bounced or another word
        #[arg(long, value_name = "WORD")]
        reason: String,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// List a campaign's e-mails and their times
    Schedule {
        /// Campaign id
        id: String,
        /// Maximum number of entries
        #[arg(long, value_name = "COUNT", default_value_t = 50)]
        limit: u64,
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show how many e-mails a workspace, its campaigns and its senders sent on a day
    Quotas {
        /// Local day, such as 2026-12-01; default: today
        #[arg(long, value_name = "DATE")]
        date: Option<String>,
        /// Workspace; default: that of the key, or "default"
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show or replace a workspace's settings
    Settings {
        /// JSON file with the new settings; - for standard input
        file: Option<PathBuf>,
        /// Workspace
        #[arg(long, value_name = "NAME", default_value = "default")]
        workspace: String,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
}

/// One campaign.
#[derive(Debug, ArgGroup)]
pub struct CampaignArgs {
    /// Campaign id
    pub id: String,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// One campaign, or one of its prospects.
#[derive(Debug, ArgGroup)]
pub struct ProspectArgs {
    /// Campaign id
    pub id: String,
    /// Prospect id; without it, the command applies to the campaign
    pub prospect: Option<String>,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}
