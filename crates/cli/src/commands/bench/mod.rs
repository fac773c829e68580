//! `redeliver bench`: how fast this machine and this store are, beside what the bare store can do in the same run.
#![allow(clippy::disallowed_methods, reason = "it measures")]

mod campaign;
mod carrier;
mod ceiling;
mod http;
mod jobs;
mod lanes;
mod lists;
mod pages;
mod report;
mod retention;
mod rig;
mod wrk;

use std::path::PathBuf;

use anyhow::bail;
use redeliver_stores::postgres::bare::Bare;

use crate::args::BenchArgs;
use crate::config::StoreUrl;
use crate::threads;
use report::Report;
use rig::Place;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    // As `serve` has it.
    threads::runtime(&args.store)?.block_on(async {
        let place = place(args).await?;
        let mut report = Report::new(args.json);
        let result = jobs::run(args, &place, &mut report).await;
        place.clean().await?;
        result?;
        report.finish()
    })
}

/// Where the benchmark keeps its stores: in the file that was named, which must not exist yet, or in a database without a
/// store.
async fn place(args: &BenchArgs) -> anyhow::Result<Place> {
    match &args.store {
        StoreUrl::Memory => Ok(Place::Memory),
        StoreUrl::Sqlite(path) if path.exists() => {
            bail!("the benchmark wants a new file, and {} is there already: name another one", path.display())
        }
        StoreUrl::Sqlite(path) => Ok(Place::Sqlite(PathBuf::from(path))),
        StoreUrl::Postgres(url) if Bare::open(url).await?.has_store().await? => {
            bail!(
                "the benchmark wants a database of its own, and {url} has a store already: name another one"
            )
        }
        StoreUrl::Postgres(url) => Ok(Place::Postgres(url.clone())),
    }
}
