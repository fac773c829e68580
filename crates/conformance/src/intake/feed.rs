//! At least once in, acknowledged only when it is kept, and never stuck on what can't be understood.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use redeliver_engine::stop::stop_pair;

use super::IntakeRig;
use super::sink::{Answers, ScriptedSink};

/// Long enough for anything that will happen.
const SOON: Duration = Duration::from_secs(50);
/// How long a stop may take.
const PROMPTLY: Duration = Duration::from_secs(5);
/// How long a story watches for what must not happen.
const A_WHILE: Duration = Duration::from_millis(500);
/// More calls than this in [`A_WHILE`] is a hot loop.
const CALLS_MAX: usize = 50;

/// All of it, and then the source has nothing left to answer for.
pub async fn everything_good_reaches_the_sink(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::New);
    let all: Vec<Bytes> = (0..100).map(|n| format!("input {n}").into()).collect();
    fed(rig, &sink, async {
        for bytes in &all {
            rig.put(bytes.clone()).await;
        }
        all_acknowledged(rig).await;
    })
    .await;
    let taken = sink.taken();
    assert!(all.iter().all(|bytes| taken.contains(bytes)), "{} of 100 arrived", taken.len());
    assert_eq!(set_aside(rig, &sink).await, [] as [Bytes; 0]);
}

/// Accepted means durable: until the sink has said so, the source answers for it.
pub async fn nothing_is_acknowledged_before_the_sink_has_answered(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::Waits);
    fed(rig, &sink, async {
        rig.put(Bytes::from_static(b"a")).await;
        sink.called(1).await;
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(rig.unacknowledged().await, 1, "the sink has not answered yet");
        sink.answer(Answers::New);
        all_acknowledged(rig).await;
    })
    .await;
    assert!(sink.taken().contains(&Bytes::from_static(b"a")));
}

/// A store that does not answer costs nothing but time.
pub async fn what_the_sink_could_not_take_is_brought_again(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::Fails);
    fed(rig, &sink, async {
        rig.put(Bytes::from_static(b"a")).await;
        sink.called(2).await;
        assert_eq!(rig.unacknowledged().await, 1, "the sink has refused it");
        assert_eq!(sink.taken(), [] as [Bytes; 0]);
        sink.answer(Answers::New);
        all_acknowledged(rig).await;
    })
    .await;
    assert!(sink.taken().contains(&Bytes::from_static(b"a")));
    assert_eq!(set_aside(rig, &sink).await, [] as [Bytes; 0], "it is not the input's fault");
}

/// Bringing it again at once, and again, helps nobody.
pub async fn a_sink_that_fails_is_not_hammered(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::Fails);
    fed(rig, &sink, async {
        rig.put(Bytes::from_static(b"a")).await;
        sink.called(1).await;
        let before = sink.calls();
        tokio::time::sleep(A_WHILE).await;
        let calls = sink.calls() - before;
        assert!(calls <= CALLS_MAX, "{calls} calls in {A_WHILE:?}");
        sink.answer(Answers::New);
        all_acknowledged(rig).await;
    })
    .await;
}

/// Said before is kept already.
pub async fn a_duplicate_is_acknowledged(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::Duplicate);
    fed(rig, &sink, async {
        rig.put(Bytes::from_static(b"a")).await;
        all_acknowledged(rig).await;
    })
    .await;
    assert_eq!(set_aside(rig, &sink).await, [] as [Bytes; 0]);
}

/// What can't be understood is put where a person finds it, and what came after it arrives.
pub async fn poison_is_set_aside_and_stops_nothing(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::New);
    fed(rig, &sink, async {
        rig.put(Bytes::from_static(b"a")).await;
        rig.put_poison().await;
        rig.put_poison().await;
        rig.put(Bytes::from_static(b"b")).await;
        all_acknowledged(rig).await;
    })
    .await;
    assert_eq!(set_aside(rig, &sink).await.len(), 2);
    let taken = sink.taken();
    assert!(taken.contains(&Bytes::from_static(b"a")) && taken.contains(&Bytes::from_static(b"b")));
}

/// Good input is never set aside with the bad, and the bad never reaches the sink.
pub async fn nothing_but_poison_is_set_aside(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::New);
    let good: Vec<Bytes> = (0..5).map(|n| format!("good {n}").into()).collect();
    fed(rig, &sink, async {
        for bytes in &good {
            rig.put(bytes.clone()).await;
            rig.put_poison().await;
        }
        all_acknowledged(rig).await;
    })
    .await;
    let aside = set_aside(rig, &sink).await;
    assert_eq!(aside.len(), 5);
    assert!(!aside.iter().any(|bytes| good.contains(bytes)));
    assert!(sink.brought().iter().all(|bytes| good.contains(bytes)));
}

/// The answers come in the order of the batch: what nobody will carry is set aside, and nothing beside it.
pub async fn each_answer_is_for_its_own_input(rig: &dyn IntakeRig) {
    unwanted_is_set_aside(rig, Answers::NoRouteFor(b'x')).await;
}

/// What comes under the key of another message replaces nothing, and is not lost.
pub async fn what_has_the_key_of_another_message_is_set_aside(rig: &dyn IntakeRig) {
    unwanted_is_set_aside(rig, Answers::ConflictFor(b'x')).await;
}

async fn unwanted_is_set_aside(rig: &dyn IntakeRig, answers: Answers) {
    let sink = ScriptedSink::new(answers);
    let inputs = ["a1", "x1", "a2", "a3", "a4", "x2"];
    for input in inputs {
        rig.put(Bytes::from_static(input.as_bytes())).await;
    }
    fed(rig, &sink, all_acknowledged(rig)).await;
    let mut aside = set_aside(rig, &sink).await;
    aside.sort();
    assert_eq!(aside, ["x1", "x2"]);
}

/// What a store can never keep is set aside like poison, and what came with it is kept.
pub async fn what_the_sink_can_never_take_is_set_aside_and_stops_nothing(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::UnfitFor(b'x'));
    let inputs = ["a1", "x1", "a2", "a3", "a4", "x2", "a5"];
    for input in inputs {
        rig.put(Bytes::from_static(input.as_bytes())).await;
    }
    fed(rig, &sink, all_acknowledged(rig)).await;
    let mut taken = sink.taken();
    taken.sort();
    assert_eq!(taken, ["a1", "a2", "a3", "a4", "a5"]);
    assert_eq!(set_aside(rig, &sink).await.len(), 2);
}

/// With nothing to do.
pub async fn an_idle_intake_stops_promptly(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::New);
    fed(rig, &sink, tokio::time::sleep(A_WHILE)).await;
}

/// With something to do that can't be done.
pub async fn an_intake_whose_sink_fails_stops_promptly(rig: &dyn IntakeRig) {
    let sink = ScriptedSink::new(Answers::Fails);
    fed(rig, &sink, async {
        rig.put(Bytes::from_static(b"a")).await;
        sink.called(1).await;
    })
    .await;
    assert_eq!(rig.unacknowledged().await, 1, "it is still the source's");
}

/// A stop in the middle loses nothing: what was not acknowledged comes again.
pub async fn what_a_stop_leaves_behind_comes_with_the_next_run(rig: &dyn IntakeRig) {
    let all: Vec<Bytes> = (0..20).map(|n| format!("input {n}").into()).collect();
    for bytes in &all {
        rig.put(bytes.clone()).await;
    }
    let first = ScriptedSink::new(Answers::Fails);
    fed(rig, &first, first.called(1)).await;
    let second = ScriptedSink::new(Answers::New);
    fed(rig, &second, all_acknowledged(rig)).await;
    let taken = second.taken();
    assert!(all.iter().all(|bytes| taken.contains(bytes)), "{} of 20 arrived", taken.len());
}

/// Runs the intake beside a story, and stops it when the story is told.
pub(super) async fn fed(rig: &dyn IntakeRig, sink: &ScriptedSink, story: impl Future<Output = ()>) {
    let (stopper, stop) = stop_pair();
    let told = async {
        let in_time = tokio::time::timeout(SOON, story).await;
        assert!(in_time.is_ok(), "the story did not end within {SOON:?}");
        stopper.stop();
    };
    let run = rig.intake().run(sink, stop);
    tokio::pin!(run, told);
    tokio::select! {
        ended = &mut run => panic!("the intake ended before it was told to: {ended:?}"),
        () = &mut told => {}
    }
    match tokio::time::timeout(PROMPTLY, run).await {
        Ok(ended) => assert!(ended.is_ok(), "{ended:?}"),
        Err(_) => panic!("the intake did not stop within {PROMPTLY:?}"),
    }
}

/// Ends when the source has nothing left to answer for.
pub(super) async fn all_acknowledged(rig: &dyn IntakeRig) {
    while rig.unacknowledged().await > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What was set aside, where the source keeps such things and where the sink does.
async fn set_aside(rig: &dyn IntakeRig, sink: &ScriptedSink) -> Vec<Bytes> {
    let mut all = rig.set_aside().await;
    all.extend(sink.set_aside());
    all
}
