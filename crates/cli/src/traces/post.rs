//! Posts to a collector, with the one HTTP client and the one TLS stack of this binary.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

use crate::reach::is_this_machine;

/// How long a collector may take for one batch.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Speaks HTTP to a collector.
#[derive(Debug)]
pub(super) struct Client(reqwest::Client);

impl Client {
    pub(super) fn new(endpoint: &str) -> anyhow::Result<Self> {
        // Another part of this process may have chosen the same before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client =
            reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(ANSWER_TIMEOUT);
        let url = reqwest::Url::parse(endpoint).context("a collector's address")?;
        // A proxy's loopback is not ours.
        if url.host_str().is_some_and(is_this_machine) {
            client = client.no_proxy();
        }
        Ok(Self(client.build().context("cannot speak HTTP")?))
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.0.execute(request.try_into()?).await?;
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.clone_from(answer.headers());
        }
        Ok(response.body(answer.bytes().await?)?)
    }
}
