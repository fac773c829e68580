//! Three RabbitMQ nodes with quorum queues, one after the other killed under load, each kill proved. Failed messages come in
//! by a publisher of another make and go back to their queues all the while. Everything that the broker had confirmed comes
//! back, and what comes twice is known to have been in doubt.
//!
//! `make chaos` runs it, and goes on for as long and with as many messages as it is told.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "chaos/balance.rs"]
mod balance;
#[path = "story/mod.rs"]
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use balance::Balance;
use redeliver_servers::rabbitmq::RabbitmqServer;
use serde_json::Value;
use story::broker::{Arrivals, Peer, consumer};
use story::server::{Place, Server};
use story::until;

const NODES: usize = 3;
const QUEUES: &str = "orders,invoices";
/// Messages that come in, a second.
const PACE: &str = "400";
/// What is shown of a log.
const LOG_LINES: usize = 60;
/// Messages that come back between two faults.
const BETWEEN: usize = 500;

#[test]
#[allow(clippy::disallowed_methods, reason = "a run lasts for real time")]
fn nodes_are_killed_and_every_confirmed_message_is_back_in_its_queue() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let span = Duration::from_secs(60 * number("CHAOS_MINUTES").unwrap_or(0));
    let wanted = number("CHAOS_MESSAGES").unwrap_or(0) as usize;
    let begun = Instant::now();
    let mut nodes = RabbitmqServer::start_cluster(NODES);
    let urls = nodes.iter().map(RabbitmqServer::url).collect::<Vec<_>>().join(",");
    println!("{:>6.1}s  {NODES} nodes are one broker", begun.elapsed().as_secs_f64());

    // Redeliver knows one address, behind which there are all nodes, as brokers of many nodes are come to.
    let balance = Balance::start(nodes.iter().map(RabbitmqServer::port).collect());
    let place = Place::profile("broker-retry")
        .variable("RABBITMQ_URL", &format!("amqp://guest:guest@127.0.0.1:{}", balance.port()))
        .variable("BASE_DELAY_MS", "200")
        .variable("MAX_DELAY_MS", "200");
    let _consumer = consumer(&urls, QUEUES, &place.path("arrived"), &["--type", "quorum"]);
    let mut arrivals = Arrivals::of(&place.path("arrived"));
    let server = place.serve();
    let witness = Witness(&server);
    until("the intake takes what comes", || server.log().contains("taking what comes"));
    let ledger = Ledger { log: place.path("ledger"), end: place.path("end") };
    let mut publisher = ledger.publisher(&urls);

    let mut faults = 0;
    loop {
        for n in 0..NODES {
            get_on(&mut arrivals);
            let proof = kill(&mut nodes, n, &mut arrivals);
            faults += 1;
            println!("{:>6.1}s  {proof}", begun.elapsed().as_secs_f64());
        }
        if begun.elapsed() >= span && ledger.read().confirmed.len() >= wanted {
            break;
        }
    }
    std::fs::write(&ledger.end, "").unwrap();
    publisher.says("published");
    let stuck = settle(&server, &mut arrivals, ledger.read().confirmed.len());
    let verdict = Verdict { stuck, ..judge(&ledger.read(), &arrivals.all()) };
    println!("{:>6.1}s  {verdict}\n{faults} nodes killed, each proved", begun.elapsed().as_secs_f64());
    println!("the balancer led {} connections to a node", balance.led());
    assert!(verdict.is_clean(), "{verdict}");
    drop(witness);
    server.stop();
}

/// Shows what the server has said if the story can't go on.
struct Witness<'a>(&'a Server);

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.0.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines.len().saturating_sub(LOG_LINES);
            eprintln!("the last that the server said:\n{}", lines[last..].join("\n"));
            eprintln!("{}", self.0.get("/v1/stats").json);
        }
    }
}

/// Waits until messages come back as before.
fn get_on(arrivals: &mut Arrivals) {
    let wanted = arrivals.count() + BETWEEN;
    let mut known = 0;
    while known < wanted {
        until("messages come back", || arrivals.count() > known);
        known = arrivals.count();
    }
}

/// Kills a node, sees that the others do without it, and starts it again.
fn kill(nodes: &mut [RabbitmqServer], n: usize, arrivals: &mut Arrivals) -> String {
    let other = (n + 1) % nodes.len();
    let pid = nodes[n].pid();
    let names = |nodes: &[RabbitmqServer]| running(&nodes[other]);
    assert!(names(nodes).contains(nodes[n].name()), "the node was one of them");
    let led = leads(&nodes[other], nodes[n].name());
    nodes[n].kill();
    until("the others know that it is gone", || !names(nodes).contains(nodes[n].name()));
    let before = arrivals.count();
    get_on(arrivals);
    let meanwhile = arrivals.count() - before;
    nodes[n].resume();
    assert_ne!(nodes[n].pid(), pid, "it is another one now");
    until("it is one of them again", || names(nodes).contains(nodes[n].name()));
    format!(
        "{} killed, which led {led} of the queues; {meanwhile} messages came back without it, then it was back",
        nodes[n].name()
    )
}

/// The nodes that one of them sees at work.
fn running(node: &RabbitmqServer) -> String {
    let status = node.control(&["--quiet", "cluster_status", "--formatter", "json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    status["running_nodes"].to_string()
}

/// How many queues a node leads.
fn leads(node: &RabbitmqServer, name: &str) -> usize {
    let leaders = node.control(&["--quiet", "list_queues", "--no-table-headers", "leader"]);
    leaders.lines().filter(|line| line.trim() == name).count()
}

/// Waits until everything that was confirmed is back, and nothing is under way; how many messages still are.
fn settle(server: &Server, arrivals: &mut Arrivals, confirmed: usize) -> u64 {
    arrivals.wait_for(confirmed);
    let under_way = || {
        let total = server.get("/v1/stats").json["total"].clone();
        let count = |status: &str| total[status].as_u64().unwrap_or(0);
        ["waiting", "due", "sending"].map(count).iter().sum::<u64>()
    };
    until("nothing is under way", || under_way() == 0);
    under_way()
}

/// What the publisher said, and what the broker confirmed to it.
struct Ledger {
    log: PathBuf,
    end: PathBuf,
}

struct Entries {
    /// How often each was said.
    said: BTreeMap<String, usize>,
    confirmed: BTreeSet<String>,
}

impl Ledger {
    fn publisher(&self, urls: &str) -> Peer {
        let text = |path: &Path| path.display().to_string();
        let what = ["publish", "--url", urls, "--queue", "retry.scheduled", "--to", QUEUES];
        let how =
            ["--pace", PACE, "--base-ms", "200", "--until", &text(&self.end), "--log", &text(&self.log)];
        Peer::start(&[&what[..], &how[..]].concat())
    }

    fn read(&self) -> Entries {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let mut entries = Entries { said: BTreeMap::new(), confirmed: BTreeSet::new() };
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for (what, id) in whole.filter_map(|line| line.split_once(' ')) {
            match what {
                "said" => *entries.said.entry(id.to_owned()).or_default() += 1,
                _ => drop(entries.confirmed.insert(id.to_owned())),
            }
        }
        entries
    }
}

/// What came out.
struct Verdict {
    said: usize,
    confirmed: usize,
    arrived: usize,
    deliveries: usize,
    /// Confirmed, and not back in its queue.
    lost: Vec<String>,
    /// Back, and never said.
    ghosts: Vec<String>,
    early: Vec<String>,
    /// Still under way when everything should be over.
    stuck: u64,
    /// Back once more, and nobody knew that it might.
    unexplained: Vec<String>,
    /// Back once more: the broker had no acknowledgement of its consumer.
    redelivered: usize,
    /// Back once more: Redeliver had no confirm, and says so.
    unconfirmed: usize,
    /// Back once more: the publisher had no confirm, and said it again.
    said_again: usize,
}

fn judge(entries: &Entries, arrived: &[Value]) -> Verdict {
    let mut verdict = Verdict {
        said: entries.said.len(),
        confirmed: entries.confirmed.len(),
        arrived: 0,
        deliveries: arrived.len(),
        lost: Vec::new(),
        ghosts: Vec::new(),
        early: Vec::new(),
        stuck: 0,
        unexplained: Vec::new(),
        redelivered: 0,
        unconfirmed: 0,
        said_again: 0,
    };
    let mut known = BTreeSet::new();
    for line in arrived {
        let id = line["id"].as_str().unwrap_or_default().to_owned();
        let headers = &line["headers"];
        if story::broker::late_ms(line) < 0 {
            verdict.early.push(id.clone());
        }
        if known.insert(id.clone()) {
            continue;
        }
        match entries.said.get(&id) {
            _ if line["redelivered"] == true => verdict.redelivered += 1,
            _ if headers["x-redeliver-possible-duplicate"] == "true" => verdict.unconfirmed += 1,
            Some(2..) => verdict.said_again += 1,
            _ => verdict.unexplained.push(format!("{id} {headers}")),
        }
    }
    verdict.arrived = known.len();
    verdict.lost = entries.confirmed.difference(&known).cloned().collect();
    verdict.ghosts = known.into_iter().filter(|id| !entries.said.contains_key(id)).collect();
    verdict
}

impl Verdict {
    fn is_clean(&self) -> bool {
        let wrongs = [&self.lost, &self.ghosts, &self.early, &self.unexplained];
        wrongs.iter().all(|ids| ids.is_empty()) && self.stuck == 0 && self.confirmed > 0
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { said, confirmed, arrived, deliveries, .. } = self;
        writeln!(
            f,
            "{said} messages said, {confirmed} confirmed; {arrived} are back, {deliveries} times in all"
        )?;
        for (name, ids) in [
            ("LOST", &self.lost),
            ("GHOST", &self.ghosts),
            ("EARLY", &self.early),
            ("UNEXPLAINED", &self.unexplained),
        ] {
            let some: Vec<&str> = ids.iter().take(5).map(String::as_str).collect();
            writeln!(f, "{name} = {} {}", ids.len(), some.join(" "))?;
        }
        let Self { stuck, redelivered, unconfirmed, said_again, .. } = self;
        writeln!(f, "STUCK = {stuck}")?;
        write!(
            f,
            "back once more: {redelivered} that the broker calls redelivered, {unconfirmed} that Redeliver calls possible \
             duplicates, {said_again} that the publisher said again"
        )
    }
}
