//! `redeliver bulk`: the same done to all messages that match, by a server that goes on with it.

use serde_json::{Map, Value, json};

use super::list::cut;
use super::{print, show};
use crate::args::{BulkArgs, BulkCommand, BulkOneArgs, StatsArgs};
use crate::reach::{self, Missing, Reach, Request, segment};

/// Characters of a name, at most.
const NAME_LEN_MAX: usize = 40;

/// Characters of a drawn bar.
const BAR_LEN: usize = 10;

pub(super) fn run(command: &BulkCommand) -> anyhow::Result<()> {
    match command {
        BulkCommand::Retry(args) => begin("retry", args),
        BulkCommand::Cancel(args) => begin("cancel", args),
        BulkCommand::Dismiss(args) => begin("dismiss", args),
        BulkCommand::List(args) => list(args),
        BulkCommand::Show(args) => one(args, Request::get(path(&args.id, ""))),
        BulkCommand::Pause(args) => one(args, Request::post(path(&args.id, "/pause"))),
        BulkCommand::Resume(args) => one(args, Request::post(path(&args.id, "/resume"))),
        BulkCommand::Stop(args) => one(args, Request::post(path(&args.id, "/stop"))),
    }
}

fn begin(action: &str, args: &BulkArgs) -> anyhow::Result<()> {
    let said = args.filter.params().into_iter().filter(|(name, _)| *name != "with_dismissed");
    let filter: Map<String, Value> = said.map(|(name, text)| (name.to_owned(), json!(text))).collect();
    let body = json!({
        "action": action, "filter": filter, "dry_run": args.dry_run, "rate_per_s": args.rate, "canary": args.canary,
    });
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let answer = reach.json(Request::post("/v1/bulk").json(&body)).await?;
        print(&match (args.json, args.dry_run) {
            (true, _) => format!("{answer}\n"),
            (false, true) => meaning(action, &answer),
            (false, false) => format!("{}  {}\n", text(&answer, "id"), text(&answer, "standing")),
        })
    })
}

/// What it would mean, in a sentence.
fn meaning(action: &str, answer: &Value) -> String {
    // What was not counted costs more, and takes longer.
    let (least, cost, about) = match answer["at_least"] == true {
        true => ("at least ", "for those which were counted, up to", "at least"),
        false => ("", "up to", "about"),
    };
    let cost = match answer["attempts_max"].as_u64() {
        Some(tries) if tries > 0 => format!(", {cost} {tries} tries"),
        _ => String::new(),
    };
    let oldest = match answer["oldest_at"].as_str() {
        Some(at) => format!(", the oldest of {at}"),
        None => String::new(),
    };
    format!(
        "{action} {least}{} messages{oldest}{cost}, in {about} {} s; nothing was done\n",
        answer["count"], answer["seconds"]
    )
}

fn list(args: &StatsArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let answer = reach.json(Request::get("/v1/bulk")).await?;
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        if args.json {
            return print(&items.iter().map(|item| format!("{item}\n")).collect::<String>());
        }
        print(&table(items))
    })
}

fn one(args: &BulkOneArgs, request: Request) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let answer = reach.json(request).await?;
        print(&if args.json { format!("{answer}\n") } else { table(&[answer]) })
    })
}

fn table(items: &[Value]) -> String {
    let row = |item: &Value| {
        vec![
            text(item, "id"),
            text(item, "action"),
            text(item, "standing"),
            item["done"].to_string(),
            of(item),
            bar(item),
            item["pace_per_s"].as_f64().map(|pace| pace.to_string()).unwrap_or_default(),
            item["skipped"].to_string(),
            cut(&text(item, "actor"), NAME_LEN_MAX),
            cut(&text(item, "why"), NAME_LEN_MAX),
        ]
    };
    let header = ["id", "action", "standing", "done", "of", "", "a second", "skipped", "who", "why"];
    show::table(&header, &[3, 4, 6, 7], items.iter().map(row).collect())
}

/// How many there were to do, once they have been counted.
fn of(item: &Value) -> String {
    let least = if item["total_at_least"] == true { "+" } else { "" };
    item["total"].as_u64().map(|total| format!("{total}{least}")).unwrap_or_default()
}

/// How much of it is done, drawn.
fn bar(item: &Value) -> String {
    let (Some(done), Some(total)) = (item["done"].as_u64(), item["total"].as_u64()) else {
        return String::new();
    };
    let share = if total == 0 { 1.0 } else { done as f64 / total as f64 };
    let full = ((share * BAR_LEN as f64) as usize).min(BAR_LEN);
    format!("[{}{}]", "#".repeat(full), "·".repeat(BAR_LEN - full))
}

fn text(item: &Value, name: &str) -> String {
    item[name].as_str().unwrap_or_default().to_owned()
}

fn path(id: &str, call: &str) -> String {
    format!("/v1/bulk/{}{call}", segment(id))
}
