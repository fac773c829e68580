//! `redeliver campaign` as it is written.

use std::path::PathBuf;

use clap::{Args as ArgGroup, Subcommand};

use super::{OutputArgs, ReachArgs};

/// `redeliver campaign`
#[derive(Debug, Subcommand)]
pub enum CampaignCommand {
    /// Make a campaign from a file of JSON, as the API takes it; prints its id
    Create {
        /// The file; - for standard input
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
        /// Which workspace; without it, the key's own, or default
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show a campaign, or one prospect of it
    Show(ProspectArgs),
    /// Enrol the prospects of a file, CSV or a line of JSON each; run it again after it was cut short: an id is enrolled once
    Import {
        /// The campaign's id
        id: String,
        /// The file; CSV if its name ends in .csv, and lines of JSON otherwise
        file: PathBuf,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Say when a campaign would be done, without writing anything
    Forecast(CampaignArgs),
    /// Show a campaign's calendar: what was planned for each day, what went out, and what the day takes
    Days(CampaignArgs),
    /// Launch a campaign: its mails are scheduled. Run it again after it was cut short: nothing is scheduled twice
    Launch(CampaignArgs),
    /// Stop a campaign, or one prospect of it, until they are resumed
    Pause(ProspectArgs),
    /// Let a campaign, or one prospect of it, go on
    Resume(ProspectArgs),
    /// End a campaign: nothing more of it goes out, ever
    Cancel(CampaignArgs),
    /// Stop one prospect for good: nothing more goes out to them
    Stop {
        /// The campaign's id
        id: String,
        /// The prospect's id
        prospect: String,
        /// Why: replied, unsubscribed, bounced or another word
        #[arg(long, value_name = "WORD")]
        reason: String,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// List a campaign's mails and their times
    Schedule {
        /// The campaign's id
        id: String,
        /// At most so many
        #[arg(long, value_name = "COUNT", default_value_t = 50)]
        limit: u64,
        /// Who reads it.
        #[command(flatten)]
        output: OutputArgs,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show how many mails a workspace, its campaigns and its senders have sent on a day
    Quotas {
        /// Which local day, such as 2026-12-01; today without it
        #[arg(long, value_name = "DATE")]
        date: Option<String>,
        /// Which workspace; without it, the key's own, or default
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Where they are.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show a workspace's settings, or give it new ones
    Settings {
        /// A file of JSON with the new ones; - for standard input
        file: Option<PathBuf>,
        /// Which workspace
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
    /// The campaign's id
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
    /// The campaign's id
    pub id: String,
    /// The prospect's id; without it, the campaign itself is meant
    pub prospect: Option<String>,
    /// Who reads it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Where it is.
    #[command(flatten)]
    pub reach: ReachArgs,
}
