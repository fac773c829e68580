//! How many messages of each route and priority stand where, drawn as bars; for whoever reaches all workspaces.

use std::collections::BTreeMap;

use askama::Template;
use askama::filters::HtmlSafe;
use redeliver_core::{Lane, Name, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::{Count, StoreError};

use super::emails::visible;
use super::link;
use super::moment::Moment;

/// How wide a bar is, in units of its own.
const WIDTH: u64 = 240;

/// One priority of one route.
pub(super) struct Row {
    pub(super) route: String,
    pub(super) lane: &'static str,
    pub(super) href: String,
    pub(super) bar: Bar,
    pub(super) due: u64,
    pub(super) later: u64,
    pub(super) held: u64,
    pub(super) dead: u64,
    pub(super) oldest: Option<Moment>,
}

#[derive(Copy, Clone, Default)]
struct Amounts {
    due: u64,
    later: u64,
    held: u64,
    dead: u64,
}

/// Due, later, held and dead, side by side.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="bar" viewBox="0 0 240 14" preserveAspectRatio="none" role="img" aria-label="{{ label }}">
<rect class="ground" x="0" y="2" width="240" height="10" rx="3"></rect>
{%- for (class, x, wide) in parts %}<rect class="{{ class }}" x="{{ x }}" y="2" width="{{ wide }}" height="10"></rect>{% endfor %}</svg>"#
)]
pub(super) struct Bar {
    label: String,
    parts: Vec<(&'static str, u64, u64)>,
}

// It is rendered by a template that escapes what is inside.
impl HtmlSafe for Bar {}

/// The priorities that have something to show, each with its bar against the longest.
pub(super) async fn rows(engine: &Engine, counts: &[Count], now: Timestamp) -> Result<Vec<Row>, StoreError> {
    let mut lanes: BTreeMap<(Name, Lane), Amounts> = BTreeMap::new();
    for count in counts {
        let amounts = lanes.entry((count.route.clone(), count.lane)).or_default();
        match count.state {
            "waiting" => {
                amounts.due += count.due;
                amounts.held += count.parked;
                amounts.later += count.count.saturating_sub(count.due + count.parked);
            }
            "dead" => amounts.dead += count.count,
            _ => {}
        }
    }
    lanes.retain(|_, amounts| amounts.sum() > 0);
    let most = lanes.values().map(|amounts| amounts.sum()).max().unwrap_or(1);
    let mut rows = Vec::with_capacity(lanes.len());
    for ((route, lane), amounts) in lanes {
        let first = engine.store().next_due_at(route.clone(), lane).await?;
        rows.push(Row {
            href: link::with(link::MESSAGES, &[("route", &route), ("priority", lane.name())]),
            route: visible(&route),
            lane: lane.name(),
            bar: Bar::of(amounts, most),
            due: amounts.due,
            later: amounts.later,
            held: amounts.held,
            dead: amounts.dead,
            oldest: first.filter(|at| *at <= now).map(|at| Moment::from_now(at, now)),
        });
    }
    Ok(rows)
}

impl Amounts {
    fn sum(self) -> u64 {
        self.due + self.later + self.held + self.dead
    }
}

impl Bar {
    fn of(amounts: Amounts, most: u64) -> Self {
        let Amounts { due, later, held, dead } = amounts;
        let label = format!("{due} due, {later} later, {held} held, {dead} dead");
        let (mut parts, mut x) = (Vec::new(), 0);
        for (class, count) in [("due", due), ("later", later), ("held", held), ("dead", dead)] {
            // What is there is seen, however little it is.
            let wide = if count == 0 { 0 } else { (count * WIDTH / most.max(1)).clamp(2, WIDTH) };
            let wide = wide.min(WIDTH - x);
            if wide > 0 {
                parts.push((class, x, wide));
            }
            x += wide;
        }
        Self { label, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_least_and_never_leaves_its_ground() {
        let bar = Bar::of(Amounts { due: 1, later: 1_000_000, held: 1, dead: 1 }, 1_000_003);
        assert_eq!(bar.parts.first(), Some(&("due", 0, 2)));
        assert!(bar.parts.iter().all(|(_, x, wide)| x + wide <= WIDTH), "{:?}", bar.parts);
        assert_eq!(Bar::of(Amounts::default(), 0).parts, []);
    }
}
