//! How spans, waits and bars look on a terminal.

use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Table, presets};
use redeliver_core::policy::{Backoff, Bounds, Jitter};
use redeliver_core::time::show_span;

use crate::logging::wants_colour;

/// A shortest and a longest span, or the one that both are.
pub(super) fn bounds(bounds: Bounds) -> String {
    if bounds.min == bounds.max {
        show_span(bounds.min)
    } else {
        format!("{} – {}", show_span(bounds.min), show_span(bounds.max))
    }
}

/// The waits of a policy in a few words.
pub(super) fn backoff(backoff: &Backoff) -> String {
    match backoff {
        Backoff::Table(entries) => entries.iter().map(|wait| show_span(*wait)).collect::<Vec<_>>().join(", "),
        Backoff::Exponential { base, factor, cap } => {
            format!("{}, times {factor} each, at most {}", show_span(*base), show_span(*cap))
        }
    }
}

/// What jitter does to a wait, in a few words; nothing if it does nothing.
pub(super) fn jitter(jitter: Jitter) -> Option<String> {
    match jitter {
        Jitter::None => None,
        Jitter::Full => Some("anything up to the whole wait".to_owned()),
        Jitter::Share(_) | Jitter::Span(_) => Some(format!("up to {} on top", jitter.show())),
    }
}

/// How many characters a full bar has.
const BAR_WIDTH: usize = 24;

/// A bar on a line that is as long as `whole`: solid up to the shortest span, shaded up to the longest.
pub(super) fn bar(bounds: Bounds, whole: Duration) -> String {
    let cells = |span: Duration| match whole.as_millis() {
        0 => 0,
        whole_ms => (span.as_millis() * BAR_WIDTH as u128).div_ceil(whole_ms) as usize,
    };
    let solid = cells(bounds.min);
    format!("{}{}", "█".repeat(solid), "░".repeat(cells(bounds.max).saturating_sub(solid)))
}

/// A table without lines, its columns two spaces apart and these of them aligned to the right.
pub(super) fn table(header: &[&str], right: &[usize], rows: Vec<Vec<impl Into<Cell>>>) -> String {
    let mut table = Table::new();
    if !wants_colour(&std::io::stdout()) {
        table.force_no_tty();
    }
    table.load_preset(presets::NOTHING).set_header(header).add_rows(rows);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((2, 0));
        if right.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}
