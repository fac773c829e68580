//! `redeliver bench`: how fast this machine and this store are, beside what the bare store can do in the same run.
#![allow(clippy::disallowed_methods, reason = "it measures")]

mod carrier;
mod ceiling;
mod http;
mod jobs;
mod report;
mod rig;
mod wrk;

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::args::BenchArgs;
use crate::config::StoreUrl;
use report::Report;
use rig::Place;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let place = place(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for the benchmark")?;
    let mut report = Report::new(args.json);
    let result = runtime.block_on(jobs::run(args, &place, &mut report));
    place.clean();
    result?;
    report.finish()
}

/// Where the benchmark keeps its stores: beside the file that was named, which must not exist yet.
fn place(args: &BenchArgs) -> anyhow::Result<Place> {
    match &args.store {
        StoreUrl::Memory => Ok(Place::Memory),
        StoreUrl::Sqlite(path) if path.exists() => {
            bail!("the benchmark wants a new file, and {} is there already: name another one", path.display())
        }
        StoreUrl::Sqlite(path) => Ok(Place::Sqlite(PathBuf::from(path))),
        StoreUrl::Postgres(_) => bail!("the benchmark measures sqlite:FILE and memory:"),
    }
}
