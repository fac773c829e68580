//! `redeliver instances`: which instances live.

use redeliver_core::Timestamp;
use serde::Deserialize;

use super::list::cut;
use super::times::Times;
use super::{print, show};
use crate::args::InstancesArgs;
use crate::exit::print_aside;
use crate::reach::{self, Missing, Reach, Request};

/// Characters of a name, at most.
const NAME_LEN_MAX: usize = 60;

#[derive(Deserialize)]
struct Instance {
    id: String,
    name: Option<String>,
    version: Option<String>,
    started_at: Option<Timestamp>,
    beat_at: Option<Timestamp>,
    leases: u64,
}

pub(super) fn run(args: &InstancesArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let mut answer = reach.json(Request::get("/v1/instances")).await?;
        if args.output.json {
            let items = answer["items"].as_array();
            return print(&items.into_iter().flatten().map(|item| format!("{item}\n")).collect::<String>());
        }
        let instances: Vec<Instance> = Deserialize::deserialize(answer["items"].take())?;
        if instances.is_empty() {
            print_aside("no instance lives: nothing goes out until `redeliver serve` runs");
            return Ok(());
        }
        let times = Times::of(args.output.utc);
        let at = |time: Option<Timestamp>| time.map(|time| times.show(time)).unwrap_or_default();
        let row = |one: &Instance| {
            vec![
                one.id.clone(),
                cut(one.name.as_deref().unwrap_or("-"), NAME_LEN_MAX),
                cut(one.version.as_deref().unwrap_or("-"), NAME_LEN_MAX),
                at(one.started_at),
                at(one.beat_at),
                one.leases.to_string(),
            ]
        };
        let header = ["instance", "where", "version", "started", "heard of", "sending"];
        print(&show::table(&header, &[5], instances.iter().map(row).collect()))
    })
}
