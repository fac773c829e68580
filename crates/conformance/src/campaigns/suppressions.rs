//! The list of those who want no more: each workspace's own, and nobody twice.

use redeliver_engine::campaigns::Suppression;

use super::{CampaignRig, deed};
use crate::make::at;

fn suppression(address: &str, reason: &str) -> Suppression {
    Suppression { address: address.to_owned(), reason: reason.into() }
}

/// The first reason stays.
pub async fn an_address_is_on_the_list_once(rig: &dyn CampaignRig) {
    let put = |all: Vec<Suppression>, s| rig.campaigns().suppress("w", all, at(s), None);
    let twice = vec![suppression("b@x.org", "bounced"), suppression("b@x.org", "bounced")];
    assert_eq!(put(twice, 1).await.unwrap(), 1);
    let more = vec![suppression("b@x.org", "unsubscribed"), suppression("a@x.org", "unsubscribed")];
    assert_eq!(put(more, 2).await.unwrap(), 1);
    assert_eq!(rig.campaigns().suppressed("w", "b@x.org").await.unwrap().as_deref(), Some("bounced"));
    let all = rig.campaigns().suppressions("w", "", 9).await.unwrap();
    assert_eq!(
        all,
        [(suppression("a@x.org", "unsubscribed"), at(2)), (suppression("b@x.org", "bounced"), at(1))]
    );
    assert_eq!(rig.campaigns().suppressions("w", "a@x.org", 9).await.unwrap(), all[1..]);
    assert_eq!(rig.campaigns().suppressions("w", "", 1).await.unwrap(), all[..1]);
}

/// And what a person did is written down with it.
pub async fn the_list_is_its_workspaces_and_can_be_left(rig: &dyn CampaignRig) {
    let one = || vec![suppression("a@x.org", "unsubscribed")];
    assert_eq!(rig.campaigns().suppress("w", one(), at(1), Some(deed("suppress"))).await.unwrap(), 1);
    assert_eq!(rig.campaigns().suppressed("other", "a@x.org").await.unwrap(), None);
    assert!(!rig.campaigns().unsuppress("other", "a@x.org", deed("unsuppress")).await.unwrap());
    assert!(rig.campaigns().unsuppress("w", "a@x.org", deed("unsuppress")).await.unwrap());
    assert!(!rig.campaigns().unsuppress("w", "a@x.org", deed("unsuppress")).await.unwrap());
    assert_eq!(rig.campaigns().suppressed("w", "a@x.org").await.unwrap(), None);
    let deeds: Vec<_> = rig.store().audit(9).await.unwrap().iter().map(|deed| deed.action).collect();
    assert_eq!(deeds, ["unsuppress", "suppress"]);
}

/// What nobody can be called is not there, and harms nothing.
pub async fn an_odd_address_is_simply_not_there(rig: &dyn CampaignRig) {
    assert_eq!(rig.campaigns().suppressed("w", "a\0b").await.unwrap(), None);
    assert!(!rig.campaigns().unsuppress("w", "a\0b", deed("unsuppress")).await.unwrap());
    assert_eq!(rig.campaigns().suppressions("w", "a\0b", 9).await.unwrap(), []);
}
