//! `redeliver campaign launch`: has everything scheduled, however long it takes, and shows how far it is.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use super::{Campaign, path, table, tell_errors};
use crate::args::CampaignArgs;
use crate::commands::print;
use crate::commands::times::Times;
use crate::exit::{FAILED, Told, print_aside};
use crate::reach::{self, Missing, Reach, Request};

pub(super) fn run(args: &CampaignArgs) -> anyhow::Result<()> {
    reach::run(launch(args))
}

async fn launch(args: &CampaignArgs) -> anyhow::Result<()> {
    let reach = Reach::open(&args.reach, Missing::Refuse).await?;
    let bar = bar();
    let last = loop {
        // Whoever has many prospects is answered before all of them are planned: said again, it goes on.
        let asked = reach.call(Request::post(path(&args.id, "/launch"))).await;
        let (is_whole, answer) = match asked.and_then(|answer| Ok((!answer.is_part(), answer.json()?))) {
            Ok(answer) => answer,
            Err(error) => {
                bar.abandon();
                return Err(error.context("run it again: what is scheduled is not scheduled twice"));
            }
        };
        let campaign: Campaign = Deserialize::deserialize(&answer)?;
        bar.set_length(campaign.prospects);
        bar.set_position(campaign.planned);
        bar.set_message(format!("{} mails scheduled", campaign.scheduled));
        if is_whole || campaign.state != "running" {
            break answer;
        }
    };
    bar.finish_and_clear();
    let errors = tell_errors(&last);
    if args.output.json {
        print(&format!("{last}\n"))?;
    } else {
        print(&table(&[Deserialize::deserialize(last)?], Times::of(args.output.utc)))?;
    }
    if reach.is_alone() {
        print_aside("no server has this store: the mails go out once `redeliver serve` runs on it");
    }
    if errors == 0 { Ok(()) } else { Err(Told(FAILED).into()) }
}

/// A bar for people; where nobody sees it, it draws nothing.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template("{wide_bar} {pos}/{len} prospects planned  {msg}  {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
