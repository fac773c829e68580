//! No row ever counts more than its quota, whoever asks and however many at once.

use redeliver_core::campaign::{Allowance, Sending, Settings};
use redeliver_core::quota::Whose;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::campaigns::{ReserveRequest, Reserved, Room};

use super::CampaignRig;
use crate::make::at;
use crate::store::at_once;

fn allowances(settings: &str, now: Timestamp) -> Vec<Allowance> {
    let settings: Settings = serde_json::from_str(settings).unwrap();
    let sending = Sending::new(&settings, None).unwrap();
    sending.allowances(&"w".into(), "c-1", "ada", now)
}

fn request(settings: &str, now: Timestamp) -> ReserveRequest {
    let sender: Name = "ada".into();
    let allowances = allowances(settings, now);
    ReserveRequest { workspace: "w".into(), sender, now, free_at: now, allowances }
}

/// And not beyond.
pub async fn what_was_reserved_is_counted_until_the_limit(rig: &dyn CampaignRig) {
    let request = request(r#"{ "daily_quota": 3 }"#, at(0));
    for _ in 0..3 {
        assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Yes);
    }
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Full(0));
    let (_, day) = request.allowances[0].key.bucket.number();
    let used = rig.campaigns().used_on("w", day).await.unwrap();
    let shown: Vec<_> = used.iter().map(|used| (used.whose, &*used.name, used.used)).collect();
    assert_eq!(shown, [(Whose::Workspace, "w", 3)]);
    assert_eq!(rig.campaigns().used_on("w", day + 1).await.unwrap(), []);
}

/// Whether a quota asks for that or not.
pub async fn what_a_campaign_sent_is_counted_day_by_day(rig: &dyn CampaignRig) {
    let sending = Sending::new(&Settings::default(), None).unwrap();
    let next_day = at(0).plus(std::time::Duration::from_secs(86_400));
    let mut days = Vec::new();
    for (campaign, now, mails) in [("c-1", at(0), 2), ("c-1", next_day, 1), ("c-2", next_day, 1)] {
        for n in 0..mails {
            let allowances = sending.counters(&"w".into(), campaign, "ada", now);
            days.push(allowances[0].key.bucket.number().1);
            let sender: Name = format!("{campaign} {n}").into();
            let request = ReserveRequest { workspace: "w".into(), sender, now, free_at: now, allowances };
            assert_eq!(rig.campaigns().reserve(request).await.unwrap(), Reserved::Yes);
        }
    }
    let sent = |workspace, campaign| rig.campaigns().sent_by(workspace, campaign);
    assert_eq!(sent("w", "c-1").await.unwrap(), [(days[0], 2), (days[2], 1)]);
    assert_eq!(sent("w", "c-2").await.unwrap(), [(days[2], 1)]);
    assert_eq!(sent("w", "c-3").await.unwrap(), []);
    assert_eq!(sent("v", "c-1").await.unwrap(), []);
    let keys = sending.counters(&"w".into(), "c-2", "ada", next_day).into_iter().map(|one| one.key);
    rig.campaigns().give_back(keys.collect()).await.unwrap();
    assert_eq!(sent("w", "c-2").await.unwrap(), [], "it did not go out");
}

/// What one row has no room for takes no room in another.
pub async fn a_full_one_counts_nothing_anywhere(rig: &dyn CampaignRig) {
    let request = request(r#"{ "daily_quota": 3, "sender_quota": 1 }"#, at(0));
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Yes);
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Full(1));
    let (_, day) = request.allowances[0].key.bucket.number();
    let used: Vec<_> =
        rig.campaigns().used_on("w", day).await.unwrap().iter().map(|used| used.used).collect();
    assert_eq!(used, [1, 1]);
}

/// What a look says is what counting would have said, and a look counts nothing.
pub async fn a_look_for_room_counts_nothing(rig: &dyn CampaignRig) {
    let now = at(0);
    let free_at = now.plus(std::time::Duration::from_secs(30));
    let request = ReserveRequest { free_at, ..request(r#"{ "daily_quota": 3, "sender_quota": 1 }"#, now) };
    for _ in 0..2 {
        assert_eq!(rig.campaigns().room(request.clone()).await.unwrap(), Room::default());
    }
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Yes);
    let busy = Room { free_at: Some(free_at), full: Some(1) };
    assert_eq!(rig.campaigns().room(request.clone()).await.unwrap(), busy);
    let later = ReserveRequest { now: free_at, ..request.clone() };
    assert_eq!(rig.campaigns().room(later).await.unwrap(), Room { free_at: None, full: Some(1) });
    let (_, day) = request.allowances[0].key.bucket.number();
    let used = rig.campaigns().used_on("w", day).await.unwrap();
    assert_eq!(used.iter().map(|used| used.used).collect::<Vec<_>>(), [1, 1]);
}

/// Nothing was sent: the room is there again, and never more of it.
pub async fn what_was_given_back_can_be_taken_again(rig: &dyn CampaignRig) {
    let request = request(r#"{ "daily_quota": 1 }"#, at(0));
    let keys = || request.allowances.iter().map(|allowance| allowance.key.clone()).collect::<Vec<_>>();
    rig.campaigns().give_back(keys()).await.unwrap();
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Yes);
    rig.campaigns().give_back(keys()).await.unwrap();
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Yes);
    assert_eq!(rig.campaigns().reserve(request.clone()).await.unwrap(), Reserved::Full(0));
}

/// Until it is free, it hears when that is.
pub async fn a_sender_keeps_its_distance(rig: &dyn CampaignRig) {
    let first = ReserveRequest { free_at: at(60), ..request("{}", at(0)) };
    assert_eq!(rig.campaigns().reserve(first.clone()).await.unwrap(), Reserved::Yes);
    let early = ReserveRequest { now: at(59), free_at: at(120), ..first.clone() };
    assert_eq!(rig.campaigns().reserve(early.clone()).await.unwrap(), Reserved::Busy(at(60)));
    let other = ReserveRequest { sender: "bob".into(), ..early.clone() };
    assert_eq!(rig.campaigns().reserve(other).await.unwrap(), Reserved::Yes);
    let there = ReserveRequest { now: at(60), ..early };
    assert_eq!(rig.campaigns().reserve(there).await.unwrap(), Reserved::Yes);
}

/// A day on which everything was given back is none.
pub async fn a_ramp_up_counts_the_days_with_a_mail(rig: &dyn CampaignRig) {
    const DAY: i64 = 86_400;
    let on = |day: i64| request(r#"{ "daily_quota": 9, "ramp_up": [1, 2, 3] }"#, at(day * DAY));
    let reserve = |request| rig.campaigns().reserve(request);
    assert_eq!(reserve(on(0)).await.unwrap(), Reserved::Yes);
    assert_eq!(reserve(on(0)).await.unwrap(), Reserved::Full(0));
    assert_eq!(reserve(on(1)).await.unwrap(), Reserved::Yes);
    let key = on(1).allowances[0].key.clone();
    rig.campaigns().give_back(vec![key]).await.unwrap();
    for expected in [Reserved::Yes, Reserved::Yes, Reserved::Full(0)] {
        assert_eq!(reserve(on(5)).await.unwrap(), expected, "the second day with a mail");
    }
}

/// Hour by hour.
pub async fn any_24_hours_are_counted_together(rig: &dyn CampaignRig) {
    const HOUR: i64 = 3_600;
    let on = |hour: i64| request(r#"{ "daily_quota": 2, "quota_period": "rolling" }"#, at(hour * HOUR));
    let reserve = |request| rig.campaigns().reserve(request);
    assert_eq!(reserve(on(0)).await.unwrap(), Reserved::Yes);
    assert_eq!(reserve(on(20)).await.unwrap(), Reserved::Yes);
    assert_eq!(reserve(on(23)).await.unwrap(), Reserved::Full(0));
    assert_eq!(reserve(on(25)).await.unwrap(), Reserved::Yes);
    assert_eq!(reserve(on(26)).await.unwrap(), Reserved::Full(0));
}

/// Each keeps to itself what it was told.
pub async fn those_who_reserve_at_once_never_exceed_the_limit(rig: &dyn CampaignRig) {
    let settings = r#"{ "daily_quota": 11, "sender_quota": 5 }"#;
    let yes: usize = at_once(|n| async move {
        let mut yes = 0;
        for k in 0..4 {
            let sender: Name = format!("sender {}", (n + k) % 3).into();
            let settings: Settings = serde_json::from_str(settings).unwrap();
            let sending = Sending::new(&settings, None).unwrap();
            let allowances = sending.allowances(&"w".into(), "c-1", &sender, at(0));
            let request =
                ReserveRequest { workspace: "w".into(), sender, now: at(0), free_at: at(0), allowances };
            match rig.campaigns().reserve(request).await.unwrap() {
                Reserved::Yes => yes += 1,
                // The first mails of a sender came at the same time, or there is no room.
                Reserved::Busy(_) | Reserved::Full(_) => {}
            }
        }
        yes
    })
    .into_iter()
    .sum();
    let (_, day) = allowances(settings, at(0))[0].key.bucket.number();
    let used = rig.campaigns().used_on("w", day).await.unwrap();
    assert!(used[0].used <= 11 && used[1..].iter().all(|used| used.used <= 5), "{used:?}");
    assert_eq!(used[0].used as usize, yes);
    assert!(yes >= 9, "{used:?}");
}
