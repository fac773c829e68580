//! A key is kept whole, found by its id, and worthless once it is revoked.

use redeliver_core::Timestamp;
use redeliver_core::change::Audit;
use redeliver_engine::access::{KeyRecord, Role};

use super::{AccessRig, key};
use crate::make::{at, odd_text};

/// Every part of it, whatever characters it has.
pub async fn a_key_comes_back_as_it_was_given(rig: &dyn AccessRig) {
    let odd = KeyRecord { name: odd_text(), workspace: Some(odd_text()), ..key(1) };
    add(rig, odd.clone()).await;
    assert_eq!(rig.access().key("k1").await.unwrap(), Some(odd));
}

/// From the one who may look to the one who may do anything.
pub async fn every_role_comes_back(rig: &dyn AccessRig) {
    for (n, role) in (1..).zip(Role::ALL) {
        add(rig, KeyRecord { role, ..key(n) }).await;
    }
    let roles: Vec<Role> = rig.access().keys().await.unwrap().into_iter().map(|key| key.role).collect();
    assert_eq!(roles, Role::ALL);
}

/// Nobody's key, whatever it looks like.
pub async fn an_unknown_key_is_no_error(rig: &dyn AccessRig) {
    add(rig, key(1)).await;
    for id in ["", "k", "K1", "k1 ", "k2", "' OR 1=1"] {
        assert_eq!(rig.access().key(id).await.unwrap(), None, "{id}");
    }
}

/// The second one is told so, and the first stands.
pub async fn an_id_is_given_once(rig: &dyn AccessRig) {
    add(rig, key(1)).await;
    let other = KeyRecord { digest: [9; 32], ..key(1) };
    assert!(!rig.access().add_key(other, deed("create_key", "k1", at(5))).await.unwrap());
    assert_eq!(rig.access().key("k1").await.unwrap(), Some(key(1)));
    assert_eq!(rig.store().audit(10).await.unwrap().len(), 1, "what was not done is no deed");
}

/// Whatever their names are.
pub async fn keys_are_listed_oldest_first(rig: &dyn AccessRig) {
    assert_eq!(rig.access().keys().await.unwrap(), []);
    for n in [2, 3, 1] {
        add(rig, KeyRecord { id: format!("id{}", 9 - n).into(), ..key(n) }).await;
    }
    let names: Vec<_> = rig.access().keys().await.unwrap().into_iter().map(|key| key.name).collect();
    assert_eq!(names, ["key 1".into(), "key 2".into(), "key 3".into()]);
}

/// It stays in the list, so that people see what there was.
pub async fn a_revoked_key_says_since_when(rig: &dyn AccessRig) {
    add(rig, key(1)).await;
    add(rig, key(2)).await;
    assert!(rig.access().revoke_key("k1", deed("revoke_key", "k1", at(7))).await.unwrap());
    let revoked: Vec<_> = rig.access().keys().await.unwrap().into_iter().map(|key| key.revoked_at).collect();
    assert_eq!(revoked, [Some(at(7)), None]);
    assert_eq!(rig.access().key("k1").await.unwrap().unwrap().revoked_at, Some(at(7)));
}

/// Whoever comes second changes nothing, nor does whoever means another.
pub async fn a_key_is_revoked_once(rig: &dyn AccessRig) {
    add(rig, key(1)).await;
    for (id, s, revoked) in [("k9", 5, false), ("k1", 6, true), ("k1", 7, false)] {
        assert_eq!(
            rig.access().revoke_key(id, deed("revoke_key", id, at(s))).await.unwrap(),
            revoked,
            "{id} {s}"
        );
    }
    assert_eq!(rig.access().key("k1").await.unwrap().unwrap().revoked_at, Some(at(6)));
    assert_eq!(rig.store().audit(10).await.unwrap().len(), 2, "one deed to make it, one to revoke it");
}

/// Who made it and who revoked it is never forgotten.
pub async fn a_deed_is_written_with_its_key(rig: &dyn AccessRig) {
    add(rig, key(1)).await;
    rig.access().revoke_key("k1", deed("revoke_key", "k1", at(7))).await.unwrap();
    let deeds = rig.store().audit(10).await.unwrap();
    assert_eq!(deeds, [deed("revoke_key", "k1", at(7)), deed("create_key", "k1", at(1))]);
}

async fn add(rig: &dyn AccessRig, key: KeyRecord) {
    let audit = deed("create_key", &key.id, key.created_at);
    assert!(rig.access().add_key(key, audit).await.unwrap(), "it is new");
}

fn deed(action: &'static str, subject: &str, at: Timestamp) -> Audit {
    Audit { actor: "ada".into(), action, subject: subject.into(), at, detail: None }
}
