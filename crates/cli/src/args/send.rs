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
    /// JSON content, instead of an e-mail; - for standard input
    #[arg(long, value_name = "JSON", conflicts_with = "mail")]
    pub payload: Option<String>,
    /// File with a message in the API's format; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mail", "about"])]
    pub from_json: Option<PathBuf>,
    /// E-mail from an .eml file; - for standard input
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "mail")]
    pub eml: Option<PathBuf>,
    /// How it travels.
    #[command(flatten)]
    pub about: AboutArgs,
    /// Send it at once, and wait this long for the result
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
    /// Recipient, such as ada@example.org or 'Ada <ada@example.org>'; repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub to: Vec<String>,
    /// Cc recipient; repeatable
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub cc: Vec<String>,
    /// Bcc recipient; repeatable
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub bcc: Vec<String>,
    /// Sender (From); default: the route's sender
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub from: Option<String>,
    /// Reply-To address
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    pub reply_to: Option<String>,
    /// Subject
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub subject: Option<String>,
    /// Text body; - for standard input
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub text: Option<String>,
    /// HTML body; - for standard input
    #[arg(long, value_name = "HTML", requires = "to")]
    pub html: Option<String>,
    /// Attachment; repeatable
    #[arg(long, value_name = "FILE", requires = "to")]
    pub attach: Vec<PathBuf>,
    /// Calendar invitation (.ics file)
    #[arg(long, value_name = "FILE", requires = "to")]
    pub ics: Option<PathBuf>,
    /// Method of the invitation; default: REQUEST
    #[arg(long, value_name = "METHOD", requires = "ics", ignore_case = true,
          value_parser = PossibleValuesParser::new(ICS_METHODS))]
    pub method: Option<String>,
}

/// How a message travels.
#[derive(Debug, Default, Args)]
#[group(id = "about", multiple = true)]
pub struct AboutArgs {
    /// Route; default: email
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// Your key for the message: the same key again is the same message
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Priority; default: medium
    #[arg(long, value_name = "PRIORITY", value_parser = PossibleValuesParser::new(Lane::ALL.map(Lane::name)))]
    pub priority: Option<String>,
    /// Earliest time to send, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME")]
    pub due_at: Option<Timestamp>,
    /// Delay before sending, such as 5m
    #[arg(long = "in", value_name = "SPAN", value_parser = read_span, conflicts_with = "due_at")]
    pub due_in: Option<Duration>,
    /// Latest time to send
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<Timestamp>,
    /// Workspace
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// Queue, topic or stream, if the route leaves it open
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Attribute NAME=VALUE for gates, targets and filters; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = read_attribute)]
    pub attribute: Vec<(String, String)>,
}

pub(super) fn read_attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("is written NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
