//! Asks the same router in this process, over a store that no server holds, or that all share. It carries nothing out.

use anyhow::{Context, anyhow};
use axum::Router;
use axum::body::Body;
use redeliver_engine::access::Role;
use redeliver_server::auth::{Caller, InProcess};
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability as Worth, Server, router};
use tower::ServiceExt;

use super::{Answer, Request};
use crate::config::{Config, Durability, StoreUrl};
use crate::wire::wire_beside;

/// A store, and the router over it.
pub(super) struct Local {
    router: Router,
    is_shared: bool,
}

impl Local {
    pub(super) async fn open(config: &Config) -> anyhow::Result<Self> {
        let (engine, access) = wire_beside(config).await?;
        let worth = match config.store.durability {
            Durability::Full => Worth::Full,
            Durability::Relaxed => Worth::Relaxed,
        };
        let limits = config.http.limits.clone();
        let server = Server::new(engine, access, None, worth, limits, Metrics::default());
        let is_shared = matches!(config.store.url, StoreUrl::Postgres(_));
        Ok(Self { router: router(server), is_shared })
    }

    /// Whether servers may be on the same store while this one is.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(super) async fn call(&self, request: Request) -> anyhow::Result<Answer> {
        let mut asked = axum::http::Request::builder().method(request.method).uri(request.path);
        for (name, value) in request.headers {
            asked = asked.header(name, value);
        }
        // Whoever may write the store itself may do anything to it that an operator may.
        let caller = Caller { name: "command line".into(), workspace: None, role: Role::Operator, key: None };
        let asked = asked.extension(InProcess(caller)).body(Body::from(request.body))?;
        let answered = self.router.clone().oneshot(asked).await.map_err(|never| match never {})?;
        let status = answered.status().as_u16();
        let body = axum::body::to_bytes(answered.into_body(), usize::MAX)
            .await
            .map_err(|error| anyhow!(error))
            .context("the answer ended early")?;
        Ok(Answer { status, body: body.into() })
    }
}
