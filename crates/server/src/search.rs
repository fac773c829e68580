//! Reads which messages somebody wants, from what stands behind the question mark.

use std::time::Duration;

use redeliver_core::status::Status;
use redeliver_core::time::parse_span;
use redeliver_core::{Lane, Timestamp};
use redeliver_engine::search::Search;
use redeliver_engine::store::{Filter, StatusAt};

use crate::auth::Caller;
use crate::input::{Params, query};

/// What whoever asks wants. `None` if it is about what they may not know of.
pub fn read(params: &mut Params, caller: &Caller, now: Timestamp) -> Option<Search> {
    let status =
        params.get("status", |word| query::word(word, Status::from_name, &Status::ALL.map(Status::name)));
    let lane = |word: &str| query::word(word, Lane::from_name, &Lane::ALL.map(Lane::name));
    let asked = params.text("workspace");
    let may = asked.as_deref().is_none_or(|asked| caller.reaches(asked));
    let search = Search {
        filter: Filter {
            workspace: asked.map(Into::into).or_else(|| caller.workspace.clone()),
            route: params.text("route").map(Into::into),
            lane: params.get("priority", lane).or(params.get("lane", lane)),
            status: status.map(|status| StatusAt { status, now }),
            key: params.text("key").map(Into::into),
            with_dismissed: params.get("with_dismissed", query::flag).unwrap_or_default(),
            ..Filter::default()
        },
        since: params.get("since", |text| time(text, now)),
        before: params.get("before", |text| time(text, now)),
        recipient: params.get("recipient", words),
        error: params.get("error", words),
        fingerprint: params.text("fingerprint"),
    };
    may.then_some(search)
}

/// A time as it is written, or how long ago it was.
pub(crate) fn time(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let bad =
        || format!("is a time such as 2026-12-01T09:00:00Z, or how long ago, such as 24h; not {text:?}");
    // A bare 0 is a span elsewhere. Here it might as well be a time.
    if text == "0" {
        return Err(bad());
    }
    let ago = |span: Duration| now.minus(span);
    text.parse().or_else(|_| parse_span(text).map(ago)).map_err(|_| bad())
}

fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("is empty".to_owned()),
        text => Ok(text.to_lowercase()),
    }
}
