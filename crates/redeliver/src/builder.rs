//! Puts an outbox together from what the application says, and the usual for everything else.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redeliver_core::route::cut_timeouts;
use redeliver_core::time::show_span;
use redeliver_core::{Lane, Name, Policy, Route};
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::{Observer, Telemetry};
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line, Settings};
use redeliver_stores::postgres::PostgresUrl;
use redeliver_stores::{Durability, OpenOptions, Role};

use crate::absent::Absent;
use crate::error::Error;
use crate::handle::{Outbox, Redeliver};
use crate::profile::{EMAIL_ROUTE, SMTP_TRANSPORT, email_policy, email_route};
use crate::smtp::{self, MailServer, SmtpConfig};
use crate::store::{Opened, StoreUrl};

/// How long a caller waits for the first try unless it says otherwise.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// An outbox that is about to be opened. Without a word of these, it is the profile `email-outbox`: mails travel by
/// the route `email`, over SMTP, six tries in 15.5 minutes.
#[must_use = "nothing is opened before `open`"]
pub struct RedeliverBuilder {
    store: String,
    mail_server: MailServer,
    policy: Policy,
    routes: Vec<Route>,
    transports: HashMap<Name, Arc<dyn Transport>>,
    options: OpenOptions,
    direct_url: Option<String>,
    settings: Settings,
    wait_max: Duration,
    observer: Arc<dyn Observer>,
}

impl RedeliverBuilder {
    pub(crate) fn new(store: String) -> Self {
        Self {
            store,
            mail_server: MailServer::default(),
            policy: email_policy(),
            routes: Vec::new(),
            transports: HashMap::new(),
            options: OpenOptions::default(),
            direct_url: None,
            settings: Settings::default(),
            wait_max: WAIT_MAX,
            observer: Arc::new(Telemetry),
        }
    }

    /// The mail server: `smtp://host:port`, `smtps://user:password@host`. Without one, mails are accepted and wait.
    pub fn smtp(mut self, url: impl Into<String>) -> Self {
        self.mail_server.url = Some(url.into());
        self
    }

    /// The mail server with everything that a URL can't say.
    pub fn smtp_config(mut self, config: SmtpConfig) -> Self {
        self.mail_server.config = Some(config);
        self
    }

    /// Who writes the mails that don't say so themselves.
    pub fn from(mut self, who: impl Into<String>) -> Self {
        self.mail_server.from = Some(who.into());
        self
    }

    /// How mails are retried.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// One more way for messages to travel; one that is called `email` takes the usual one's place.
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Something that carries messages, by the name that routes know it under. One that is called `smtp` takes the
    /// usual one's place.
    pub fn transport(mut self, name: impl Into<Name>, transport: Arc<dyn Transport>) -> Self {
        self.transports.insert(name.into(), transport);
        self
    }

    /// Opens the store to accept and to look: another process carries messages out of it.
    pub fn accept_only(mut self) -> Self {
        self.options.role = Role::Client;
        self
    }

    /// What a commit is worth. Below [`Durability::Full`], a power cut may take what was accepted last.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// The database itself, where the store's address is that of a pooler in front of it (PgBouncer).
    pub fn direct_url(mut self, url: impl Into<String>) -> Self {
        self.direct_url = Some(url.into());
        self
    }

    /// How the engine paces itself.
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// How long [`Redeliver::send_or_queue`] waits for the first try: 5 s unless it is said here.
    pub fn wait_at_most(self, span: Duration) -> Self {
        Self { wait_max: span, ..self }
    }

    /// Who hears what happens, instead of the log and the metrics.
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Opens the outbox, making its tables if there are none. Nothing is carried before it is started.
    pub async fn open(mut self) -> Result<Redeliver, Error> {
        let store_url = StoreUrl::parse(&self.store)?;
        if store_url == StoreUrl::Memory && self.options.role == Role::Client {
            return Err(Error::Misused("nobody else can carry messages out of a store in memory".to_owned()));
        }
        let direct_url = self.direct_url.as_deref().map(PostgresUrl::parse).transpose()?;
        let routes = self.all_routes()?;
        let smtp = self.mail_server.config()?;
        self.check_send_timeouts(&routes, &smtp)?;
        let senderless = self.senderless(&routes);
        let Opened { store, clock, postgres } =
            store_url.open(self.options.clone(), direct_url.as_ref()).await?;
        self.add_transports(&routes, smtp, &clock)?;
        let lines =
            routes.into_values().map(|route| line(route, &self.transports)).collect::<Result<_, _>>()?;
        let engine = Engine::new(store, clock, self.observer, self.settings, lines);
        Ok(Redeliver::new(Outbox {
            engine: Arc::new(engine),
            store: store_url,
            postgres,
            role: self.options.role,
            durability: self.options.durability,
            wait_max: self.wait_max,
            senderless,
            started: OnceLock::new(),
        }))
    }

    /// The application's routes and the usual one, by name.
    fn all_routes(&mut self) -> Result<BTreeMap<Name, Route>, Error> {
        let mut all = BTreeMap::new();
        for route in std::mem::take(&mut self.routes) {
            let name = route.name.clone();
            if all.insert(name.clone(), route).is_some() {
                return Err(Error::Misused(format!("two routes are called {name}")));
            }
        }
        all.entry(EMAIL_ROUTE.into()).or_insert_with(|| email_route(self.policy.clone()));
        Ok(all)
    }

    /// Refuses a route that would end a send before the mail server has answered.
    fn check_send_timeouts(&self, routes: &BTreeMap<Name, Route>, smtp: &SmtpConfig) -> Result<(), Error> {
        if self.transports.contains_key(SMTP_TRANSPORT) {
            return Ok(());
        }
        for route in routes.values().filter(|route| travels_by(route).any(|name| &**name == SMTP_TRANSPORT)) {
            if let Some((cut, least)) = cut_timeouts(route.send_timeout, &smtp.timeouts()) {
                return Err(Error::Misused(format!(
                    "send_timeout ({}) of the route {} is too short for {cut} of the mail server: a mail that was taken \
                     would be sent again; make it at least {}, or shorten those",
                    show_span(route.send_timeout),
                    route.name,
                    show_span(least)
                )));
            }
        }
        Ok(())
    }

    /// The routes on which nobody is known to write unless the mail says so: known here only where the mails go out
    /// by the usual transport of this very process.
    fn senderless(&self, routes: &BTreeMap<Name, Route>) -> Vec<Name> {
        let is_usual = !self.transports.contains_key(SMTP_TRANSPORT) && self.options.role == Role::Engine;
        let by_smtp = |route: &&Route| travels_by(route).any(|name| &**name == SMTP_TRANSPORT);
        match is_usual && !self.mail_server.has_sender() {
            true => routes.values().filter(by_smtp).map(|route| route.name.clone()).collect(),
            false => Vec::new(),
        }
    }

    /// The usual transport, unless the application has its own; and for a process that only accepts, nothing at all
    /// in the place of each.
    fn add_transports(
        &mut self,
        routes: &BTreeMap<Name, Route>,
        smtp: SmtpConfig,
        clock: &Arc<dyn Clock>,
    ) -> Result<(), Error> {
        if self.options.role == Role::Client {
            for name in routes.values().flat_map(travels_by) {
                let absent = || Arc::new(Absent::new(name.clone(), Arc::clone(clock))) as Arc<dyn Transport>;
                self.transports.entry(name.clone()).or_insert_with(absent);
            }
        } else if !self.transports.contains_key(SMTP_TRANSPORT) {
            self.transports.insert(SMTP_TRANSPORT.into(), smtp::transport(smtp, clock)?);
        }
        Ok(())
    }
}

/// The transports that a route names, lane by lane.
fn travels_by(route: &Route) -> impl Iterator<Item = &Name> {
    Lane::ALL.into_iter().map(|lane| &route.travel(lane).transport)
}

fn line(route: Route, transports: &HashMap<Name, Arc<dyn Transport>>) -> Result<Line, Error> {
    let name = route.name.clone();
    Line::new(route, transports, Vec::new()).map_err(|missing| {
        Error::Misused(format!("the route {name} names the transport {missing}, which isn't there"))
    })
}
