//! Asks a server over the network.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use reqwest::redirect::Policy;

use super::{Answer, Request};
use crate::exit::Usage;

/// How long a server may take to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to answer: longer than it allows itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// A server.
pub(super) struct Remote {
    url: String,
    key: Option<String>,
    client: reqwest::Client,
}

impl Remote {
    pub(super) fn new(url: &str, key: Option<String>) -> anyhow::Result<Self> {
        let is_http = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        let parsed = reqwest::Url::parse(url).ok().filter(|_| is_http && !url.contains(['?', '#']));
        let Some(parsed) = parsed else {
            let wrong = "a server's URL is written like http://127.0.0.1:8086";
            return Err(Usage(wrong.to_owned()).into());
        };
        // Another part of this process may have chosen the same before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder();
        // A proxy's loopback is not ours.
        if parsed.host_str().is_some_and(is_this_machine) {
            client = client.no_proxy();
        }
        let client = client
            // A key is for the server that it was given for.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .build()
            .context("cannot speak HTTP")?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), key, client })
    }

    pub(super) async fn call(&self, request: Request) -> anyhow::Result<Answer> {
        let mut asked = self.client.request(request.method, format!("{}{}", self.url, request.path));
        for (name, value) in request.headers {
            asked = asked.header(name, value);
        }
        if let Some(key) = &self.key {
            asked = asked.bearer_auth(key);
        }
        let answered = asked.body(request.body).send().await.map_err(|error| self.unanswered(error))?;
        let status = answered.status().as_u16();
        let body = answered.bytes().await.map_err(|error| self.unanswered(error))?;
        Ok(Answer { status, body: body.into() })
    }

    fn unanswered(&self, error: reqwest::Error) -> anyhow::Error {
        let url = &self.url;
        if error.is_connect() {
            return anyhow!("cannot reach {url} (is `redeliver serve` running there?)");
        }
        if error.is_timeout() {
            return anyhow!("{url} did not answer in time: it is not known whether it was done");
        }
        anyhow::Error::new(error.without_url())
            .context(format!("{url} ended the connection: it is not known whether it was done"))
    }
}

pub(crate) fn is_this_machine(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}
