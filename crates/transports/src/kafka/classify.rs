//! What a cluster's no means.

use rdkafka::error::RDKafkaErrorCode as Code;
use redeliver_core::outcome::Blame;
use redeliver_core::{Failure, Outcome};

/// What can never be written, whatever the cluster says.
pub const INVALID: &str = "INVALID_MESSAGE";
/// Nobody takes what goes there.
pub const UNROUTABLE: &str = "unroutable";

/// What became of a message that was given to librdkafka and came back with an error.
///
/// A broker's own error is its word that it doesn't have the message. An error of the client is not: what was sent may
/// have arrived, and it can't be told whether it was.
pub(super) fn undelivered(topic: &str, code: Code) -> Outcome {
    match code {
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
            Outcome::Failed(Failure::new(format!("there is no topic {topic}")).with_code(UNROUTABLE))
        }
        Code::MessageSizeTooLarge
        | Code::InvalidMessageSize
        | Code::InvalidMessage
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::InvalidTopic
        | Code::PolicyViolation
        | Code::InvalidArgument => Outcome::Refused(said(code)),
        Code::TopicAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication => Outcome::Failed(said(code).blaming(Blame::Credential)),
        // It is in the leader's log, and may yet be everywhere.
        Code::NotEnoughReplicasAfterAppend | Code::RequestTimedOut | Code::NetworkException => lost(code),
        code if (code as i32) < 0 && code != Code::Unknown => lost(code),
        code => Outcome::Failed(said(code)),
    }
}

/// The cluster does not let us in.
pub(super) fn login(why: &str) -> Outcome {
    let failure = Failure::new(format!("the cluster does not accept the login: {why}"));
    Outcome::Failed(failure.with_code("SASL_AUTHENTICATION_FAILED").blaming(Blame::Credential))
}

fn said(code: Code) -> Failure {
    Failure::new(format!("the cluster did not take it: {code}")).with_code(format!("{code:?}"))
}

fn lost(code: Code) -> Outcome {
    let reason = match code {
        Code::MessageTimedOut => "the cluster did not confirm in time".to_owned(),
        code => format!("the cluster did not confirm: {code}"),
    };
    Outcome::Lost { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_brokers_word_says_that_a_message_did_not_arrive() {
        let check = |code: Code, name: &str| {
            let outcome = undelivered("t", code);
            assert_eq!(outcome.name(), name, "{code:?}: {outcome:?}");
        };
        check(Code::MessageTimedOut, "lost");
        check(Code::BrokerTransportFailure, "lost");
        check(Code::PurgeInflight, "lost");
        check(Code::Fatal, "lost");
        check(Code::RequestTimedOut, "lost");
        check(Code::NotEnoughReplicasAfterAppend, "lost");
        check(Code::NotEnoughReplicas, "failed");
        check(Code::Unknown, "failed");
        check(Code::KafkaStorageError, "failed");
        check(Code::UnknownTopic, "failed");
        check(Code::UnknownTopicOrPartition, "failed");
        check(Code::MessageSizeTooLarge, "refused");
        check(Code::InvalidRecord, "refused");
        check(Code::TopicAuthorizationFailed, "failed");
    }
}
