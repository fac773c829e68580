//! The program wrk as a client: it takes less of the two cores than clients in this process do.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, bail};
use tokio::process::Command;

use super::http::Measured;
use super::report::Row;

/// For how long it posts.
const SECONDS: u32 = 8;

/// Posts the same message over so many connections, as fast as it is answered.
pub(super) async fn post(
    address: SocketAddr,
    connections: usize,
    key: &str,
    body: &str,
) -> anyhow::Result<Measured> {
    let mut script = tempfile::NamedTempFile::new().context("cannot write a script for wrk")?;
    script.write_all(lua(key, body).as_bytes()).context("cannot write a script for wrk")?;
    let ran = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{SECONDS}s"), "-s"])
        .arg(script.path())
        .arg(format!("http://{address}/v1/messages"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run wrk; on Debian, apt-get install wrk")?;
    let said = String::from_utf8_lossy(&ran.stdout);
    if !ran.status.success() {
        bail!("wrk failed: {}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    read(&said).with_context(|| format!("wrk said something else than its script has it say: {said}"))
}

/// What wrk is to do, and to say at the end: one line with its figures, times in microseconds.
fn lua(key: &str, body: &str) -> String {
    format!(
        r#"
wrk.method = "POST"
wrk.headers["authorization"] = "Bearer {key}"
wrk.headers["content-type"] = "application/json"
wrk.body = [[{body}]]
function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("figures %d %d %d %d %d %d\n", summary.requests, summary.duration, failed,
    latency:percentile(50), latency:percentile(99), latency.max))
end
"#
    )
}

/// The figures in what wrk has said. An answer that was no success spoils them all.
fn read(said: &str) -> anyhow::Result<Measured> {
    let figures = said.lines().find_map(|line| line.strip_prefix("figures ")).context("it has no figures")?;
    let figures: Vec<f64> = figures.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [requests, duration_us, failed, p50_us, p99_us, max_us] = figures[..] else {
        bail!("it has {} figures instead of 6", figures.len());
    };
    if failed > 0.0 {
        bail!("{failed} requests failed");
    }
    let ms = |us: f64| Some(us / 1_000.0);
    Ok(Measured {
        n: requests as usize,
        rate: requests / (duration_us / 1_000_000.0),
        times: Row { p50_ms: ms(p50_us), p99_ms: ms(p99_us), max_ms: ms(max_us), ..Row::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_failures_spoil_them() {
        let measured = read("Running 8s test\nfigures 16000 8000000 0 1500 9000 20000\n").unwrap();
        assert_eq!((measured.n, measured.rate), (16_000, 2_000.0));
        assert_eq!((measured.times.p50_ms, measured.times.p99_ms), (Some(1.5), Some(9.0)));
        for wrong in ["", "figures 1 2", "figures 16000 8000000 3 1500 9000 20000"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
