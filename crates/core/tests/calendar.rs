//! Windows in the zones and on the days that are known to trip calendars.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::calendar::{Calendar, CalendarError, ClosedDates, Days, Opening, Weekday, Window, Zone};

/// A window such as `mon fri 09:00 12:00, every 22:00 02:00`.
fn window(text: &str, zone: &str, closed: &[&str]) -> Window {
    let opening = |text: &str| {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let (end, start) = (words.pop().unwrap().parse().unwrap(), words.pop().unwrap().parse().unwrap());
        let days = match words.as_slice() {
            ["every"] => Days::ALL,
            names => names.iter().map(|name| Weekday::from_name(name).unwrap()).collect(),
        };
        Opening { days, start, end }
    };
    let closed = ClosedDates::parse(closed.iter().copied()).unwrap();
    Window::new(text.split(',').map(opening).collect(), zone.parse().unwrap(), closed).unwrap()
}

fn calendar(text: &str, zone: &str) -> Calendar {
    Calendar::new(vec![window(text, zone, &[])]).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Asks for the next opening after one time and compares it with another, both written with their offsets.
fn check(calendar: &Calendar, after: &str, open: &str) {
    let found = calendar.next_open(at(after)).map(|found| found.to_string());
    assert_eq!(found, Some(at(open).to_string()), "after {after}");
}

#[test]
fn a_working_week_opens_in_the_morning_and_ends_on_friday() {
    let week = calendar("mon tue wed thu fri 09:00 17:00", "Europe/Paris");
    check(&week, "2026-11-16T08:59:59+01:00", "2026-11-16T09:00:00+01:00");
    check(&week, "2026-11-16T12:00:00+01:00", "2026-11-16T12:00:00+01:00");
    check(&week, "2026-11-16T17:00:00+01:00", "2026-11-17T09:00:00+01:00");
    check(&week, "2026-11-20T17:00:00+01:00", "2026-11-23T09:00:00+01:00");
    // Over the weekend on which summer begins: a morning is a morning, not 72 hours later.
    check(&week, "2026-03-27T17:00:00+01:00", "2026-03-30T09:00:00+02:00");
}

#[test]
fn several_intervals_leave_the_time_between_them_closed() {
    let day = calendar("every 09:00 12:00, every 13:00 17:00, sat 18:00 20:00", "UTC");
    check(&day, "2026-11-16T12:00:00Z", "2026-11-16T13:00:00Z");
    check(&day, "2026-11-16T17:00:00Z", "2026-11-17T09:00:00Z");
    check(&day, "2026-11-21T17:00:00Z", "2026-11-21T18:00:00Z");
    let open = day.open_time(at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
    assert_eq!(open, Duration::from_secs((7 * 7 + 2) * 3_600));
}

#[test]
fn an_overnight_interval_belongs_to_the_day_on_which_it_begins() {
    let night = calendar("fri 22:00 02:00", "UTC");
    check(&night, "2026-11-20T21:59:00Z", "2026-11-20T22:00:00Z");
    check(&night, "2026-11-21T01:59:59Z", "2026-11-21T01:59:59Z");
    check(&night, "2026-11-21T02:00:00Z", "2026-11-27T22:00:00Z");
    check(&night, "2026-11-20T01:00:00Z", "2026-11-20T22:00:00Z");
    assert_eq!(
        night.open_time(at("2026-11-20T00:00:00Z"), at("2026-11-22T00:00:00Z")),
        Duration::from_secs(4 * 3_600)
    );
}

#[test]
fn a_closed_date_closes_what_begins_on_it_and_what_lasts_into_it() {
    let night = Calendar::new(vec![window("every 22:00 02:00", "UTC", &["2026-12-25"])]).unwrap();
    let closes = |text: &str| assert!(!night.is_open(at(text)), "{text}");
    assert!(night.is_open(at("2026-12-24T23:59:00Z")));
    closes("2026-12-25T00:00:00Z");
    closes("2026-12-25T23:00:00Z");
    closes("2026-12-26T01:00:00Z");
    check(&night, "2026-12-25T00:00:00Z", "2026-12-26T22:00:00Z");
    let yearly =
        Calendar::new(vec![window("every 09:00 10:00", "UTC", &["12-25", "2026-12-26..2026-12-31"])])
            .unwrap();
    check(&yearly, "2026-12-25T00:00:00Z", "2027-01-01T09:00:00Z");
    check(&yearly, "2031-12-24T10:00:00Z", "2031-12-26T09:00:00Z");
}

#[test]
fn what_a_gap_leaves_out_does_not_open_that_day() {
    // Summer began at midnight: the first hour of the day was never shown.
    let first_hour = calendar("every 00:00 01:00", "America/Sao_Paulo");
    check(&first_hour, "2018-11-03T12:00:00-03:00", "2018-11-05T00:00:00-02:00");
    let early = calendar("every 00:00 03:00", "America/Sao_Paulo");
    check(&early, "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00");
    check(&calendar("every 00:00 03:00", "Asia/Beirut"), "2022-03-26T12:00:00Z", "2022-03-27T01:00:00+03:00");
    // Half of the night hour: from 02:00 to 02:30.
    let lord_howe = calendar("every 02:00 03:00", "Australia/Lord_Howe");
    check(&lord_howe, "2026-10-03T12:00:00Z", "2026-10-04T02:30:00+11:00");
    let open = lord_howe.open_time(at("2026-10-03T14:00:00Z"), at("2026-10-04T10:00:00Z"));
    assert_eq!(open, Duration::from_secs(1_800));
}

#[test]
fn a_day_that_was_left_out_has_no_opening_and_no_count() {
    let apia = calendar("every 09:00 17:00", "Pacific/Apia");
    check(&apia, "2011-12-29T17:00:00-10:00", "2011-12-31T09:00:00+14:00");
    // Friday the 30th never was: its window opens a week later.
    check(
        &calendar("fri 09:00 17:00", "Pacific/Apia"),
        "2011-12-29T17:00:00-10:00",
        "2012-01-06T09:00:00+14:00",
    );
    let zone: Zone = "Pacific/Apia".parse().unwrap();
    assert!(apia.open_on("2011-12-30".parse().unwrap(), &zone).is_empty());
    assert_eq!(zone.day_start("2011-12-30".parse().unwrap()), at("2011-12-31T00:00:00+14:00"));
    assert_eq!(zone.local_day(at("2011-12-29T23:59:59-10:00")).to_string(), "2011-12-29");
    assert_eq!(zone.local_day(at("2011-12-31T00:00:00+14:00")).to_string(), "2011-12-31");
}

#[test]
fn what_a_fold_shows_twice_is_open_twice() {
    let night = calendar("every 01:30 02:00", "America/New_York");
    check(&night, "2026-11-01T01:59:59-04:00", "2026-11-01T01:59:59-04:00");
    check(&night, "2026-11-01T02:00:00-04:00", "2026-11-01T01:30:00-05:00");
    check(&night, "2026-11-01T02:00:00-05:00", "2026-11-02T01:30:00-05:00");
    let open = night.open_time(at("2026-11-01T00:00:00-04:00"), at("2026-11-02T00:00:00-05:00"));
    assert_eq!(open, Duration::from_secs(3_600));
}

#[test]
fn a_clock_set_back_over_midnight_shows_a_day_again() {
    // At 00:01 on November 7 the clocks went back to 23:01 on the 6th.
    let zone: Zone = "America/St_Johns".parse().unwrap();
    let first_minute = at("2010-11-07T00:00:30-02:30");
    assert_eq!(zone.local_day(first_minute).to_string(), "2010-11-07");
    assert_eq!(zone.local_day(first_minute.plus(Duration::from_secs(60))).to_string(), "2010-11-06");
    // Sunday has begun for good when the clocks show it for the second time.
    assert_eq!(zone.day_start("2010-11-07".parse().unwrap()), at("2010-11-07T00:00:00-03:30"));
    let week = calendar("sun 00:00 24:00", "America/St_Johns");
    check(&week, "2010-11-06T12:00:00-02:30", "2010-11-07T00:00:00-02:30");
    check(&week, "2010-11-07T00:01:00-02:30", "2010-11-07T00:00:00-03:30");
    let saturday = calendar("sat 23:00 24:00", "America/St_Johns");
    check(&saturday, "2010-11-07T00:00:00-02:30", "2010-11-06T23:01:00-03:30");
    assert_eq!(saturday.open_on("2010-11-06".parse().unwrap(), &zone).len(), 2);
}

#[test]
fn a_campaign_only_narrows_its_workspace() {
    let workspace = calendar("mon tue wed thu fri 09:00 17:00", "Europe/Paris");
    let both = workspace.narrowed_by(window("mon wed 15:00 20:00", "Europe/London", &[])).unwrap();
    check(&both, "2026-11-16T00:00:00Z", "2026-11-16T15:00:00Z");
    check(&both, "2026-11-16T16:00:00Z", "2026-11-18T15:00:00Z");
    assert_eq!(
        both.open_time(at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z")),
        Duration::from_secs(2 * 3_600)
    );
    // In those two weeks of spring the clocks of America and Europe are an hour nearer.
    let rare = calendar("every 12:00 13:00", "Europe/Paris")
        .narrowed_by(window("every 07:00 08:00", "America/New_York", &[]))
        .unwrap();
    check(&rare, "2026-01-01T00:00:00Z", "2026-03-08T11:00:00Z");
}

#[test]
fn a_recipients_own_zone_takes_the_place_of_every_windows() {
    let paris = calendar("every 09:00 17:00", "Europe/Paris")
        .narrowed_by(window("every 10:00 11:00", "Europe/London", &[]))
        .unwrap();
    let tokyo = paris.in_zone(&"Asia/Tokyo".parse().unwrap()).unwrap();
    check(&tokyo, "2026-11-16T00:00:00Z", "2026-11-16T10:00:00+09:00");
}

#[test]
fn a_window_that_never_opens_is_refused_and_says_why() {
    let said = |error: CalendarError| error.to_string();
    let none = Window::new(Vec::new(), Zone::utc(), ClosedDates::default());
    assert_eq!(said(none.unwrap_err()), "the window never opens: it has no hours");
    let nine = "09:00".parse().unwrap();
    let opening = |days, start, end| {
        Window::new(vec![Opening { days, start, end }], Zone::utc(), ClosedDates::default())
    };
    assert_eq!(
        said(opening(Days::ALL, nine, nine).unwrap_err()),
        "an interval from 09:00 to 09:00 is empty; a whole day is 00:00 to 24:00"
    );
    assert_eq!(
        said(opening(Days::default(), nine, "17:00".parse().unwrap()).unwrap_err()),
        "the window never opens: 09:00 to 17:00 has no day of the week"
    );
    let apart = calendar("mon 09:00 12:00", "UTC").narrowed_by(window("tue 09:00 12:00", "UTC", &[]));
    assert_eq!(
        said(apart.unwrap_err()),
        "the window never opens: mon 09:00 to 12:00 in UTC, and tue 09:00 to 12:00 in UTC have no time in common"
    );
    let day_and_night = calendar("every 09:00 12:00", "Europe/Paris").narrowed_by(window(
        "every 09:00 12:00",
        "America/Los_Angeles",
        &[],
    ));
    assert!(day_and_night.is_err());
    assert!("Europe/Pariss".parse::<Zone>().is_err() && "Etc/Unknown".parse::<Zone>().is_err());
    assert!(Calendar::new(Vec::new()).is_err());
}

#[test]
fn a_window_that_is_closed_for_ever_from_some_day_on_has_no_next_opening() {
    let over = Calendar::new(vec![window("every 09:00 10:00", "UTC", &["2026-01-01..9999-12-31"])]).unwrap();
    check(&over, "2025-12-31T00:00:00Z", "2025-12-31T09:00:00Z");
    assert_eq!(over.next_open(at("2026-01-01T00:00:00Z")), None);
}
