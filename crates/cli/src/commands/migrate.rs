//! `redeliver migrate`: makes the tables of a store, or brings them up to date, and carries nothing.

use super::{load_config, print};
use crate::args::MigrateArgs;
use crate::config::StoreUrl;
use crate::config::problem::counted;
use crate::exit::Usage;
use crate::{reach, wire};

pub(super) fn run(args: &MigrateArgs) -> anyhow::Result<()> {
    let store = load_config(&args.config)?.config.store;
    if store.url == StoreUrl::Memory {
        return Err(Usage("a store in memory: has no tables".to_owned()).into());
    }
    let steps = reach::run(wire::migrate(&store))?;
    let taken = match steps {
        Some(0) => " already".to_owned(),
        Some(steps) => format!(" after {}", counted(steps, "step")),
        None => String::new(),
    };
    print(&format!("{} has this version's tables{taken}\n", store.url.show()))
}
