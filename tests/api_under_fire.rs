//! Whatever is thrown at the API, it answers, stays up and says what was wrong: by schemathesis, which reads the
//! description and tries everything, and by hand for what no description has.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use story::peer::{Peer, Sink};
use story::root;
use story::server::{KEY, Place, Server};

/// Runs schemathesis with all its checks; it must find nothing.
fn schemathesis(server: &Server, more: &[&str]) {
    let output = Command::new(root().join(".build/peers/bin/schemathesis"))
        .args([
            "run",
            &format!("{}/openapi.json", server.url),
            "--checks",
            "all",
            "--seed",
            "7",
            "--no-color",
        ])
        .args(more)
        .current_dir(std::env::temp_dir())
        .output()
        .expect("schemathesis is there: run scripts/ensure peers first");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let cases = said.lines().find(|line| line.contains("generated")).unwrap_or_default();
    println!("schemathesis {more:?}: {}", cases.trim());
}

#[test]
fn schemathesis_finds_nothing_with_a_key_and_nothing_without() {
    let sink = Sink::new();
    let server =
        Place::outbox(&sink.url()).variable("REDELIVER_LOG__FILTER", "warn,redeliver_cli=info").serve();
    let key = format!("Authorization: Bearer {KEY}");
    // Zones, templates and the order of steps have rules that no schema can say, and what can be corrected in a message
    // depends on what it carries: what fits the schema may still be wrong.
    let beyond = ["create_campaign", "put_settings", "edit_message"];
    let mut all = vec!["--header", key.as_str(), "--max-examples", "30"];
    let mut those = vec!["--header", key.as_str(), "--max-examples", "30"];
    // A dry run begins nothing that could be looked at, paused or stopped afterwards, and what a bulk operation is asked to do
    // is no name of it: it is tried by itself, so that nothing is taken to follow from it.
    let begin = ["--include-operation-id", "begin_bulk", "--header", key.as_str(), "--max-examples", "30"];
    all.extend(["--exclude-operation-id", "begin_bulk"]);
    all.extend(beyond.iter().flat_map(|id| ["--exclude-operation-id", id]));
    those.extend(beyond.iter().flat_map(|id| ["--include-operation-id", id]));
    those.extend(["--exclude-checks", "positive_data_acceptance"]);
    schemathesis(&server, &all);
    schemathesis(&server, &those);
    schemathesis(&server, &begin);
    schemathesis(&server, &["--max-examples", "10"]);
    let log = server.stop();
    assert!(!log.contains("panicked") && !log.contains(KEY), "{log}");
}

/// Sends bytes and reads until the server hangs up or is silent for a while.
fn say(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may have heard enough before everything is said.
    let _ = stream.write_all(bytes);
    let mut heard = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count) = stream.read(&mut chunk) {
        heard.extend_from_slice(&chunk[..count]);
        if count == 0 || heard.windows(4).any(|four| four == b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&heard).lines().next().unwrap_or_default().to_owned()
}

fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn what_no_client_should_say_is_refused_and_everybody_else_is_served() {
    let sink = Sink::new();
    let server = Place::outbox(&sink.url()).variable("REDELIVER_HTTP__HEADER_TIMEOUT", "1s").serve();
    let many_headers: String = (0..10_000).map(|n| format!("x-{n}: y\r\n")).collect();
    let long_header = format!("x-long: {}\r\n", "y".repeat(1 << 20));
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let huge = vec![b'x'; 11 << 20];
    // A zip bomb is never unpacked, because nothing is.
    let zipped = "content-encoding: gzip\r\n";
    let check = |what: &str, bytes: &[u8], statuses: &[&str]| {
        let heard = say(&server, bytes);
        assert!(statuses.iter().any(|status| heard.contains(status)), "{what}: {heard:?}");
        assert_eq!(server.get("/v1/stats").status, 200, "after {what}");
    };
    check("10,000 headers", &post(&many_headers, b"{}"), &["431", "400"]);
    check("a header of a megabyte", &post(&long_header, b"{}"), &["431", "400"]);
    check("deep JSON", &post("", &deep), &["400", "422"]);
    check("a huge body", &post("", &huge), &["413"]);
    check("a packed body", &post(zipped, b"\x1f\x8b\x08"), &["415"]);
    check("two lengths", &post("content-length: 7\r\n", b"{}"), &["400"]);
    check("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", &["400"]);
    check("NUL in the path", b"GET /v1/\0 HTTP/1.1\r\nhost: x\r\n\r\n", &["400"]);
    assert_eq!(
        say(&server, b"GET /v1/stats HTTP/1.1\r\nhost: x\r\nx-slow"),
        "",
        "a head that never ends is cut"
    );
    let log = server.stop();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn a_thousand_connections_that_say_nothing_keep_nobody_out() {
    let sink = Sink::new();
    let server = Place::outbox(&sink.url()).variable("REDELIVER_HTTP__HEADER_TIMEOUT", "2s").serve();
    let address = server.url.trim_start_matches("http://");
    let idle: Vec<TcpStream> = (0..1_000).filter_map(|_| TcpStream::connect(address).ok()).collect();
    let mail = json!({ "route": "email", "email": {
        "from": "a@example.org", "to": "b@example.org", "subject": "through", "text": "the crowd" } });
    assert_eq!(server.post("/v1/messages", &mail).status, 201);
    assert_eq!(sink.wait_for(1).len(), 1);
    drop(idle);
    server.stop();
}
