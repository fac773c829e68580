//! `redeliver campaign`: steps for prospects, from their draft to their end.

mod import;
mod launch;

use std::path::Path;

use redeliver_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::times::Times;
use super::{print, show};
use crate::args::{CampaignArgs, CampaignCommand, OutputArgs, ProspectArgs, ReachArgs};
use crate::exit::{Usage, print_aside};
use crate::reach::{self, Missing, Reach, Request, segment};

/// A campaign as the API tells it.
#[derive(Deserialize)]
pub(super) struct Campaign {
    id: String,
    name: String,
    state: String,
    prospects: u64,
    planned: u64,
    scheduled: u64,
    last_at: Option<Timestamp>,
}

/// A prospect as the API tells it.
#[derive(Deserialize)]
struct Prospect {
    id: String,
    state: String,
    paused_at: Option<Timestamp>,
    stopped_for: Option<String>,
}

#[derive(Deserialize)]
struct Mail {
    key: String,
    step: u32,
    prospect_id: String,
    scheduled_for: Option<Timestamp>,
    due_at: Option<Timestamp>,
    status: String,
}

/// Mails of one page, as many as the API gives at once.
const PAGE_LEN_MAX: u64 = 500;

pub(super) fn run(command: &CampaignCommand) -> anyhow::Result<()> {
    match command {
        CampaignCommand::Create { file, json, reach } => create(file, *json, reach),
        CampaignCommand::List { workspace, output, reach } => list(workspace.as_deref(), *output, reach),
        CampaignCommand::Show(args) => look(args, Request::get(path_of(args, ""))),
        CampaignCommand::Import { id, file, reach } => import::run(id, file, reach),
        CampaignCommand::Forecast(args) => forecast(args),
        CampaignCommand::Days(args) => days(args),
        CampaignCommand::Launch(args) => launch::run(args),
        CampaignCommand::Pause(args) => look(args, Request::post(path_of(args, "/pause"))),
        CampaignCommand::Resume(args) => look(args, Request::post(path_of(args, "/resume"))),
        CampaignCommand::Cancel(args) => {
            look_at(Request::post(path(&args.id, "/cancel")), show_campaign, args.output, &args.reach)
        }
        CampaignCommand::Stop { id, prospect, reason, reach } => stop(id, prospect, reason, reach),
        CampaignCommand::Schedule { id, limit, output, reach } => schedule(id, *limit, *output, reach),
        CampaignCommand::Quotas { date, workspace, json, reach } => {
            quotas(date.as_deref(), workspace.as_deref(), *json, reach)
        }
        CampaignCommand::Settings { file, workspace, reach } => settings(file.as_deref(), workspace, reach),
    }
}

/// The path of something about a campaign.
fn path(id: &str, what: &str) -> String {
    format!("/v1/campaigns/{}{what}", segment(id))
}

/// The path of something about a campaign, or about one of its prospects.
fn path_of(args: &ProspectArgs, what: &str) -> String {
    match &args.prospect {
        Some(prospect) => path(&args.id, &format!("/prospects/{}{what}", segment(prospect))),
        None => path(&args.id, what),
    }
}

fn create(file: &Path, json: bool, reach: &ReachArgs) -> anyhow::Result<()> {
    let written = read_json(file)?;
    reach::run(async {
        let reach = Reach::open(reach, Missing::Make).await?;
        let made = reach.json(Request::post("/v1/campaigns").json(&written)).await?;
        print(&if json { format!("{made}\n") } else { format!("{}\n", made["id"].as_str().unwrap_or("?")) })
    })
}

fn list(workspace: Option<&str>, output: OutputArgs, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let params: Vec<(&str, &str)> = workspace.map(|name| ("workspace", name)).into_iter().collect();
        let mut listed = reach.json(Request::get("/v1/campaigns").with(&params)).await?;
        if output.json {
            return print_lines(&listed["items"]);
        }
        let campaigns: Vec<Campaign> = Deserialize::deserialize(listed["items"].take())?;
        print(&table(&campaigns, Times::of(output.utc)))
    })
}

/// Asks for one campaign or one of its prospects, or does something to them, and shows them.
fn look(args: &ProspectArgs, request: Request) -> anyhow::Result<()> {
    let show = if args.prospect.is_some() { show_prospect } else { show_campaign };
    look_at(request, show, args.output, &args.reach)
}

fn look_at(
    request: Request,
    show: fn(Value, Times) -> anyhow::Result<()>,
    output: OutputArgs,
    reach: &ReachArgs,
) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let answer = reach.json(request).await?;
        if output.json {
            return print(&format!("{answer}\n"));
        }
        show(answer, Times::of(output.utc))
    })
}

fn show_campaign(answer: Value, times: Times) -> anyhow::Result<()> {
    tell_errors(&answer);
    print(&table(&[Deserialize::deserialize(answer)?], times))
}

fn show_prospect(answer: Value, times: Times) -> anyhow::Result<()> {
    let prospect: Prospect = Deserialize::deserialize(answer)?;
    let since = prospect.paused_at.map(|at| format!(" since {}", times.show(at)));
    let reason = prospect.stopped_for.map(|reason| format!(": {reason}"));
    let more = since.or(reason).unwrap_or_default();
    print(&format!("{}  {}{more}\n", prospect.id, prospect.state))
}

/// Says who could not be planned and why, as far as the API tells it; and how many those are in all.
fn tell_errors(campaign: &Value) -> u64 {
    let told: Vec<&str> =
        campaign["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let count = campaign["error_count"].as_u64().unwrap_or(0);
    told.iter().for_each(print_aside);
    let more = count.saturating_sub(told.len() as u64);
    if more > 0 {
        print_aside(format_args!("and {more} more"));
    }
    count
}

fn forecast(args: &CampaignArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let answer = reach.json(Request::get(path(&args.id, "/forecast"))).await?;
        if args.output.json {
            return print(&format!("{answer}\n"));
        }
        let mut text = format!("{}\n", answer["sentence"].as_str().unwrap_or("?"));
        let days = answer["days"].as_array().into_iter().flatten();
        let rows: Vec<Vec<String>> = days
            .map(|day| vec![day["date"].as_str().unwrap_or("?").to_owned(), day["mails"].to_string()])
            .collect();
        if !rows.is_empty() {
            text.push_str(&show::table(&["day", "mails"], &[1], rows));
        }
        print(&text)
    })
}

fn days(args: &CampaignArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let answer = reach.json(Request::get(path(&args.id, "/days"))).await?;
        if args.output.json {
            return print_lines(&answer["items"]);
        }
        let items = answer["items"].as_array().into_iter().flatten();
        let row = |day: &Value| {
            let date = day["date"].as_str().unwrap_or("?").to_owned();
            let quota = day["quota"].as_u64().map(|quota| quota.to_string()).unwrap_or_default();
            vec![date, day["planned"].to_string(), day["sent"].to_string(), day["others"].to_string(), quota]
        };
        print(&show::table(
            &["day", "planned", "sent", "others", "takes"],
            &[1, 2, 3, 4],
            items.map(row).collect(),
        ))
    })
}

fn stop(id: &str, prospect: &str, reason: &str, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let path = path(id, &format!("/prospects/{}/stop", segment(prospect)));
        let request = Request::post(path).json(&serde_json::json!({ "reason": reason }));
        let stopped = reach.json(request).await?;
        print(&format!("{prospect}  stopped: {}\n", stopped["stopped_for"].as_str().unwrap_or(reason)))
    })
}

fn schedule(id: &str, limit: u64, output: OutputArgs, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let (mut left, mut after, mut mails) = (limit, None::<String>, Vec::new());
        while left > 0 {
            let len = left.min(PAGE_LEN_MAX).to_string();
            let mut params = vec![("limit", len.as_str())];
            params.extend(after.as_deref().map(|after| ("after", after)));
            let mut page = reach.json(Request::get(path(id, "/schedule")).with(&params)).await?;
            if output.json {
                print_lines(&page["items"])?;
            }
            let items: Vec<Mail> = Deserialize::deserialize(page["items"].take())?;
            left = left.saturating_sub(items.len() as u64);
            mails.extend(items.into_iter().filter(|_| !output.json));
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        if output.json { Ok(()) } else { print(&mail_table(&mails, Times::of(output.utc))) }
    })
}

fn quotas(date: Option<&str>, workspace: Option<&str>, json: bool, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let mut request = Request::get("/v1/quotas");
        for (name, said) in [("date", date), ("workspace", workspace)] {
            request = said.map_or_else(|| request.clone(), |said| request.clone().with(&[(name, said)]));
        }
        let used = reach.json(request).await?;
        if json {
            return print(&format!("{used}\n"));
        }
        let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let row = |item: &Value| vec![text(item, "whose"), text(item, "name"), item["used"].to_string()];
        let rows = used["items"].as_array().into_iter().flatten().map(row).collect();
        print(&format!(
            "{} of {}\n{}",
            text(&used, "date"),
            text(&used, "workspace"),
            show::table(&["whose", "name", "mails"], &[2], rows)
        ))
    })
}

fn settings(file: Option<&Path>, workspace: &str, reach: &ReachArgs) -> anyhow::Result<()> {
    let written = file.map(read_json).transpose()?;
    let path = format!("/v1/workspaces/{}/settings", segment(workspace));
    reach::run(async {
        let missing = if written.is_some() { Missing::Make } else { Missing::Refuse };
        let reach = Reach::open(reach, missing).await?;
        let request = match &written {
            Some(written) => Request::put(path).json(written),
            None => Request::get(path),
        };
        super::print_json(&reach.json(request).await?)
    })
}

fn table(campaigns: &[Campaign], times: Times) -> String {
    let row = |campaign: &Campaign| {
        vec![
            campaign.id.clone(),
            campaign.state.clone(),
            campaign.prospects.to_string(),
            campaign.planned.to_string(),
            campaign.scheduled.to_string(),
            campaign.last_at.map(|at| times.show(at)).unwrap_or_default(),
            campaign.name.clone(),
        ]
    };
    let header = ["campaign", "state", "prospects", "planned", "mails", "last mail", "name"];
    show::table(&header, &[2, 3, 4], campaigns.iter().map(row).collect())
}

fn mail_table(mails: &[Mail], times: Times) -> String {
    let time = |at: Option<Timestamp>| at.map(|at| times.show(at)).unwrap_or_default();
    let row = |mail: &Mail| {
        vec![
            mail.prospect_id.clone(),
            mail.step.to_string(),
            mail.status.clone(),
            time(mail.scheduled_for),
            time(mail.due_at),
            mail.key.clone(),
        ]
    };
    let header = ["prospect", "step", "status", "planned for", "due", "key"];
    show::table(&header, &[1], mails.iter().map(row).collect())
}

fn print_lines(items: &Value) -> anyhow::Result<()> {
    let items = items.as_array().into_iter().flatten();
    print(&items.map(|item| format!("{item}\n")).collect::<String>())
}

fn read_json(path: &Path) -> anyhow::Result<Value> {
    let text = match path == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Usage(format!("{} is not JSON: {error}", path.display())).into())
}
