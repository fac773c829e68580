//! Three instances of the shipped binary on one PostgreSQL, which has a synchronous standby.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use redeliver_servers::free_port;
use redeliver_servers::postgres::PostgresServer;
use serde_json::Value;

use super::Plan;
use super::generate::Addresses;
use crate::story::server::{Place, Server};
use crate::story::{breathe, until, until_some};

const INSTANCES: usize = 3;

/// How long everything may take to settle once nothing is done to the fleet any more.
const SETTLED_WITHIN: Duration = Duration::from_secs(240);

/// The fleet and its databases.
pub struct Fleet {
    place: Place,
    servers: Vec<Option<Server>>,
    addresses: Addresses,
    pub primary: PostgresServer,
    pub standby: Option<PostgresServer>,
}

impl Fleet {
    pub fn start(plan: &Plan, smtp_url: &str) -> Self {
        let primary = PostgresServer::start();
        let standby_port = free_port();
        let url =
            format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{standby_port}/postgres", primary.port());
        let standby = primary.standby(standby_port);
        let place = Place::outbox(smtp_url)
            .variable("DATABASE_URL", &url)
            .variable("REDELIVER_ENGINE__HEARTBEAT", "1s")
            .variable("REDELIVER_ENGINE__KEEP_INTERVAL", "500ms")
            .variable("REDELIVER_ROUTES__EMAIL__LEASE", plan.lease)
            .variable("REDELIVER_TRANSPORTS__SMTP__CONNECT_TIMEOUT", "1s")
            .variable("REDELIVER_TRANSPORTS__SMTP__COMMAND_TIMEOUT", "1s")
            .variable("REDELIVER_TRANSPORTS__SMTP__DATA_TIMEOUT", "1s")
            .variable("REDELIVER_ROUTES__EMAIL__SEND_TIMEOUT", "4s")
            .variable("REDELIVER_ROUTES__EMAIL__RETENTION", "1d")
            .variable("REDELIVER_POLICIES__EMAIL__BACKOFF", "1s")
            .variable("REDELIVER_LOG__FORMAT", "json")
            .variable("REDELIVER_LOG__FILTER", "warn,redeliver_cli=info");
        let addresses = Arc::new(RwLock::new(vec![None; INSTANCES]));
        let servers = (0..INSTANCES).map(|_| None).collect();
        let mut fleet = Self { place, servers, addresses, primary, standby: Some(standby) };
        for n in 0..INSTANCES {
            fleet.start_instance(n);
        }
        fleet
    }

    pub fn addresses(&self) -> Addresses {
        Arc::clone(&self.addresses)
    }

    pub fn instances(&self) -> usize {
        self.servers.len()
    }

    pub fn instance(&self, n: usize) -> &Server {
        self.servers[n].as_ref().expect("this instance runs")
    }

    pub fn start_instance(&mut self, n: usize) {
        let server = self.place.serve();
        self.addresses.write().unwrap()[n] = Some(server.url.clone());
        self.servers[n] = Some(server);
    }

    /// Takes an instance out of the fleet that is gone.
    pub fn bury(&mut self, n: usize) {
        self.addresses.write().unwrap()[n] = None;
        self.servers[n] = None;
    }

    /// What an instance calls itself, as the database knows it.
    pub fn id(&self, n: usize) -> i64 {
        self.instance(n).instance_id()
    }

    /// How many mails an instance has claimed.
    pub fn claims(&self, id: i64) -> usize {
        self.ask(&format!(
            "SELECT count(*) FROM redeliver.redeliver_messages WHERE instance = {id} AND lease_until IS NOT NULL"
        ))
    }

    /// Whether the fleet has heard of an instance lately.
    pub fn is_alive(&self, id: i64) -> bool {
        let now = "floor(extract(epoch FROM clock_timestamp()) * 1000)";
        self.ask(&format!(
            "SELECT count(*) FROM redeliver.redeliver_instances WHERE id = {id} AND silent_at > {now}"
        )) == 1
    }

    fn ask(&self, sql: &str) -> usize {
        self.primary.say("postgres", sql).parse().expect("it is a number")
    }

    /// The standby has everything that was committed, and every commit waits for it.
    pub fn wait_for_standby(&self) {
        until("the standby is synchronous", || {
            self.primary.say("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
                == "1"
        });
    }

    /// After a failover, the place of the old primary is the new standby's.
    pub fn rebuild_standby(&mut self) {
        if let Some(gone) = self.standby.take() {
            let port = gone.port();
            drop(gone);
            self.standby = Some(self.primary.standby(port));
            self.wait_for_standby();
        }
    }

    /// Waits until nothing is under way any more, but not for ever: what is left then is stuck.
    pub fn wait_until_settled(&self) -> Duration {
        let begun = Instant::now();
        while begun.elapsed() < SETTLED_WITHIN {
            let total = self.instance(0).get("/v1/stats").json["total"].clone();
            if total["waiting"] == 0 && total["sending"] == 0 {
                break;
            }
            breathe();
        }
        begun.elapsed()
    }

    /// Every message that the store has, as the API tells it.
    pub fn messages(&self) -> Vec<Value> {
        let mut messages = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/v1/messages?limit=500&with_dismissed=true{after}");
            let page = until_some("a page of messages", || {
                let answer = self.instance(0).get(&path);
                (answer.status == 200).then_some(answer.json)
            });
            messages.extend(page["items"].as_array().expect("a page has items").iter().cloned());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return messages,
            }
        }
    }

    /// Stops the instances in order, and looks whether any of them has panicked.
    pub fn end(self) {
        for server in self.servers.into_iter().flatten() {
            let log = server.stop();
            assert!(!log.contains("panicked"), "{log}");
        }
    }
}
