//! The one way in which commands talk about messages: the API's calls, over the network or in this process.
//!
//! Whether a server is asked or its router is run here over a store, commands send the same requests and read the same
//! answers; they never know which it was.

mod answer;
mod ids;
mod local;
mod message;
mod pages;
mod remote;
mod request;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::ReachArgs;
use crate::commands::{has_config, load_config_if_any};
use crate::config::{Config, HttpConfig, StoreConfig, StoreUrl};
use crate::exit::Usage;
use crate::wire::check_current;

pub use answer::{Answer, Problem};
pub use ids::{NoSuchId, find_id, id_of, path_of, short_ids};
use local::Local;
pub use message::{Failure, Message};
pub use pages::{Listing, Page, Pages};
use remote::Remote;
pub(crate) use remote::is_this_machine;
pub use request::{Request, segment};

/// What a command wants of a store that isn't there yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing: what isn't there has no messages to look at.
    Refuse,
    /// Make it: messages are coming.
    Make,
}

/// Where the messages are.
pub struct Reach(Way);

enum Way {
    Remote(Remote),
    Local(Box<Local>),
}

impl Reach {
    /// The way that the command line, the environment and the config say.
    pub async fn open(args: &ReachArgs, missing: Missing) -> anyhow::Result<Self> {
        let key = || key(args, said("REDELIVER_KEY"));
        if let Some(url) = server(args) {
            return Ok(Self(Way::Remote(Remote::new(&url, key()?)?)));
        }
        let config = config(args)?;
        match &config.store.url {
            StoreUrl::Memory => {
                let why = "messages in memory: are in their server's process only: give its --url";
                return Err(Usage(why.to_owned()).into());
            }
            StoreUrl::Sqlite(path) if redeliver_stores::is_held(path) => {
                let url = served_at(&config.http);
                // Whoever names the store means the store, and would wonder about what a server answers.
                return match (key()?, &url) {
                    (Some(key), Some(url)) if args.store.is_none() => {
                        Ok(Self(Way::Remote(Remote::new(url, Some(key))?)))
                    }
                    _ => anyhow::bail!(
                        "a server holds the store {}: ask the server, with --url {} and a key in REDELIVER_KEY",
                        config.store.url.show(),
                        url.as_deref().unwrap_or("URL")
                    ),
                };
            }
            StoreUrl::Sqlite(path) => {
                if missing == Missing::Refuse && !path.exists() {
                    anyhow::bail!(
                        "there is no store {}: `redeliver serve` makes it",
                        config.store.url.show()
                    );
                }
            }
            // Nobody holds a database: servers and commands are on it side by side.
            StoreUrl::Postgres(_) => {
                if missing == Missing::Refuse {
                    check_current(&config.store).await?;
                }
            }
        }
        Ok(Self(Way::Local(Box::new(Local::open(&config).await?))))
    }

    /// Asks, and gives whatever is answered.
    pub async fn call(&self, request: Request) -> anyhow::Result<Answer> {
        match &self.0 {
            Way::Remote(remote) => remote.call(request).await,
            Way::Local(local) => local.call(request).await,
        }
    }

    /// Asks for JSON; an answer that is a problem is an error.
    pub async fn json(&self, request: Request) -> anyhow::Result<Value> {
        Ok(self.call(request).await?.json()?)
    }

    /// Asks for something whose shape is known.
    pub async fn get<T: DeserializeOwned>(&self, request: Request) -> anyhow::Result<T> {
        let value = self.json(request).await?;
        serde_json::from_value(value)
            .context("the server's answer is not understood (is it another version?)")
    }

    /// Whether nobody carries messages out while this command runs, as far as is known.
    pub fn is_alone(&self) -> bool {
        matches!(&self.0, Way::Local(local) if !local.is_shared())
    }
}

/// Runs a command's questions to their end.
pub fn run<T>(story: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(story)
}

/// The server that the command line or the environment names, if they do.
pub fn server(args: &ReachArgs) -> Option<String> {
    args.url.clone().or_else(|| said("REDELIVER_URL").filter(|_| args.store.is_none()))
}

/// What a variable of the environment says.
fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The config, with the store that the command line names.
fn config(args: &ReachArgs) -> anyhow::Result<Config> {
    let mut config = load_config_if_any(&args.config)?.config;
    if let Some(url) = &args.store {
        config.store.url = url.clone();
        return Ok(config);
    }
    let is_said = has_config(&args.config) || config.store.url != StoreConfig::default().url;
    let is_there = matches!(&config.store.url, StoreUrl::Sqlite(path) if path.exists());
    if !is_said && !is_there {
        let how = "say where the messages are: --url URL of a server (or REDELIVER_URL), --store sqlite:FILE or postgres://…, \
                   or a config (--config, --profile, redeliver.toml)";
        return Err(Usage(how.to_owned()).into());
    }
    Ok(config)
}

/// Where a server with this config is reached from this machine, unless the system chose its port.
fn served_at(HttpConfig { listen, port, .. }: &HttpConfig) -> Option<String> {
    let reachable = match listen {
        IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        address => *address,
    };
    (*port != 0).then(|| format!("http://{}", SocketAddr::new(reachable, *port)))
}

/// The key, from its file or the environment.
fn key(args: &ReachArgs, variable: Option<String>) -> anyhow::Result<Option<String>> {
    let Some(path) = &args.key_file else { return Ok(variable) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Usage(format!("cannot read the key in {}: {error}", path.display())))?;
    Ok(Some(text.trim().to_owned()))
}
