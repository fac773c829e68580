//! `redeliver send` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use redeliver_core::email::ICS_METHODS;
use redeliver_core::{Lane, Timestamp};

use super::messages::read_span;
use super::reach::ReachArgs;

/// `redeliver send`
#[derive(Debug, Default, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["to", "payload", "from_json", "eml"]))]
pub struct SendArgs {
    /// The mail.
    #[command(flatten)]
    pub mail: MailArgs,
    /// Send this JSON instead of a mail; - for standard input
    #[arg(long, value_name = "JSON", conflicts_with = "mail")]
    pub payload: Option<String>,
    /// Send a message as the API takes it, from this file; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mail", "about"])]
    pub from_json: Option<PathBuf>,
    /// Send a mail as it is kept in .eml files, from this file; - for standard input
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "mail")]
    pub eml: Option<PathBuf>,
    /// How it travels.
    #[command(flatten)]
    pub about: AboutArgs,
    /// Have it tried at once, and wait so long for what comes of it
    #[arg(long, value_name = "SPAN", value_parser = read_span)]
    pub wait: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where to.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// A mail by flags.
#[derive(Debug, Default, Args)]
#[group(id = "mail", multiple = true)]
pub struct MailArgs {
    /// To whom, such as ada@example.org or 'Ada <ada@example.org>'; can be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub to: Vec<String>,
    /// Who else is to read it
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub cc: Vec<String>,
    /// Who else gets it without the others' knowing
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub bcc: Vec<String>,
    /// Who writes; without it, the route's own sender
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub from: Option<String>,
    /// Who is answered
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub reply_to: Option<String>,
    /// What it is about
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub subject: Option<String>,
    /// Its words; - for standard input
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub text: Option<String>,
    /// Its words as HTML; - for standard input
    #[arg(long, value_name = "HTML", requires = "to")]
    pub html: Option<String>,
    /// A file that comes with it; can be given several times
    #[arg(long, value_name = "FILE", requires = "to")]
    pub attach: Vec<PathBuf>,
    /// An invitation, or a change of one
    #[arg(long, value_name = "FILE", requires = "to")]
    pub ics: Option<PathBuf>,
    /// What the invitation wants of the reader; without it, REQUEST
    #[arg(long, value_name = "METHOD", requires = "ics", ignore_case = true,
          value_parser = PossibleValuesParser::new(ICS_METHODS))]
    pub method: Option<String>,
}

/// How a message travels.
#[derive(Debug, Default, Args)]
#[group(id = "about", multiple = true)]
pub struct AboutArgs {
    /// The route; without it, email
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// What you call it: the same key again is the same message
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Its priority; without it, medium
    #[arg(long, value_name = "PRIORITY", value_parser = PossibleValuesParser::new(Lane::ALL.map(Lane::name)))]
    pub priority: Option<String>,
    /// Not before this time, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME")]
    pub due_at: Option<Timestamp>,
    /// Not before this much time has passed, such as 5m
    #[arg(long = "in", value_name = "SPAN", value_parser = read_span, conflicts_with = "due_at")]
    pub due_in: Option<Duration>,
    /// Not after this time
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<Timestamp>,
    /// Whose it is
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// The queue, topic, stream or URL, where the route leaves it open
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// For gates, targets and filters; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = read_attribute)]
    pub attribute: Vec<(String, String)>,
}

pub(super) fn read_attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("is written NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
