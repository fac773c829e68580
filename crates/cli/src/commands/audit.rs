//! `redeliver audit`: what people did, the newest first.

use redeliver_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::list::cut;
use super::times::Times;
use super::{print, show};
use crate::args::AuditArgs;
use crate::exit::print_aside;
use crate::reach::{self, Listing, Missing, Reach};

/// Characters of a name, at most.
const NAME_LEN_MAX: usize = 60;

#[derive(Deserialize)]
struct Deed {
    actor: String,
    action: String,
    subject: String,
    at: Timestamp,
    detail: Option<String>,
}

pub(super) fn run(args: &AuditArgs) -> anyhow::Result<()> {
    reach::run(list(args))
}

async fn list(args: &AuditArgs) -> anyhow::Result<()> {
    let reach = Reach::open(&args.reach, Missing::Refuse).await?;
    let asked = [("actor", &args.actor), ("action", &args.action), ("subject", &args.subject)];
    let asked: Vec<(&'static str, &str)> =
        asked.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))).collect();
    let mut pages = Listing::of("/v1/audit", &asked, if args.all { u64::MAX } else { args.limit });
    let mut is_first = true;
    while let Some(page) = pages.next(&reach).await? {
        if args.output.json {
            print(&page.iter().map(|deed| format!("{deed}\n")).collect::<String>())?;
        } else if page.is_empty() && is_first {
            print_aside(if asked.is_empty() { "nobody has done anything yet" } else { "no such deeds" });
        } else if !page.is_empty() {
            print(&table(page, Times::of(args.output.utc))?)?;
        }
        is_first = false;
    }
    if pages.has_more() && !args.output.json {
        print_aside("there are more: --all lists them, --limit so many");
    }
    Ok(())
}

fn table(page: Vec<Value>, times: Times) -> anyhow::Result<String> {
    let row = |deed: Value| -> anyhow::Result<Vec<String>> {
        let deed = Deed::deserialize(deed)?;
        Ok(vec![
            times.show(deed.at),
            cut(&deed.actor, NAME_LEN_MAX),
            deed.action,
            cut(&deed.subject, NAME_LEN_MAX),
            cut(deed.detail.as_deref().unwrap_or_default(), NAME_LEN_MAX),
        ])
    };
    let rows: Vec<Vec<String>> = page.into_iter().map(row).collect::<anyhow::Result<_>>()?;
    Ok(show::table(&["when", "who", "what", "to what", "which"], &[], rows))
}
