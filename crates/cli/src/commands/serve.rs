//! `redeliver serve`: carries messages out until it is told to stop.

use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use redeliver_core::State;
use redeliver_core::time::show_span;
use redeliver_engine::Engine;
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::{self, Telemetry};
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::{Filter, StoreError};
use redeliver_server::metrics::Metrics;
use tokio::task::JoinSet;

use super::check::travels;
use super::load_config;
use crate::args::{Role, ServeArgs};
use crate::clock::follow;
use crate::config::problem::{Problem, counted};
use crate::config::{Config, Durability, IntakeConfig, Loaded, StoreUrl};
use crate::drive::drive_with;
use crate::exit::{FAILED, Told};
use crate::http::Http;
use crate::logging;
use crate::signals::Signals;
use crate::threads;
use crate::traces::{self, Traces};
use crate::wire::{Sending, intakes, wire_senders, wire_with_access};

/// Messages left behind that are counted one by one.
const LEFT_COUNTED_MAX: usize = 1_000;

pub(super) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let loaded = load_config(&args.config)?;
    let (spans, traces) = traces::open(&loaded.config.telemetry)?.unzip();
    logging::set_up(&loaded.config.log, spans);
    let runtime = threads::runtime(&loaded.config.store.url)?;
    let ended = runtime.block_on(async {
        // Before anything that the spans' own metric could be missed in.
        let metrics = Metrics::install();
        let traces = traces.map(Traces::start);
        let ended = match args.role {
            Role::Scheduler => serve(&loaded, metrics, args.clock.as_deref()).await,
            Role::Sender => send(&loaded, metrics, args.clock.as_deref()).await,
        };
        if let Some(traces) = traces {
            traces.end().await;
        }
        ended
    });
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

async fn serve(
    Loaded { config, warnings, .. }: &Loaded,
    metrics: Metrics,
    clock_file: Option<&Path>,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let clock = begin(warnings, clock_file)?;
    let (engine, access) = wire_with_access(config, Arc::new(Telemetry), clock).await?;
    emit::begin(engine.routes());
    let retry_routes = config.intakes.values().filter_map(|intake| match intake {
        IntakeConfig::Rabbitmq(intake) => Some(intake.route.clone()),
        #[cfg(feature = "kafka")]
        IntakeConfig::Kafka(_) => None,
        #[cfg(feature = "redis")]
        IntakeConfig::Redis(_) => None,
    });
    let metrics = metrics.with_retry_routes(retry_routes);
    let http = Http::open(config, &engine, access, metrics).await?;
    tell_start(config, &engine);
    http.tell_start();
    let intakes = intakes(config, &engine)?;
    let (stopper, stop) = stop_pair();
    let answering = http.answer(stop.clone());
    let running = async {
        // Whoever asks is answered for as long as the engine runs; when it stops, both do.
        let (ended, ()) = tokio::join!(drive_with(&engine, intakes, &stopper, stop), answering);
        ended
    };
    tokio::pin!(running);
    let drain_timeout = config.engine.drain_timeout;
    tokio::select! {
        ended = &mut running => return ended,
        error = engine.store().broken() => return Err(broken(&error)),
        signal = signals.next() => {
            let within = show_span(drain_timeout);
            tracing::info!(
                event = "engine.stopping", signal,
                "stopping: nothing new is taken, what is in the air has {within} to end; a second signal ends at once"
            );
            stopper.stop();
        }
    }
    let stopped_at = engine.clock().uptime();
    tokio::select! {
        ended = &mut running => ended?,
        error = engine.store().broken() => return Err(broken(&error)),
        signal = signals.next() => {
            bail!("ended at once by a second signal ({signal}): what was in the air will be settled as lost")
        }
    }
    let drained_for = engine.clock().uptime().saturating_sub(stopped_at);
    tell_left(&engine, drained_for >= drain_timeout).await?;
    tracing::info!(event = "engine.stopped", "stopped: nothing is in the air");
    Ok(())
}

/// Sends the mails that were handed off, until it is told to stop and has finished what it sends.
async fn send(
    Loaded { config, warnings, .. }: &Loaded,
    metrics: Metrics,
    clock_file: Option<&Path>,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let clock = begin(warnings, clock_file)?;
    let (stopper, stop) = stop_pair();
    let (engine, access, senders) = wire_senders(config, Arc::new(Telemetry), clock, &stop).await?;
    emit::begin(engine.routes());
    let http = Http::open(config, &engine, access, metrics).await?;
    tracing::info!(
        event = "sender.started",
        version = env!("CARGO_PKG_VERSION"),
        "sending the mails of {}",
        counted(senders.len(), "table"),
    );
    http.tell_start();
    let mut tasks = JoinSet::new();
    for Sending { name, intake, sender } in senders {
        let stop = stop.clone();
        tasks.spawn(async move { (name, intake.run(&*sender, stop).await) });
    }
    tasks.spawn(async move {
        http.answer(stop).await;
        ("http".into(), Ok(()))
    });
    let signal = tokio::select! {
        ended = tasks.join_next() => {
            stopper.stop();
            bail!("the sender ended without being told to: {ended:?}")
        }
        error = engine.store().broken() => return Err(broken(&error)),
        signal = signals.next() => signal,
    };
    let drain_timeout = config.engine.drain_timeout;
    let within = show_span(drain_timeout);
    tracing::info!(
        event = "engine.stopping",
        signal,
        "stopping: nothing new is taken, what is being sent has {within} to end; a second signal ends at once"
    );
    stopper.stop();
    let finishing = async { while tasks.join_next().await.is_some() {} };
    tokio::select! {
        () = finishing => {}
        () = engine.clock().sleep(drain_timeout) => {
            bail!("mails were still being sent when drain_timeout was over: they are sent again when their locks have passed")
        }
        signal = signals.next() => {
            bail!("ended at once by a second signal ({signal}): what was being sent is sent again when its lock has passed")
        }
    }
    tracing::info!(event = "engine.stopped", "stopped: nothing is being sent");
    Ok(())
}

/// Why the process ends at once: no result can be written any more, so nobody waits for what is being sent. After a
/// restart it is settled as lost.
fn broken(error: &StoreError) -> anyhow::Error {
    anyhow!("{error}; ending now. Messages that were accepted are kept; those being sent are settled as lost")
}

/// Says what is doubtful about the config, and whose time it is.
fn begin(warnings: &[Problem], clock_file: Option<&Path>) -> anyhow::Result<Option<Arc<dyn Clock>>> {
    for warning in warnings {
        tracing::warn!(event = "config.doubted", "{warning}");
    }
    let clock = clock_file.map(follow).transpose()?.map(|clock| clock as Arc<dyn Clock>);
    if let Some(file) = clock_file {
        tracing::warn!(event = "clock.doubted", "THE TIME IS WHAT {} SAYS", file.display());
    }
    Ok(clock)
}

/// Says which messages this instance has claimed and not settled, if any. They are an error only if the drain took
/// too long: a claim that the stop cut short was never carried.
async fn tell_left(engine: &Engine, took_too_long: bool) -> anyhow::Result<()> {
    let filter = Filter { state: Some("claimed"), limit: LEFT_COUNTED_MAX, ..Filter::default() };
    let claimed = engine.store().list(filter).await?;
    let ours = |state: &State| matches!(state, State::Claimed(lease) if lease.instance == engine.instance());
    let messages = match claimed.iter().filter(|message| ours(&message.state)).count() {
        0 => return Ok(()),
        LEFT_COUNTED_MAX => format!("{LEFT_COUNTED_MAX} or more messages"),
        left => counted(left, "message"),
    };
    if took_too_long {
        bail!("{messages} still in the air when drain_timeout was over: the next start settles them as lost");
    }
    tracing::warn!(
        event = "claim.left",
        "{messages} claimed but not tried when the stop came: the next start takes them up at once"
    );
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
        if route.eligibility.as_ref().is_some_and(|check| check.url.is_none()) {
            tracing::warn!(
                event = "gate.idle", route = %name,
                "route {name} names no service to ask whether receivers are active: all of them count as active"
            );
        }
    }
    if config.routes.is_empty() {
        tracing::warn!(event = "route.missing", "the config has no route: nothing will be carried");
    }
    match (&config.store.url, config.store.durability) {
        (StoreUrl::Memory, _) => tracing::warn!(
            event = "store.doubted",
            "THE STORE IS IN MEMORY: everything that was accepted is gone when this process ends"
        ),
        (StoreUrl::Sqlite(_) | StoreUrl::Postgres(_), Durability::Relaxed) => tracing::warn!(
            event = "store.doubted",
            "DURABILITY IS RELAXED: a power cut may take messages that were accepted; \
             store.durability = \"full\" keeps them"
        ),
        (StoreUrl::Sqlite(_) | StoreUrl::Postgres(_), Durability::Full) => {}
    }
}
