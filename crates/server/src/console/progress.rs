//! Draws how much of something is done.

use askama::Template;
use askama::filters::HtmlSafe;

/// A bar that fills.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="bar" viewBox="0 0 200 14" preserveAspectRatio="none" role="img" aria-label="{{ label }}"><rect class="ground" width="200" height="14"></rect><rect class="done" width="{{ wide }}" height="14"></rect></svg>"#
)]
pub(super) struct Progress {
    label: String,
    wide: u64,
}

// It is rendered by a template that escapes what is inside.
impl HtmlSafe for Progress {}

impl Progress {
    /// So many of so many.
    pub(super) fn of(done: u64, all: u64) -> Self {
        let wide = (u128::from(done) * 200).checked_div(u128::from(all)).unwrap_or(0).min(200) as u64;
        // What is there is seen, however little it is.
        Self { label: format!("{done} of {all}"), wide: if done > 0 { wide.max(2) } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_it_is_nor_empty_where_something_is_done() {
        for (done, all, wide) in
            [(0, 0, 0), (0, 9, 0), (1, 1_000_000, 2), (3, 4, 150), (9, 4, 200), (u64::MAX, u64::MAX, 200)]
        {
            assert_eq!(Progress::of(done, all).wide, wide, "{done} of {all}");
        }
    }
}
