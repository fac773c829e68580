//! A network that fails between the server and its clients, and between the server and its database.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

mod process;

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use process::face::{KEY, ROUTES};
use process::{Place, Process, until};
use redeliver_servers::postgres::PostgresServer;
use redeliver_servers::proxy::{Fault, Proxy, Way};

/// Asks a server that runs, and gives the status; 0 without an answer.
fn get(process: &Process, path: &str) -> u16 {
    // Nobody is asked for a certificate here, and still something must stand ready to check one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::blocking::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    let answer = http.get(format!("{}{path}", process.url())).bearer_auth(KEY).send();
    answer.map_or(0, |answer| answer.status().as_u16())
}

#[test]
fn clients_behind_a_network_that_takes_no_answers_lock_nobody_out() {
    // Long enough for a slow machine to ask in between, while all connections are still taken.
    let config = format!("[http]\nconnections_max = 8\nwrite_timeout = \"15s\"\n{ROUTES}");
    let place = Place::new(&config).with_variable("REDELIVER_ADMIN_KEY", KEY);
    let process = place.serve();
    let port = process.url().rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::before(port);
    proxy.set(Way::Down, Fault::Stall);
    let ask_much = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(200);
    let deaf: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
            client.write_all(ask_much.as_bytes()).unwrap();
            client
        })
        .collect();
    until("all connections are taken", || get(&process, "/v1/routes") == 503);
    assert_eq!([get(&process, "/healthz"), get(&process, "/readyz"), get(&process, "/metrics")], [200; 3]);
    until("their connections are free again", || get(&process, "/v1/routes") == 200);
    drop(deaf);
}

#[test]
fn a_database_behind_a_black_hole_is_not_ready_and_is_again_once_it_answers() {
    let server = PostgresServer::start();
    let proxy = Proxy::before(server.port());
    let there = |port: u16| format!(":{port}/");
    let url = server.url("postgres").replace(&there(server.port()), &there(proxy.port()));
    let place =
        Place::new(ROUTES).with_variable("REDELIVER_ADMIN_KEY", KEY).with_variable("DATABASE_URL", url);
    let process = place.serve();
    until("it is ready", || get(&process, "/readyz") == 200);
    assert!(proxy.connections() > 0, "it comes by the proxy");
    proxy.set_both(Fault::BlackHole);
    until("it says that the store is away", || get(&process, "/readyz") == 503);
    assert_eq!(get(&process, "/healthz"), 200);
    proxy.set_both(Fault::None);
    proxy.cut();
    until("it is ready again", || get(&process, "/readyz") == 200);
}
