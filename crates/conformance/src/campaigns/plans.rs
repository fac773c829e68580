//! Plans are kept with their mails, all of a part or nothing, and by one who plans at a time.

use redeliver_core::campaign::{CampaignState, Ends, Ledger, MailOf, Plan};
use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::operate::{Action, operate};
use redeliver_core::settle::settle;
use redeliver_core::{Change, Failure, InstanceId, Message, Outcome};
use redeliver_engine::campaigns::{CampaignChange, PartKept, PlanPart, Planning, PlanningMark, Unfinished};
use redeliver_engine::store::Applied;

use super::{CampaignRig, add, campaign, deed, prospect};
use crate::make::{at, id, message, route, row};
use crate::store::at_once;

fn mail(n: u32, key: &str) -> NewRow {
    let mut keyed = row(message(n));
    keyed.message.key = Some(key.into());
    keyed
}

/// A mail that says of which campaign it is.
fn mail_of(campaign: &str, n: u32, key: &str) -> NewRow {
    let of = MailOf {
        campaign: campaign.to_owned(),
        prospect: format!("p-{n}"),
        step: 1,
        sender: "ada@example.org".to_owned(),
    };
    NewRow { content: ContentSource::Given(of.to_content().into()), ..mail(n, key) }
}

fn part(expected_version: u64, after: u64, rows: Vec<NewRow>) -> PlanPart {
    let plan = Plan { after, ..Plan::default() };
    PlanPart {
        campaign: "c-1".into(),
        workspace: "default".into(),
        expected_version,
        ledger: Ledger { plan, ..Ledger::default() },
        last_at: Some(at(after as i64)),
        rows,
    }
}

/// Where it goes on, and what is to be sent.
pub async fn a_part_is_kept_with_its_mails(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    let rows = vec![mail(1, "p-1:seq-1:1"), mail(2, "p-1:seq-1:2")];
    assert_eq!(rig.campaigns().keep_part(part(0, 1, rows)).await.unwrap(), PartKept::Kept(2));
    assert_eq!(
        rig.campaigns().keep_part(part(1, 2, vec![mail(3, "p-2:seq-1:1")])).await.unwrap(),
        PartKept::Kept(1)
    );
    let record = rig.campaigns().campaign("c-1").await.unwrap().unwrap();
    assert_eq!((record.ledger.plan.after, record.scheduled, record.last_at), (2, 3, Some(at(2))));
    assert_eq!(rig.campaigns().workspace("default").await.unwrap().plan_version, 2);
    assert!(rig.store().get(id(3)).await.unwrap().is_some());
}

/// Somebody else may have taken what it takes.
pub async fn a_part_that_was_read_too_long_ago_is_not_kept(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    let keep = |part| rig.campaigns().keep_part(part);
    assert_eq!(keep(part(3, 1, vec![mail(1, "a:b:1")])).await.unwrap(), PartKept::Superseded);
    assert_eq!(keep(part(0, 1, vec![mail(1, "a:b:1")])).await.unwrap(), PartKept::Kept(1));
    assert_eq!(keep(part(0, 2, vec![mail(2, "a:b:2")])).await.unwrap(), PartKept::Superseded);
    assert_eq!(rig.store().get(id(2)).await.unwrap(), None);
    assert_eq!(rig.campaigns().campaign("c-1").await.unwrap().unwrap().ledger.plan.after, 1);
}

/// Paused or ended in the middle of planning, it gets no more mails.
pub async fn nothing_is_planned_for_a_campaign_that_does_not_run(rig: &dyn CampaignRig) {
    for state in [CampaignState::Draft, CampaignState::Paused, CampaignState::Cancelled] {
        let mut record = campaign("c-1", state);
        record.id = format!("c-{}", state.name()).into();
        add(rig, record.clone()).await;
        let version = rig.campaigns().workspace("default").await.unwrap().plan_version;
        let part = PlanPart { campaign: record.id, ..part(version, 1, vec![mail(1, "a:b:1")]) };
        assert_eq!(rig.campaigns().keep_part(part).await.unwrap(), PartKept::Superseded);
    }
    assert_eq!(rig.store().get(id(1)).await.unwrap(), None);
}

/// One mail has one name.
pub async fn a_mail_whose_key_is_known_is_left_out(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    rig.store().insert(vec![mail(1, "a:b:1")]).await.unwrap();
    let rows = vec![mail(2, "a:b:1"), mail(3, "a:b:2")];
    assert_eq!(rig.campaigns().keep_part(part(0, 1, rows)).await.unwrap(), PartKept::Kept(1));
    assert_eq!(rig.store().get(id(2)).await.unwrap(), None);
    assert_eq!(rig.campaigns().campaign("c-1").await.unwrap().unwrap().scheduled, 1);
}

/// The others hear that they must look again.
pub async fn of_many_who_plan_at_once_one_keeps_its_part(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    for version in 0..3 {
        let kept = at_once(|n| async move {
            let number = 1 + n + version as u32 * 10;
            let rows = vec![mail(number, &format!("p-{number}:b:1"))];
            rig.campaigns().keep_part(part(version, version + 1, rows)).await.unwrap()
        });
        assert_eq!(kept.iter().filter(|kept| **kept == PartKept::Kept(1)).count(), 1, "{kept:?}");
    }
    assert_eq!(rig.campaigns().campaign("c-1").await.unwrap().unwrap().scheduled, 3);
}

fn mark(planner: u64, now: i64) -> PlanningMark {
    PlanningMark {
        campaign: "c-1".into(),
        planner: InstanceId(planner),
        now: at(now),
        until_at: at(now + 10),
    }
}

/// Taking over somebody's mark counts, ending in an orderly way and progress don't.
pub async fn an_interrupted_planning_is_counted_until_a_part_is_kept(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    let begin = async |planner, now| rig.campaigns().begin_planning(mark(planner, now)).await.unwrap();
    let begun = |interruptions| Planning::Begun { interruptions };
    assert_eq!(begin(1, 0).await, begun(0));
    assert_eq!(begin(1, 5).await, begun(0), "its own mark is renewed");
    assert_eq!(begin(2, 14).await, Planning::Taken, "until then it holds");
    assert_eq!(begin(2, 15).await, begun(1));
    assert_eq!(begin(u64::MAX, 30).await, begun(2));
    rig.campaigns().end_planning("c-1", InstanceId(2)).await.unwrap();
    assert_eq!(begin(3, 35).await, Planning::Taken, "another one's end is not its end");
    assert_eq!(begin(3, 40).await, begun(3));
    assert_eq!(rig.campaigns().keep_part(part(0, 1, Vec::new())).await.unwrap(), PartKept::Kept(0));
    assert_eq!(begin(3, 41).await, begun(0), "it makes progress");
    assert_eq!(begin(4, 60).await, begun(1));
    rig.campaigns().end_planning("c-1", InstanceId(4)).await.unwrap();
    assert_eq!(begin(5, 61).await, begun(0), "it ended in an orderly way");
    let nobody = PlanningMark { campaign: "nobody".into(), ..mark(1, 0) };
    assert_eq!(rig.campaigns().begin_planning(nobody).await.unwrap(), Planning::Taken);
}

/// Until it is moved again, which forgets interruptions, too.
pub async fn a_campaign_keeps_why_it_was_paused(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    let change = |from, to, paused_for: Option<&str>| CampaignChange {
        id: "c-1".into(),
        from,
        to,
        paused_for: paused_for.map(Into::into),
        audit: deed("pause"),
    };
    let paused_for = async || {
        rig.campaigns().campaign("c-1").await.unwrap().unwrap().paused_for.map(|why| why.to_string())
    };
    for (planner, now) in [(1, 0), (2, 100)] {
        rig.campaigns().begin_planning(mark(planner, now)).await.unwrap();
    }
    let pause = change(CampaignState::Running, CampaignState::Paused, Some("it crashed"));
    assert!(rig.campaigns().move_campaign(pause).await.unwrap());
    assert_eq!(paused_for().await.as_deref(), Some("it crashed"));
    let resume = change(CampaignState::Paused, CampaignState::Running, None);
    assert!(rig.campaigns().move_campaign(resume).await.unwrap());
    assert_eq!(paused_for().await, None);
    let begun = rig.campaigns().begin_planning(mark(3, 101)).await.unwrap();
    assert_eq!(begun, Planning::Begun { interruptions: 0 });
}

/// In the order in which they were asked for.
pub async fn messages_are_found_by_their_keys(rig: &dyn CampaignRig) {
    rig.store().insert(vec![mail(1, "a:b:1"), mail(2, "a:b:2")]).await.unwrap();
    let keys = ["a:b:2", "a:b:9", "a:b:1"].map(str::to_owned).into();
    let found = rig.campaigns().by_keys("default", keys).await.unwrap();
    let ids: Vec<_> = found.iter().map(|keyed| keyed.as_ref().map(|keyed| keyed.id.clone())).collect();
    assert_eq!(ids, [Some(id(2)), None, Some(id(1))]);
    assert!(found[0].as_ref().unwrap().message.is_some());
    assert_eq!(rig.campaigns().by_keys("other", vec!["a:b:1".to_owned()]).await.unwrap(), [None]);
}

/// What was cancelled, what is dead, what was put away, and what came back from there; of its own workspace, and of nobody else.
pub async fn how_mails_have_ended_is_counted_with_each_change(rig: &dyn CampaignRig) {
    add(rig, campaign("c-1", CampaignState::Running)).await;
    add(rig, campaign("c-2", CampaignState::Running)).await;
    let ends = || async { rig.campaigns().campaign("c-1").await.unwrap().unwrap().ends };
    let mut forged = mail_of("c-1", 5, "p-5:seq-1:1");
    forged.message.workspace = "other".into();
    let mut keyless = mail_of("c-1", 6, "");
    (keyless.message.key, keyless.hash) = (None, None);
    let rows = (1..=4).map(|n| mail_of("c-1", n, &format!("p-{n}:seq-1:1"))).chain([forged, keyless]);
    rig.store().insert(rows.collect()).await.unwrap();
    let before = async |n: u32| rig.store().get(id(n)).await.unwrap().unwrap();
    let write = async |change: Change| rig.store().apply(vec![change.clone(), change]).await.unwrap();
    let operated = |before: &Message, action: Action| {
        operate(before, action, &"ann".into(), &route(), at(1)).expect("it makes sense")
    };
    for n in [1, 5, 6] {
        write(operated(&before(n).await, Action::Cancel)).await;
    }
    for n in [2, 3] {
        let refused = Outcome::Refused(Failure::new("550"));
        let answers = write(settle(&before(n).await, &refused, &route(), at(1))).await;
        assert_eq!(answers[0], Applied::Applied);
        assert!(matches!(answers[1], Applied::Superseded(_)), "said twice, it is counted once");
    }
    assert_eq!(ends().await, Ends { dead: 2, dismissed: 0, cancelled: 1 });
    write(operated(&before(2).await, Action::Dismiss)).await;
    assert_eq!(ends().await, Ends { dead: 1, dismissed: 1, cancelled: 1 });
    for n in [1, 3] {
        write(operated(&before(n).await, Action::Retry)).await;
    }
    assert_eq!(ends().await, Ends { dead: 0, dismissed: 1, cancelled: 0 });
    let listed = rig.campaigns().campaigns("default").await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|record| record.ends).collect();
    assert_eq!(listed, [Ends { dismissed: 1, ..Ends::default() }, Ends::default()]);
}

/// Of several campaigns in any order, and nobody waits for ever.
pub async fn those_who_end_mails_at_once_count_each_of_them(rig: &dyn CampaignRig) {
    let names = ["c-1", "c-2", "c-3"];
    for name in names {
        add(rig, campaign(name, CampaignState::Running)).await;
    }
    let number = |who: u32, name: usize, k: u32| who * 100 + name as u32 * 10 + k;
    at_once(|who| async move {
        for k in 0..5 {
            // Everybody begins with another one.
            let mut mails: Vec<(usize, u32)> = (0..3).map(|name| (name, number(who, name, k))).collect();
            mails.rotate_left(who as usize % 3);
            let rows = mails.iter().map(|(name, n)| mail_of(names[*name], *n, &format!("p-{n}:seq-1:1")));
            rig.store().insert(rows.collect()).await.unwrap();
            let mut changes = Vec::new();
            for (_, n) in mails {
                let before = rig.store().get(id(n)).await.unwrap().unwrap();
                changes.push(
                    operate(&before, Action::Cancel, &"ann".into(), &route(), at(1)).expect("it waits"),
                );
            }
            let answers = rig.store().apply(changes).await.unwrap();
            assert_eq!(answers, [Applied::Applied, Applied::Applied, Applied::Applied]);
        }
    });
    let counted = rig.campaigns().campaigns("default").await.unwrap();
    let counted: Vec<u64> = counted.into_iter().map(|record| record.ends.cancelled).collect();
    assert_eq!(counted, [40; 3]);
}

/// Whoever tends campaigns finds those that have somebody to plan, and those whose last mail was to go out by now.
pub async fn what_has_something_left_to_be_done_is_found(rig: &dyn CampaignRig) {
    for (id, state) in [("c-0", CampaignState::Draft), ("c-1", CampaignState::Running)] {
        add(rig, campaign(id, state)).await;
        let left = rig.campaigns().unfinished(at(9)).await.unwrap();
        assert_eq!(left, [], "without prospects");
        rig.campaigns().enrol(id, vec![prospect(1), prospect(2)]).await.unwrap();
    }
    let found = |is_planned| [Unfinished { id: "c-1".into(), is_planned }];
    assert_eq!(rig.campaigns().unfinished(at(0)).await.unwrap(), found(false));
    rig.campaigns().keep_part(part(0, 1, vec![mail(1, "a:b:1")])).await.unwrap();
    assert_eq!(rig.campaigns().unfinished(at(0)).await.unwrap(), found(false));
    rig.campaigns().keep_part(part(1, 2, vec![mail(2, "a:b:2")])).await.unwrap();
    assert_eq!(rig.campaigns().unfinished(at(1)).await.unwrap(), []);
    assert_eq!(rig.campaigns().unfinished(at(2)).await.unwrap(), found(true));
}
