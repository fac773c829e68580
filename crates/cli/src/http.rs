//! The HTTP face of a server that is about to run: who may come in, and where it listens.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use redeliver_engine::Engine;
use redeliver_engine::access::Access;
use redeliver_engine::stop::Stop;
use redeliver_server::auth::secret::AdminKey;
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability as Worth, Server, router};
use tokio::net::TcpListener;

use crate::config::{Config, Durability, StoreUrl};

/// How often what was measured is put in order.
const KEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// A socket that is open, and what will answer on it.
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
    server: Server,
    has_key: bool,
}

impl Http {
    /// Opens the socket, unless that would let anybody in.
    pub async fn open(
        config: &Config,
        engine: &Arc<Engine>,
        access: Arc<dyn Access>,
        metrics: Metrics,
    ) -> anyhow::Result<Self> {
        let http = &config.http;
        let durability = match (&config.store.url, config.store.durability) {
            (StoreUrl::Memory, _) => Worth::Memory,
            (StoreUrl::Sqlite(_) | StoreUrl::Postgres(_), Durability::Relaxed) => Worth::Relaxed,
            (StoreUrl::Sqlite(_) | StoreUrl::Postgres(_), Durability::Full) => Worth::Full,
        };
        let has_key =
            http.admin_key.is_some() || access.keys().await?.iter().any(|key| key.revoked_at.is_none());
        if !has_key && !http.listen.is_loopback() {
            bail!(
                "refusing to listen on {} while there is no key: make one (`redeliver keys create --name NAME --role admin`), \
                 set REDELIVER_ADMIN_KEY, or listen on 127.0.0.1 (http.listen)",
                http.listen
            );
        }
        let address = SocketAddr::new(http.listen, http.port);
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address} (another port: http.port, HTTP_PORT)"))?;
        let address = listener.local_addr().context("cannot tell on which port")?;
        let server = Server::new(
            Arc::clone(engine),
            access,
            http.admin_key.clone(),
            durability,
            http.limits.clone(),
            metrics,
        );
        Ok(Self { listener, address, server, has_key })
    }

    /// Says where it answers, and whom.
    pub fn tell_start(&self) {
        tracing::info!(event = "http.listening", address = %self.address, "answering on http://{}", self.address);
        if self.server.admin_key.as_ref().is_some_and(AdminKey::is_short) {
            tracing::warn!(
                event = "key.doubted",
                "{} has fewer than {} characters and could be guessed: make a better one with `openssl rand -hex 32`",
                AdminKey::NAME,
                AdminKey::LEN_ADVISED
            );
        }
        if !self.has_key {
            tracing::info!(
                event = "key.missing",
                "there is no key yet: only /healthz, /readyz and /metrics answer; make one with \
                 `redeliver keys create --name NAME --role admin`, or set REDELIVER_ADMIN_KEY"
            );
        }
    }

    /// Answers until told to stop.
    pub async fn answer(self, mut stop: Stop) {
        let Self { listener, server, .. } = self;
        let (limits, metrics) = (Arc::clone(&server.limits), server.metrics.clone());
        let clock = Arc::clone(server.engine.clock());
        let serving = redeliver_server::serve::serve(listener, router(server), limits, stop.clone());
        let keeping = async {
            loop {
                tokio::select! {
                    () = stop.stopped() => break,
                    () = clock.sleep(KEEP_INTERVAL) => metrics.keep(),
                }
            }
        };
        tokio::join!(serving, keeping);
    }
}
