//! When a workspace lets mails out, how many and how far apart; and a campaign, which only narrows that.

use serde::{Deserialize, Serialize};

use super::{Found, Problem};
use crate::calendar::{Calendar, ClosedDates, Days, Opening, TimeOfDay, Weekday, Window, Zone};
use crate::quota::{Period, Quota, RampUp, Spacing, Urgency, Whose};
use crate::time::parse_span;

/// The most intervals, and the most closed dates or ranges of them.
const INTERVALS_MAX: usize = 50;
const DATES_MAX: usize = 1_000;

/// Settings as they are written. What isn't said narrows nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The days of the week; every day if it doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// From when on each of these days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Until when; before `start`, it is a time of the next day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Several intervals, instead of `start` and `end`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// The IANA zone; a campaign's is its workspace's if it doesn't say, and a workspace's UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Dates on which nothing goes out: `2026-12-25`, or `12-25` for every year.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holidays: Vec<String>,
    /// Dates and ranges of dates on which nothing goes out, such as `2026-12-24..2027-01-01`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<String>,
    /// Mails on each local day, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_quota: Option<u32>,
    /// The same of each sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_quota: Option<u32>,
    /// What the quotas count: a civil `day`, or any 24 hours (`rolling`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_period: Option<String>,
    /// How `daily_quota` begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp_up: Option<WrittenRampUp>,
    /// What of `daily_quota` is kept for urgent mail, such as `10%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgent_share: Option<String>,
    /// The shortest and the longest distance between two mails of a sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spacing: Option<(String, String)>,
}

/// One interval of a day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The days on which it begins; those of the settings if it doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// From when.
    pub start: String,
    /// Until when.
    pub end: String,
}

/// A ramp-up as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum WrittenRampUp {
    /// `{ "start": 20, "step": 20 }`
    Linear {
        /// On the first sending day.
        start: u32,
        /// What each sending day adds.
        step: u32,
    },
    /// `{ "start": 20, "factor": 1.5 }`
    Geometric {
        /// On the first sending day.
        start: u32,
        /// What each sending day is multiplied by.
        factor: f64,
    },
    /// `[20, 50, 100]`
    Table(Vec<u32>),
}

/// When, how many and how far apart, for one campaign of a workspace.
#[derive(Clone, Debug, PartialEq)]
pub struct Sending {
    /// When: its workspace's window and its own, both open.
    pub calendar: Calendar,
    /// The zone that its days are counted in: its own, or its workspace's.
    pub zone: Zone,
    /// How many: each quota with whose mails it counts, and the zone of its days.
    pub quotas: Vec<(Whose, Quota, Zone)>,
    /// How far apart.
    pub spacing: Spacing,
    /// Whether the mails may use what is kept for urgent ones.
    pub urgency: Urgency,
}

/// One set of settings, understood.
struct Read {
    window: Option<Window>,
    zone: Zone,
    quota: Option<Quota>,
    sender_quota: Option<Quota>,
    spacing: Option<Spacing>,
}

impl Sending {
    /// What a workspace's settings and a campaign's come to together; or everything that is wrong with them, the
    /// campaign's fields under `settings`.
    pub fn new(workspace: &Settings, campaign: Option<&Settings>) -> Result<Self, Vec<Problem>> {
        let mut found = Found::default();
        let outer = workspace.read("", &Zone::utc(), &mut found);
        let inner = campaign.map(|own| own.read("settings.", &outer.zone, &mut found));
        if !found.0.is_empty() {
            return Err(found.0);
        }
        let always = || Opening { days: Days::ALL, start: TimeOfDay::BEGIN, end: TimeOfDay::END };
        let whole = Window::new(vec![always()], outer.zone.clone(), ClosedDates::default());
        let own = inner.as_ref().and_then(|read| read.window.clone());
        let zone = inner.as_ref().map_or(&outer, |read| read).zone.clone();
        let mut windows: Vec<Window> = outer.window.into_iter().chain(own).collect();
        if windows.is_empty() {
            windows.extend(found.take("zone", whole));
        }
        let Some(calendar) = found.take("days", Calendar::new(windows)) else { return Err(found.0) };
        let mut quotas = Vec::new();
        let mut add = |whose, quota: Option<Quota>, zone: &Zone| {
            quotas.extend(quota.map(|quota| (whose, quota, zone.clone())));
        };
        add(Whose::Workspace, outer.quota, &outer.zone);
        add(Whose::Sender, outer.sender_quota, &outer.zone);
        let mut spacing = outer.spacing;
        if let Some(inner) = inner {
            add(Whose::Campaign, inner.quota, &inner.zone);
            add(Whose::Sender, inner.sender_quota, &inner.zone);
            spacing = match (spacing, inner.spacing) {
                (Some(outer), Some(inner)) => Some(outer.narrowed_by(inner)),
                (outer, inner) => outer.or(inner),
            };
        }
        let spacing = spacing.unwrap_or(Spacing::USUAL);
        Ok(Self { calendar, zone, quotas, spacing, urgency: Urgency::Ordinary })
    }
}

impl Settings {
    /// Everything that is wrong with them alone.
    pub fn problems(&self) -> Vec<Problem> {
        Sending::new(self, None).err().unwrap_or_default()
    }

    fn read(&self, prefix: &str, zone: &Zone, found: &mut Found) -> Read {
        let field = |name: &str| format!("{prefix}{name}");
        let zone = match &self.zone {
            Some(name) => found.take(&field("zone"), name.parse()).unwrap_or_else(|| zone.clone()),
            None => zone.clone(),
        };
        let spacing = self.spacing.as_ref().and_then(|(min, max)| {
            let min = found.take(&field("spacing[0]"), parse_span(min))?;
            let max = found.take(&field("spacing[1]"), parse_span(max))?;
            let spacing = Spacing { min, max };
            found.take(&field("spacing"), spacing.check()).map(|()| spacing)
        });
        let openings = self.openings(prefix, found);
        let shortest = spacing.unwrap_or(Spacing::USUAL).max;
        if let Some(short) = openings.iter().flatten().find(|opening| opening.length() < shortest) {
            let (start, end) = (short.start, short.end);
            found.note(field("spacing"), format!("is longer than the interval from {start} to {end}"));
        }
        let closed = self.closed(prefix, found);
        let window = (openings.is_some() || closed.as_ref().is_some_and(|closed| !closed.is_empty()))
            .then(|| {
                let whole = Opening { days: Days::ALL, start: TimeOfDay::BEGIN, end: TimeOfDay::END };
                let openings = openings.unwrap_or_else(|| vec![whole]);
                found.take(&field("start"), Window::new(openings, zone.clone(), closed.unwrap_or_default()))
            })
            .flatten();
        let (quota, sender_quota) = self.quotas(prefix, found);
        Read { window, zone, quota, sender_quota, spacing }
    }

    /// Its intervals; none if it says nothing about days or hours.
    fn openings(&self, prefix: &str, found: &mut Found) -> Option<Vec<Opening>> {
        let field = |name: &str| format!("{prefix}{name}");
        let days = read_days(self.days.as_deref(), &field("days"), Days::ALL, found);
        if self.intervals.len() > INTERVALS_MAX {
            found.note(field("intervals"), format!("must be at most {INTERVALS_MAX}"));
        }
        let hours = match (&self.start, &self.end) {
            (Some(start), Some(end)) => read_opening(days, start, end, prefix, found),
            (None, None) => None,
            _ => {
                found.note(field("start"), "start and end are said together, or not at all");
                None
            }
        };
        let mut openings: Vec<Opening> = hours.into_iter().collect();
        for (i, interval) in self.intervals.iter().take(INTERVALS_MAX).enumerate() {
            let name = field(&format!("intervals[{i}]."));
            let days = read_days(interval.days.as_deref(), &format!("{name}days"), days, found);
            openings.extend(read_opening(days, &interval.start, &interval.end, &name, found));
        }
        if openings.is_empty() && self.days.is_some() && !days.is_empty() {
            openings.push(Opening { days, start: TimeOfDay::BEGIN, end: TimeOfDay::END });
        }
        (!openings.is_empty()).then_some(openings)
    }

    fn closed(&self, prefix: &str, found: &mut Found) -> Option<ClosedDates> {
        let (holidays, blackouts) = (&self.holidays, &self.blackouts);
        if holidays.len() + blackouts.len() > DATES_MAX {
            found.note(format!("{prefix}holidays"), format!("must be at most {DATES_MAX}"));
            return None;
        }
        for (name, dates) in [("holidays", holidays), ("blackouts", blackouts)] {
            for (i, date) in dates.iter().enumerate() {
                found.take(&format!("{prefix}{name}[{i}]"), ClosedDates::parse([date.as_str()]));
            }
        }
        ClosedDates::parse(holidays.iter().chain(blackouts).map(String::as_str)).ok()
    }

    fn quotas(&self, prefix: &str, found: &mut Found) -> (Option<Quota>, Option<Quota>) {
        let field = |name: &str| format!("{prefix}{name}");
        let period = match self.quota_period.as_deref() {
            None | Some("day") => Period::Day,
            Some("rolling") => Period::Rolling,
            Some(other) => {
                found.note(field("quota_period"), format!("is day or rolling, not {other:?}"));
                Period::Day
            }
        };
        let ramp_up = self.ramp_up.clone().map(RampUp::from);
        if let Some(ramp_up) = &ramp_up {
            found.take(&field("ramp_up"), ramp_up.check());
        }
        let share = self.urgent_share.as_deref().map(parse_share);
        let urgent_share = share.and_then(|share| found.take(&field("urgent_share"), share)).unwrap_or(0);
        let mut quota = |name: &str, limit: Option<u32>, ramp_up: Option<RampUp>, urgent_share| {
            let limit = limit.or(ramp_up.as_ref().map(|_| u32::MAX))?;
            let quota = Quota { limit, period, ramp_up, urgent_share };
            found.take(&field(name), quota.check()).map(|()| quota)
        };
        let daily = quota("daily_quota", self.daily_quota, ramp_up, urgent_share);
        (daily, quota("sender_quota", self.sender_quota, None, 0))
    }
}

/// The days of these names, or those that stand in where nothing is said.
fn read_days(names: Option<&[String]>, field: &str, default: Days, found: &mut Found) -> Days {
    let Some(names) = names else { return default };
    if names.is_empty() {
        found.note(field, "is empty: the window never opens");
    }
    names.iter().filter_map(|name| found.take(field, Weekday::from_name(name))).collect()
}

fn read_opening(days: Days, start: &str, end: &str, prefix: &str, found: &mut Found) -> Option<Opening> {
    let start: Option<TimeOfDay> = found.take(&format!("{prefix}start"), start.parse());
    let end: Option<TimeOfDay> = found.take(&format!("{prefix}end"), end.parse());
    let (start, end) = (start?, end?);
    if days.is_empty() {
        return None;
    }
    let opening = Opening { days, start, end };
    found.take(&format!("{prefix}start"), opening.check()).map(|()| opening)
}

/// Thousandths.
fn parse_share(text: &str) -> Result<u16, String> {
    let percent: Option<f64> = text.trim().strip_suffix('%').and_then(|share| share.trim().parse().ok());
    match percent {
        Some(percent) if (0.0..=90.0).contains(&percent) => Ok((percent * 10.0).round() as u16),
        _ => Err(format!("is a share from 0% to 90%, not {text:?}")),
    }
}

impl From<WrittenRampUp> for RampUp {
    fn from(written: WrittenRampUp) -> Self {
        match written {
            WrittenRampUp::Linear { start, step } => Self::Linear { start, step },
            WrittenRampUp::Geometric { start, factor } => Self::Geometric { start, factor },
            WrittenRampUp::Table(days) => Self::Table(days),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Timestamp;

    fn settings(json: &str) -> Settings {
        serde_json::from_str(json).unwrap()
    }

    fn wrong(workspace: &str, campaign: Option<&str>) -> Vec<(String, String)> {
        let sending = Sending::new(&settings(workspace), campaign.map(settings).as_ref());
        sending.unwrap_err().into_iter().map(|problem| (problem.field, problem.problem)).collect()
    }

    fn next_open(sending: &Sending, after: &str) -> String {
        sending.calendar.next_open(after.parse::<Timestamp>().unwrap()).unwrap().to_string()
    }

    #[test]
    fn settings_as_the_api_has_them_are_understood() {
        let sending = Sending::new(
            &settings(
                r#"{ "days": ["mon","tue"], "start": "09:00", "end": "17:00", "zone": "Europe/Paris", "daily_quota": 200,
                     "ramp_up": { "start": 20, "step": 20 }, "spacing": ["30s","90s"], "holidays": ["2026-12-25"] }"#,
            ),
            None,
        )
        .unwrap();
        assert_eq!(next_open(&sending, "2026-11-18T00:00:00Z"), "2026-11-23T08:00:00.000Z");
        assert_eq!(sending.zone.name(), "Europe/Paris");
        assert_eq!(sending.spacing, Spacing::USUAL);
        let quota = Quota { ramp_up: Some(RampUp::Linear { start: 20, step: 20 }), ..Quota::daily(200) };
        assert_eq!(sending.quotas, [(Whose::Workspace, quota, sending.zone.clone())]);
    }

    #[test]
    fn nothing_said_is_always_open_and_keeps_the_usual_distance() {
        let sending = Sending::new(&Settings::default(), None).unwrap();
        assert_eq!(next_open(&sending, "2026-11-18T03:04:05Z"), "2026-11-18T03:04:05.000Z");
        assert_eq!((sending.quotas.len(), sending.spacing), (0, Spacing::USUAL));
    }

    #[test]
    fn a_campaign_narrows_and_cannot_widen() {
        let workspace = settings(
            r#"{ "start": "09:00", "end": "17:00", "zone": "Europe/Paris", "daily_quota": 10, "sender_quota": 5,
                 "spacing": ["60s","60s"] }"#,
        );
        let campaign = settings(
            r#"{ "start": "08:00", "end": "12:00", "daily_quota": 100, "spacing": ["30s","90s"], "ramp_up": [1, 2] }"#,
        );
        let sending = Sending::new(&workspace, Some(&campaign)).unwrap();
        assert_eq!(next_open(&sending, "2026-11-18T00:00:00Z"), "2026-11-18T08:00:00.000Z");
        assert_eq!(next_open(&sending, "2026-11-18T11:00:00Z"), "2026-11-19T08:00:00.000Z");
        let s = Duration::from_secs;
        assert_eq!(sending.spacing, Spacing { min: s(60), max: s(90) });
        let limits: Vec<(Whose, u32)> =
            sending.quotas.iter().map(|(whose, quota, _)| (*whose, quota.limit)).collect();
        assert_eq!(limits, [(Whose::Workspace, 10), (Whose::Sender, 5), (Whose::Campaign, 100)]);
        // A zone of its own is for its own hours; the workspace's stay where they are.
        let abroad = settings(r#"{ "start": "08:00", "end": "12:00", "zone": "America/New_York" }"#);
        let sending = Sending::new(&workspace, Some(&abroad)).unwrap();
        assert_eq!(next_open(&sending, "2026-11-18T00:00:00Z"), "2026-11-18T13:00:00.000Z");
        assert_eq!(sending.zone.name(), "America/New_York");
    }

    #[test]
    fn an_empty_window_is_a_clear_error_at_once() {
        let check = |workspace: &str, campaign: Option<&str>, field: &str, words: &str| {
            let all = wrong(workspace, campaign);
            assert!(all.iter().any(|(at, what)| at == field && what.contains(words)), "{all:?}");
        };
        check(r#"{ "days": [] }"#, None, "days", "never opens");
        check(r#"{ "start": "09:00", "end": "09:00" }"#, None, "start", "is empty");
        check(r#"{ "days": ["mon"] }"#, Some(r#"{ "days": ["tue"] }"#), "days", "no time in common");
        check(
            r#"{}"#,
            Some(r#"{ "intervals": [{ "days": [], "start": "1:00", "end": "2:00" }] }"#),
            "settings.intervals[0].days",
            "never opens",
        );
    }

    #[test]
    fn everything_that_is_wrong_is_found_at_once_and_named() {
        let all = wrong(
            r#"{ "days": ["mon","friday"], "start": "25:00", "end": "x", "zone": "Mars", "holidays": ["2026-12-25","soon"],
                 "blackouts": ["2026-02-30"], "daily_quota": 0, "quota_period": "week", "ramp_up": [3,2],
                 "urgent_share": "95%", "spacing": ["90s","30s"] }"#,
            Some(r#"{ "start": "09:00", "spacing": ["1s","soon"], "sender_quota": 0 }"#),
        );
        let fields: Vec<&str> = all.iter().map(|(field, _)| field.as_str()).collect();
        for field in [
            "zone",
            "spacing",
            "days",
            "start",
            "end",
            "holidays[1]",
            "blackouts[0]",
            "quota_period",
            "ramp_up",
            "urgent_share",
            "daily_quota",
            "settings.spacing[1]",
            "settings.start",
            "settings.sender_quota",
        ] {
            assert!(fields.contains(&field), "{field} in {all:?}");
        }
        assert!(serde_json::from_str::<Settings>(r#"{ "day": ["mon"] }"#).is_err());
        assert!(
            serde_json::from_str::<Settings>(r#"{ "ramp_up": { "start": 1, "factor": 2, "step": 3 } }"#)
                .is_err()
        );
    }

    #[test]
    fn an_interval_that_is_shorter_than_the_distance_is_refused() {
        let all = wrong(r#"{ "start": "09:00", "end": "09:01" }"#, None);
        assert_eq!(all[0].1, "is longer than the interval from 09:00 to 09:01");
        let night = settings(r#"{ "start": "23:59", "end": "00:01" }"#);
        assert_eq!(night.problems(), []);
    }
}
