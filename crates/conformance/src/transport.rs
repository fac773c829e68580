//! The rules for whatever carries messages out.

pub mod carry;
pub mod uncertain;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_core::{AttemptId, Content, Message};
use redeliver_engine::transport::Transport;

/// A transport, and a peer at its other end that behaves as it is told.
#[async_trait]
pub trait TransportRig: Send + Sync {
    /// The transport under test, on its way to the peer.
    fn transport(&self) -> &dyn Transport;

    /// Makes the peer behave like this from now on.
    async fn behave(&self, manner: Manner);

    /// What the peer has been brought so far, whatever it answered, in order. A peer that is away sees nothing; a
    /// silent one may see something or nothing.
    async fn seen(&self) -> Vec<Seen>;

    /// By what the receiver can tell this carrying from others: its attempt id, unless the protocol has a name for
    /// each message that must not change from try to try.
    fn name_of(&self, message: &Message) -> String {
        AttemptId::of(message).to_string()
    }

    /// The n-th thing to carry, with whatever target and attributes the transport needs.
    fn content(&self, n: u32) -> Content {
        Content::of_bytes(format!("body {n}"))
    }
}

/// How a peer behaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It takes everything: 250, a confirm, a 2xx.
    Takes,
    /// It says that this won't work now: 451, a nack, a 503.
    Fails,
    /// It says that this will never work: 550, an unroutable key, a 400.
    Refuses,
    /// It lets itself be connected to, and says nothing.
    Silent,
    /// It takes everything, and says so [`LATE`] after it has it.
    AnswersLate,
    /// It reads everything, and then closes the connection without an answer.
    CutsOff,
    /// It refuses the connection.
    Away,
}

/// How long a late answer takes: longer than anybody here waits for one.
pub const LATE: Duration = Duration::from_secs(15);

/// One carrying as the peer saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The attempt id that came with it, or whatever else names it: see [`TransportRig::name_of`].
    pub attempt_id: Option<String>,
    /// The bytes, where the transport carries them as they are; `None` where it makes something else of them.
    pub bytes: Option<Bytes>,
}

#[doc(hidden)]
pub fn subject(rig: &dyn TransportRig) -> &dyn TransportRig {
    rig
}

/// Makes one test of every rule for transports. The expression makes a fresh [`TransportRig`].
#[macro_export]
macro_rules! transport_tests {
    ($rig:expr) => {
        $crate::each_rule! { transport, $rig,
            carry {
                what_the_peer_takes_is_delivered
                what_the_peer_cannot_take_now_is_worth_another_try
                what_the_peer_refuses_is_refused
                a_peer_that_is_away_says_nothing_against_the_message
                silence_is_never_taken_for_an_answer
                a_carrying_that_was_given_up_does_not_spoil_the_next
                a_transport_never_retries_by_itself
                the_bytes_arrive_as_they_were_sent
                the_attempt_id_travels
                a_carrying_after_a_loss_has_the_same_attempt_id
                a_retry_has_an_attempt_id_of_its_own
                what_failed_can_be_carried_again
                a_peer_that_comes_back_is_reached_again
                carryings_at_once_do_not_mix
                the_same_target_is_the_same_destination
                odd_content_brings_nobody_down
            }
            uncertain {
                an_answer_after_the_time_out_is_lost
                a_late_answer_is_not_taken_for_the_next
                a_connection_cut_after_the_bytes_left_is_lost
                late_answers_use_up_the_budget_of_unconfirmed_sends
                cut_connections_use_up_the_budget_of_unconfirmed_sends
                a_panic_after_the_bytes_left_is_lost
            }
        }
    };
}
