//! A session lasts until it is over, ended, or its key is revoked.

use redeliver_core::change::Audit;
use redeliver_engine::access::{Role, SessionRecord};

use super::{AccessRig, key};
use crate::make::{at, odd_text};

/// Every part of it, whatever characters it has.
pub async fn a_session_comes_back_as_it_was_given(rig: &dyn AccessRig) {
    for role in Role::ALL {
        let odd = SessionRecord {
            digest: [role as u8; 32],
            name: odd_text(),
            workspace: Some(odd_text()),
            role,
            ..session(1)
        };
        rig.access().add_session(odd.clone()).await.unwrap();
        assert_eq!(rig.access().session(odd.digest, at(0)).await.unwrap(), Some(odd));
    }
    assert_eq!(rig.access().session([99; 32], at(0)).await.unwrap(), None);
}

/// At its last moment it is.
pub async fn a_session_that_is_over_is_not_there(rig: &dyn AccessRig) {
    rig.access().add_session(session(1)).await.unwrap();
    for (s, lives) in [(99, true), (100, false), (101, false)] {
        assert_eq!(rig.access().session([1; 32], at(s)).await.unwrap().is_some(), lives, "{s}");
    }
}

/// And ending it again is no error.
pub async fn a_session_that_was_ended_is_not_there(rig: &dyn AccessRig) {
    rig.access().add_session(session(1)).await.unwrap();
    for _ in 0..2 {
        rig.access().end_session([1; 32], at(0)).await.unwrap();
        assert_eq!(rig.access().session([1; 32], at(0)).await.unwrap(), None);
    }
}

/// Whoever's key is revoked is out at once, in all their windows.
pub async fn a_session_lives_no_longer_than_its_key(rig: &dyn AccessRig) {
    let deed = |action| Audit { actor: "ada".into(), action, subject: "k1".into(), at: at(5), detail: None };
    rig.access().add_key(key(1), deed("create_key")).await.unwrap();
    let opened_with = |n, key: &str| SessionRecord { key: Some(key.into()), ..session(n) };
    rig.access().add_session(opened_with(1, "k1")).await.unwrap();
    rig.access().add_session(opened_with(2, "k9")).await.unwrap();
    rig.access().add_session(session(3)).await.unwrap();
    let lives = async |n: u8| rig.access().session([n; 32], at(0)).await.unwrap().is_some();
    assert_eq!((lives(1).await, lives(2).await, lives(3).await), (true, false, true));
    rig.access().revoke_key("k1", deed("revoke_key")).await.unwrap();
    assert_eq!((lives(1).await, lives(3).await), (false, true));
}

/// One window closed is not all of them.
pub async fn ending_one_session_leaves_the_others(rig: &dyn AccessRig) {
    for n in [1, 2, 3] {
        rig.access().add_session(session(n)).await.unwrap();
    }
    rig.access().end_session([2; 32], at(0)).await.unwrap();
    for (n, lives) in [(1, true), (2, false), (3, true)] {
        assert_eq!(rig.access().session([n; 32], at(0)).await.unwrap().is_some(), lives, "{n}");
    }
}

/// The n-th session, over after a hundred seconds.
fn session(n: u8) -> SessionRecord {
    SessionRecord {
        digest: [n; 32],
        key: None,
        name: "ada".into(),
        workspace: None,
        role: Role::Viewer,
        created_at: at(0),
        expires_at: at(100),
    }
}
