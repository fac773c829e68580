//! What a benchmark says: a line of JSON for each job, or a table at the end, with progress on the way.

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::commands::print;

/// What one job came to. What doesn't apply is null.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) job: String,
    /// Messages.
    pub(super) n: usize,
    /// Messages a second.
    pub(super) rate: Option<f64>,
    /// What it is held against, in messages a second.
    pub(super) ceiling: Option<f64>,
    /// `rate / ceiling`.
    pub(super) ratio: Option<f64>,
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) max_ms: Option<f64>,
    /// Memory of this process when the job was done.
    pub(super) rss_mib: Option<f64>,
    /// What a database wrote to its log for each message.
    pub(super) wal_bytes: Option<f64>,
}

impl Row {
    /// A rate, beside what it is held against.
    pub(super) fn rate(job: &str, n: usize, rate: f64, ceiling: Option<f64>) -> Self {
        let ratio = ceiling.map(|ceiling| round(rate / ceiling, 1_000.0));
        let (rate, ceiling) = (Some(rate.round()), ceiling.map(f64::round));
        Self { job: job.to_owned(), n, rate, ceiling, ratio, rss_mib: rss_mib(), ..Self::default() }
    }

    /// Times, sorted, in milliseconds.
    pub(super) fn times(job: &str, sorted_ms: &[f64]) -> Self {
        let at = |share: f64| {
            let index = ((sorted_ms.len() as f64 * share) as usize).min(sorted_ms.len().saturating_sub(1));
            sorted_ms.get(index).map(|ms| round(*ms, 100.0))
        };
        Self {
            job: job.to_owned(),
            n: sorted_ms.len(),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
            rss_mib: rss_mib(),
            ..Self::default()
        }
    }
}

/// What the jobs came to so far.
pub(super) struct Report {
    json: bool,
    rows: Vec<Row>,
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self { json, rows: Vec::new() }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// A bar for one job, on the terminal only.
    pub(super) fn bar(&self, job: &'static str, length: usize) -> ProgressBar {
        let target = if self.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{msg:20} {bar:30} {human_pos}/{human_len} {per_sec}");
        let bar = ProgressBar::with_draw_target(Some(length as u64), target).with_message(job);
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    pub(super) fn add(&mut self, row: Row) -> anyhow::Result<()> {
        if self.json {
            print(&format!("{}\n", serde_json::to_string(&row)?))?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// The table, for people.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header([
            "job",
            "messages",
            "per second",
            "bare store",
            "ratio",
            "p50 ms",
            "p99 ms",
            "max ms",
            "MiB",
            "WAL bytes",
        ]);
        for row in &self.rows {
            let whole =
                |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"));
            let fine =
                |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
            table.add_row([
                row.job.clone(),
                row.n.to_string(),
                whole(row.rate),
                whole(row.ceiling),
                fine(row.ratio),
                fine(row.p50_ms),
                fine(row.p99_ms),
                fine(row.max_ms),
                whole(row.rss_mib),
                whole(row.wal_bytes),
            ]);
        }
        for column in 1..10 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        print(&format!(
            "{table}\nThe bare store is measured in the same run; for backlog it is the drain without one, for instances the drain of \
             one. A list's times are those of its slowest filter.\n"
        ))
    }
}

fn round(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

/// The memory that this process has in use, in MiB.
fn rss_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(round(kib / 1_024.0, 10.0))
}
