//! `redeliver dead`: what was given up, by the error that did it.

use serde_json::Value;

use super::list::cut;
use super::{print, show};
use crate::args::StatsArgs;
use crate::exit::print_aside;
use crate::reach::{self, Missing, Reach, Request};

/// Characters of an error, at most.
const ERROR_LEN_MAX: usize = 70;

/// Characters of names, at most.
const NAMES_LEN_MAX: usize = 40;

pub(super) fn run(args: &StatsArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let answer = reach.json(Request::get("/v1/dead-letters/groups")).await?;
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        if args.json {
            return print(&items.iter().map(|item| format!("{item}\n")).collect::<String>());
        }
        if items.is_empty() {
            print_aside("nothing was given up");
            return Ok(());
        }
        let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let row = |item: &Value| {
            let names = |name: &str| {
                let all = item[name].as_array().into_iter().flatten().filter_map(Value::as_str);
                cut(&all.collect::<Vec<_>>().join(", "), NAMES_LEN_MAX)
            };
            vec![
                item["count"].to_string(),
                cut(&text(item, "error"), ERROR_LEN_MAX),
                names("routes"),
                names("destinations"),
                text(item, "last_at"),
                text(item, "fingerprint"),
            ]
        };
        let header = ["count", "error", "routes", "to where", "last", "fingerprint"];
        print(&show::table(&header, &[0], items.iter().map(row).collect()))
    })
}
