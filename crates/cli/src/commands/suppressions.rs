//! `redeliver suppressions`: whom a workspace writes to no more.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{print, show};
use crate::args::{ReachArgs, SuppressionsCommand};
use crate::config::problem::counted;
use crate::exit::{Usage, print_aside};
use crate::reach::{self, Missing, Reach, Request, segment};

/// Addresses that are sent together, at most.
const BATCH_MAX: usize = 5_000;

#[derive(Deserialize)]
struct Suppression {
    address: String,
    #[serde(default = "unsubscribed")]
    reason: String,
}

fn unsubscribed() -> String {
    "unsubscribed".to_owned()
}

pub(super) fn run(command: &SuppressionsCommand) -> anyhow::Result<()> {
    match command {
        SuppressionsCommand::List { workspace, json, reach } => list(workspace.as_deref(), *json, reach),
        SuppressionsCommand::Add { addresses, reason, workspace, reach } => {
            let all = BTreeMap::from([(reason.clone(), addresses.clone())]);
            add(&all, workspace.as_deref(), reach)
        }
        SuppressionsCommand::Remove { address, workspace, reach } => {
            remove(address, workspace.as_deref(), reach)
        }
        SuppressionsCommand::Import { file, workspace, reach } => {
            add(&read(file)?, workspace.as_deref(), reach)
        }
    }
}

fn list(workspace: Option<&str>, json: bool, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let (mut after, mut rows) = (None::<String>, Vec::new());
        loop {
            let mut params = vec![("limit", "500")];
            params.extend(workspace.map(|name| ("workspace", name)));
            params.extend(after.as_deref().map(|after| ("after", after)));
            let page = reach.json(Request::get("/v1/suppressions").with(&params)).await?;
            let items = page["items"].as_array().into_iter().flatten();
            if json {
                print(&items.map(|item| format!("{item}\n")).collect::<String>())?;
            } else {
                let text = |item: &Value, name: &str| item[name].as_str().unwrap_or("?").to_owned();
                rows.extend(
                    items.map(|item| ["address", "reason", "since"].map(|name| text(item, name)).to_vec()),
                );
            }
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        if json { Ok(()) } else { print(&show::table(&["address", "reason", "since"], &[], rows)) }
    })
}

fn add(
    all: &BTreeMap<String, Vec<String>>,
    workspace: Option<&str>,
    reach: &ReachArgs,
) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Make).await?;
        let (mut added, mut known) = (0, 0);
        for (reason, addresses) in all {
            for some in addresses.chunks(BATCH_MAX) {
                let body = json!({ "addresses": some, "reason": reason, "workspace": workspace });
                let answer = reach.json(Request::post("/v1/suppressions").json(&body)).await?;
                added += answer["added"].as_u64().unwrap_or(0);
                known += answer["known"].as_u64().unwrap_or(0);
            }
        }
        print_aside(format_args!("{} added, {known} known already", counted(added as usize, "address")));
        Ok(())
    })
}

fn remove(address: &str, workspace: Option<&str>, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let params: Vec<(&str, &str)> = workspace.map(|name| ("workspace", name)).into_iter().collect();
        let path = format!("/v1/suppressions/{}", segment(address));
        reach.call(Request::delete(path).with(&params)).await?.done()?;
        print_aside(format_args!("{address} is off the list: what waited for that is released"));
        Ok(())
    })
}

/// Addresses by their reasons. Whatever is wrong with a line, nothing of the file is sent.
fn read(path: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let text = match path == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() {
            continue;
        }
        let one = match line.starts_with('{') {
            true => serde_json::from_str(line)
                .map_err(|error| Usage(format!("line {number} is not understood: {error}")))?,
            false => Suppression { address: line.to_owned(), reason: unsubscribed() },
        };
        all.entry(one.reason).or_default().push(one.address);
    }
    Ok(all)
}
