//! What makes two inputs the same message: never less than where they came from.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::IntakeRig;
use super::feed::{all_acknowledged, fed};
use super::sink::{Answers, ScriptedSink};

/// Two sources of the same name number their inputs without knowing of each other: the n-th of one is not the n-th of
/// the other, even if both say the same.
pub async fn inputs_of_two_sources_are_two_messages(rig: &dyn IntakeRig) {
    let twin = rig.twin().await;
    let mut keys = HashSet::new();
    for rig in [rig, &*twin] {
        let sink = ScriptedSink::new(Answers::New);
        for n in 0..5 {
            rig.put(format!("input {n}").into()).await;
        }
        fed(rig, &sink, all_acknowledged(rig)).await;
        let brought: HashSet<Arc<str>> = sink.keys().into_iter().collect();
        assert_eq!(brought.len(), 5, "each has a key: {brought:?}");
        keys.extend(brought);
    }
    assert_eq!(keys.len(), 10, "an input of one source is taken for one of the other: {keys:?}");
}

/// The same holds for what nobody can read.
pub async fn poison_of_two_sources_is_kept_for_each(rig: &dyn IntakeRig) {
    let twin = rig.twin().await;
    let (mut keys, mut beside) = (Vec::new(), 0);
    for rig in [rig, &*twin] {
        let sink = ScriptedSink::new(Answers::New);
        rig.put_poison().await;
        fed(rig, &sink, all_acknowledged(rig)).await;
        keys.extend(sink.refused_keys());
        beside += rig.set_aside().await.len();
    }
    let different: HashSet<&Arc<str>> = keys.iter().collect();
    assert_eq!(different.len() + beside, 2, "{keys:?}");
}

/// What can't be kept under its own key is kept under another: under its own it would be dropped.
pub async fn a_refused_copy_has_a_key_of_its_own(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::ConflictFor(b'x'));
    rig.put(Bytes::from_static(b"x1")).await;
    fed(rig, &sink, all_acknowledged(rig)).await;
    let (keys, refused) = (sink.keys(), sink.refused_keys());
    assert_eq!(refused.len() + rig.set_aside().await.len(), 1, "it is kept");
    assert!(refused.iter().all(|key| !keys.contains(key)), "{refused:?} is among {keys:?}");
}

/// Nothing but its key tells an input that is read again from one that is new.
pub async fn what_is_read_again_has_the_same_key(rig: &dyn IntakeRig) {
    rig.put(Bytes::from_static(b"a")).await;
    let first = ScriptedSink::new(Answers::Fails);
    fed(rig, &first, first.called(1)).await;
    let second = ScriptedSink::new(Answers::New);
    fed(rig, &second, all_acknowledged(rig)).await;
    let before: HashSet<Arc<str>> = first.keys().into_iter().collect();
    let after: HashSet<Arc<str>> = second.keys().into_iter().collect();
    assert_eq!((before.len(), &before), (1, &after));
}
