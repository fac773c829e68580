//! Mails over a network that fails.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_servers::proxy::Way;
use serde_json::{Value, json};

use crate::faults::{Kind, Lane, Subject, fail_all, outbound};
use crate::story::peer::{Peer, Sink};

/// In the middle of a command, of a mail's header, and of every answer, that to the whole mail included.
const CUTS: [(Way, usize); 9] = [
    (Way::Up, 1),
    (Way::Up, 40),
    (Way::Up, 300),
    (Way::Down, 1),
    (Way::Down, 20),
    (Way::Down, 40),
    (Way::Down, 60),
    (Way::Down, 80),
    (Way::Down, 100),
];

fn relay(lane: &Lane) -> String {
    let (timeout, port) = (lane.kind.timeout(), lane.proxy.port());
    format!(
        r#"kind = "smtp"
url = "smtp://127.0.0.1:{port}"
connect_timeout = "{timeout}"
command_timeout = "{timeout}"
data_timeout = "{timeout}"
idle_timeout = "30m"
connections_max = 2
"#
    )
}

fn mail(lane: &Lane, n: usize) -> Value {
    let (name, key) = (lane.kind.name(), format!("{}-{n}", lane.kind.name()));
    let to = format!("{key}@example.net");
    json!({ "route": name, "key": key,
            "email": { "from": "desk@example.org", "to": to, "subject": "Hello", "text": "It works." } })
}

#[test]
fn mails_end_with_few_copies_whatever_the_network_does() {
    let sink = Sink::new();
    let lanes = Lane::all(sink.port(), &CUTS, Duration::from_secs(3));
    let subject = Subject::start(&outbound(&lanes, false, relay));
    fail_all(
        &lanes,
        |lane, numbers| subject.accept(&numbers.map(|n| mail(lane, n)).collect()),
        |lane, count| subject.settled(lane.kind.name(), count),
    );
    let mut copies: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for got in sink.mails() {
        let (key, _) = got.to[0].split_once('@').unwrap();
        let (route, _) = key.rsplit_once('-').unwrap();
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == route).unwrap();
        *copies.entry(kind.name()).or_default().entry(key.to_owned()).or_default() += 1;
    }
    for kind in Kind::ALL {
        subject.judge(kind.name(), &copies[kind.name()]);
    }
    subject.end();
}
