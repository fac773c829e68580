//! `redeliver serve`: carries messages out until it is told to stop.

use std::sync::Arc;

use anyhow::{Context, bail};
use redeliver_core::time::show_span;
use redeliver_engine::Engine;
use redeliver_engine::emit::Telemetry;
use redeliver_engine::stop::stop_pair;

use super::check::travels;
use super::load_config;
use crate::args::ServeArgs;
use crate::config::problem::counted;
use crate::config::{Config, Durability, Loaded, StoreUrl};
use crate::drive::drive;
use crate::exit::{FAILED, Told};
use crate::logging;
use crate::signals::Signals;
use crate::wire::wire;

pub(super) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let loaded = load_config(&args.config)?;
    logging::set_up(&loaded.config.log);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let ended = runtime.block_on(serve(&loaded));
    // What still runs now was told to end at once.
    runtime.shutdown_background();
    ended.map_err(|error| {
        if !tracing::enabled!(tracing::Level::ERROR) {
            return error;
        }
        tracing::error!(event = "engine.failed", "{error:#}");
        Told(FAILED).into()
    })
}

async fn serve(Loaded { config, warnings, .. }: &Loaded) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    for warning in warnings {
        tracing::warn!(event = "config.doubted", "{warning}");
    }
    let engine = wire(config, Arc::new(Telemetry))?;
    tell_start(config, &engine);
    let (stopper, stop) = stop_pair();
    let running = drive(&engine, &stopper, stop, config.engine.drain_timeout);
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => return ended,
        signal = signals.next() => {
            let within = show_span(config.engine.drain_timeout);
            tracing::info!(
                event = "engine.stopping", signal,
                "stopping: nothing new is taken, what is in the air has {within} to end; a second signal ends at once"
            );
            stopper.stop();
        }
    }
    tokio::select! {
        ended = &mut running => ended?,
        signal = signals.next() => {
            bail!("ended at once by a second signal ({signal}): what was in the air will be settled as lost")
        }
    }
    tracing::info!(event = "engine.stopped", "stopped: nothing is in the air");
    Ok(())
}

/// Says what is served, and what it is worth.
fn tell_start(config: &Config, engine: &Engine) {
    let store = config.store.url.show();
    tracing::info!(
        event = "engine.started",
        version = env!("CARGO_PKG_VERSION"),
        instance = %engine.instance(),
        "serving {} from {store}",
        counted(config.routes.len(), "route"),
    );
    for route in config.routes.values() {
        let name = &route.route.name;
        tracing::info!(event = "route.served", route = %name, "route {name}: {}", travels(route).join("; "));
    }
    if config.routes.is_empty() {
        tracing::warn!(event = "route.missing", "the config has no route: nothing will be carried");
    }
    match (&config.store.url, config.store.durability) {
        (StoreUrl::Memory, _) => tracing::warn!(
            event = "store.doubted",
            "THE STORE IS IN MEMORY: everything that was accepted is gone when this process ends"
        ),
        (StoreUrl::Sqlite(_), Durability::Relaxed) => tracing::warn!(
            event = "store.doubted",
            "DURABILITY IS RELAXED: a power cut may take messages that were accepted; \
             store.durability = \"full\" keeps them"
        ),
        (StoreUrl::Sqlite(_), Durability::Full) => {}
    }
}
