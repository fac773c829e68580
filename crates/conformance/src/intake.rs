//! The rules for whatever feeds messages in.

pub mod feed;
pub mod identity;
pub mod sink;

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_engine::intake::Intake;

/// An intake, and the source that it feeds from.
#[async_trait]
pub trait IntakeRig: Send + Sync {
    /// The intake under test, on its way from the source.
    fn intake(&self) -> &dyn Intake;

    /// Puts something good into the source. It is to reach the sink as a message whose content is these bytes.
    async fn put(&self, bytes: Bytes);

    /// Puts something into the source that nobody can make a message of.
    async fn put_poison(&self);

    /// How many things the source still answers for: those that were neither acknowledged nor set aside.
    async fn unacknowledged(&self) -> usize;

    /// What was set aside beside the source, byte for byte as it was put. What was brought to the sink to be kept as dead is
    /// known to the sink.
    async fn set_aside(&self) -> Vec<Bytes>;

    /// An intake of another name on another source of the same name, which gives its n-th input the place that ours gives
    /// its n-th.
    async fn twin(&self) -> Box<dyn IntakeRig>;
}

#[doc(hidden)]
pub fn subject(rig: &dyn IntakeRig) -> &dyn IntakeRig {
    rig
}

/// Makes one test of every rule for intakes. The expression makes a fresh [`IntakeRig`].
#[macro_export]
macro_rules! intake_tests {
    ($rig:expr) => {
        $crate::each_rule! { intake, $rig,
            feed {
                everything_good_reaches_the_sink
                nothing_is_acknowledged_before_the_sink_has_answered
                what_the_sink_could_not_take_is_brought_again
                a_sink_that_fails_is_not_hammered
                a_duplicate_is_acknowledged
                poison_is_set_aside_and_stops_nothing
                nothing_but_poison_is_set_aside
                each_answer_is_for_its_own_input
                what_has_the_key_of_another_message_is_set_aside
                what_the_sink_can_never_take_is_set_aside_and_stops_nothing
                an_idle_intake_stops_promptly
                an_intake_whose_sink_fails_stops_promptly
                what_a_stop_leaves_behind_comes_with_the_next_run
            }
            identity {
                inputs_of_two_sources_are_two_messages
                poison_of_two_sources_is_kept_for_each
                a_refused_copy_has_a_key_of_its_own
                what_is_read_again_has_the_same_key
            }
        }
    };
}
