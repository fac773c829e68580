//! `redeliver audit`: what people did, the newest first.

use redeliver_core::Timestamp;
use serde::Deserialize;

use super::list::cut;
use super::times::Times;
use super::{print, show};
use crate::args::AuditArgs;
use crate::exit::print_aside;
use crate::reach::{self, Missing, Reach, Request};

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
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let limit = args.limit.to_string();
        let mut listed = reach.json(Request::get("/v1/audit").with(&[("limit", &limit)])).await?;
        if args.output.json {
            let items = listed["items"].as_array();
            return print(&items.into_iter().flatten().map(|item| format!("{item}\n")).collect::<String>());
        }
        let deeds: Vec<Deed> = Deserialize::deserialize(listed["items"].take())?;
        if deeds.is_empty() {
            print_aside("nobody has done anything yet");
            return Ok(());
        }
        let times = Times::of(args.output.utc);
        let row = |deed: &Deed| {
            vec![
                times.show(deed.at),
                cut(&deed.actor, NAME_LEN_MAX),
                deed.action.clone(),
                cut(&deed.subject, NAME_LEN_MAX),
                cut(deed.detail.as_deref().unwrap_or_default(), NAME_LEN_MAX),
            ]
        };
        print(&show::table(
            &["when", "who", "what", "to what", "which"],
            &[],
            deeds.iter().map(row).collect(),
        ))
    })
}
