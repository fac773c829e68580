//! A device service: `GET /devices/{id}` says whether a device is active. Those whose name ends in `-gone` are not.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};

/// Answers on a port of this machine for as long as the process lives.
pub fn serve(port: u16) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // Whoever asked and has gone asks again.
            std::thread::spawn(move || answer(&stream));
        }
    });
    Ok(())
}

fn answer(mut stream: &TcpStream) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let _rest: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = first.split(' ').nth(1).unwrap_or_default();
    let body = format!(r#"{{"active": {}}}"#, !path.ends_with("-gone"));
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes())
}
