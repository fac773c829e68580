//! What a handing over comes to for the message: one verdict, or one for each recipient.

use std::cmp::Reverse;
use std::sync::Arc;

use redeliver_core::classify::Meaning;
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::outcome::{Blame, FAILURE_TEXT_BYTES_MAX};
use redeliver_core::{Failure, Message, Outcome};

use super::classify::{classify, failure};
use super::reply::{Reply, Stage};
use super::session::{End, Handed};

/// Recipients of one try: the place of each in the mail, and the place of its address among those that were said.
pub(super) type Places = Vec<(u32, usize)>;

/// The outcome of a try that was for the recipients at these places, of `count` that the mail has.
pub(super) fn outcome(message: &Message, count: u32, places: &Places, handed: &Handed) -> Outcome {
    let whole = match &handed.end {
        End::Unknown(reason) => return Outcome::Lost { reason: reason.as_str().into() },
        End::Said(stage, reply) => Some((*stage, reply)),
        End::Nobody => None,
    };
    let verdicts: Vec<RecipientVerdict> = places
        .iter()
        .map(|(index, at)| RecipientVerdict { index: *index, fate: fate(handed.answers.get(*at), whole) })
        .collect();
    let all = |is: fn(&Fate) -> bool| verdicts.iter().all(|verdict| is(&verdict.fate));
    let refused_before = message.recipients.iter().any(|known| matches!(known.fate, Fate::Refused(_)));
    if all(|fate| matches!(fate, Fate::Delivered)) && !refused_before {
        return Outcome::Delivered { receipt: whole.map(|(_, reply)| receipt(reply)) };
    }
    if all(|fate| matches!(fate, Fate::Failed(_))) {
        return Outcome::Failed(gravest(verdicts));
    }
    if count == 1
        && let [RecipientVerdict { fate: Fate::Refused(failure), .. }] = &verdicts[..]
    {
        return Outcome::Refused(failure.clone());
    }
    // Even where all are refused: the list of who and why stays with the message.
    Outcome::Partial(verdicts)
}

fn fate(answer: Option<&Reply>, whole: Option<(Stage, &Reply)>) -> Fate {
    match (answer, whole) {
        (Some(answer), Some((stage, last))) if answer.is_positive() => match last.is_positive() {
            true => Fate::Delivered,
            false => negative(stage, last),
        },
        (Some(answer), _) if !answer.is_positive() => negative(Stage::Rcpt, answer),
        (Some(_) | None, _) => Fate::Failed(Failure::new("the server said nothing about this recipient")),
    }
}

fn negative(stage: Stage, reply: &Reply) -> Fate {
    let failure = failure(stage, reply);
    match classify(stage, reply) {
        Meaning::Refused => Fate::Refused(failure),
        Meaning::Failed(_) | Meaning::LoginRefused => Fate::Failed(failure),
    }
}

/// The failure that says most about the destination; of several, one that is soonest worth another try.
fn gravest(verdicts: Vec<RecipientVerdict>) -> Failure {
    let weight = |failure: &Failure| match failure.blame {
        Blame::Message => 0,
        Blame::Throttle => 1,
        Blame::Connection => 2,
        Blame::Credential => 3,
    };
    let failures = verdicts.into_iter().filter_map(|verdict| match verdict.fate {
        Fate::Failed(failure) => Some(failure),
        Fate::Delivered | Fate::Refused(_) => None,
    });
    let soonest = |failure: &Failure| (weight(failure), Reverse(failure.retry_after));
    failures.max_by_key(soonest).unwrap_or_else(|| Failure::new("nobody was left to send it to"))
}

fn receipt(reply: &Reply) -> Arc<str> {
    let text = reply.to_string();
    text[..text.floor_char_boundary(FAILURE_TEXT_BYTES_MAX)].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use redeliver_core::accept::{NewMessage, admit};
    use redeliver_core::policy::{Backoff, Jitter};
    use redeliver_core::{Content, MessageId, Policy, Route, Timestamp};
    use std::time::Duration;

    fn message() -> Message {
        let backoff = Backoff::Table(vec![Duration::from_secs(1)]);
        let policy = Policy { backoff, jitter: Jitter::None, max_attempts: 9, expires_after: None };
        let route = Route::new("email", "smtp", policy);
        let new = NewMessage::new("email", Content::default());
        admit(new, &route, MessageId::own(1), None, Timestamp::from_ms(0)).message
    }

    fn reply(text: &str) -> Reply {
        Reply::parse([text]).unwrap()
    }

    /// What a try with these answers to its recipients, and this last word, comes to, in short.
    fn check(answers: &[&str], last: Option<(Stage, &str)>, expected: &str) {
        let count = answers.len() as u32;
        let places = (0..count).map(|index| (index, index as usize)).collect();
        let end = last.map_or(End::Nobody, |(stage, text)| End::Said(stage, reply(text)));
        let handed = Handed { answers: answers.iter().map(|text| reply(text)).collect(), end };
        assert_eq!(short(&outcome(&message(), count, &places, &handed)), expected, "{answers:?} {last:?}");
    }

    fn short(outcome: &Outcome) -> String {
        match outcome {
            Outcome::Delivered { receipt } => format!("delivered {}", receipt.as_deref().unwrap_or("-")),
            Outcome::Failed(failure) => {
                format!("failed {} {:?}", failure.code.as_deref().unwrap_or("-"), failure.blame)
            }
            Outcome::Refused(failure) => format!("refused {}", failure.code.as_deref().unwrap_or("-")),
            Outcome::Lost { .. } => "lost".to_owned(),
            Outcome::Partial(verdicts) => {
                let each = verdicts.iter().map(|verdict| match &verdict.fate {
                    Fate::Delivered => format!("{}d", verdict.index),
                    Fate::Failed(_) => format!("{}f", verdict.index),
                    Fate::Refused(_) => format!("{}r", verdict.index),
                });
                each.collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        }
    }

    const OK: &str = "250 ok";
    const NO: &str = "550 5.1.1 no";
    const LATER: &str = "450 later";
    const KEPT: Option<(Stage, &str)> = Some((Stage::Dot, "250 kept"));

    #[test]
    fn one_recipient_is_the_whole_story() {
        check(&[OK], KEPT, "delivered 250 kept");
        check(&[OK], Some((Stage::Dot, "451 later")), "failed 451 Message");
        check(&[OK], Some((Stage::Dot, "554 spam")), "refused 554");
        check(&[OK], Some((Stage::Data, "554 no")), "refused 554");
        check(&[NO], None, "refused 550");
        check(&[LATER], None, "failed 450 Message");
        check(&["552 5.2.2 full"], None, "failed 552 Message");
    }

    #[test]
    fn several_recipients_have_a_verdict_each() {
        check(&[OK, OK], KEPT, "delivered 250 kept");
        check(&[OK, NO, LATER], KEPT, "0d 1r 2f");
        check(&[OK, NO], Some((Stage::Dot, "451 x")), "0f 1r");
        check(&[OK, LATER], Some((Stage::Dot, "554 x")), "0r 1f");
        check(&[NO, NO], None, "0r 1r");
        check(&[NO, LATER], None, "0r 1f");
        check(&[LATER, "450 4.7.1 slow down"], None, "failed 450 Throttle");
        check(&[OK, LATER], Some((Stage::Dot, "421 bye")), "failed 421 Connection");
    }

    #[test]
    fn silence_after_the_dot_is_lost_whatever_was_said_before() {
        let handed = Handed { answers: vec![reply(OK), reply(NO)], end: End::Unknown("x".to_owned()) };
        assert_eq!(short(&outcome(&message(), 2, &vec![(0, 0), (1, 1)], &handed)), "lost");
    }

    #[test]
    fn who_was_refused_before_is_not_forgotten_when_the_rest_have_it() {
        let refused = RecipientVerdict { index: 0, fate: Fate::Refused(Failure::new("no")) };
        let message = Message { recipients: vec![refused], ..message() };
        let handed = Handed { answers: vec![reply(OK)], end: End::Said(Stage::Dot, reply(OK)) };
        assert_eq!(short(&outcome(&message, 2, &vec![(1, 0)], &handed)), "1d");
    }

    #[test]
    fn two_recipients_with_one_address_share_its_answer() {
        let handed = Handed { answers: vec![reply(NO), reply(OK)], end: End::Said(Stage::Dot, reply(OK)) };
        assert_eq!(short(&outcome(&message(), 3, &vec![(0, 0), (1, 1), (2, 0)], &handed)), "0r 1d 2r");
    }
}
