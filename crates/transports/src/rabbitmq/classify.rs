//! What a broker's no means.

use redeliver_core::outcome::Blame;
use redeliver_core::{Failure, Outcome};

use super::amqp::{Address, Closed, code};
use super::dial::is_login_refused;

/// What can never be published, whatever the broker says.
pub const INVALID: &str = "INVALID_MESSAGE";
/// Nobody takes what goes there.
pub const UNROUTABLE: &str = "unroutable";
/// The broker could not take it.
pub const NACK: &str = "nack";

/// The broker said that it doesn't have a message: its queue is full, or it failed to write.
pub(super) fn nack() -> Failure {
    Failure::new("the broker could not take it: its queue may be full").with_code(NACK)
}

/// A message came back. The queue may be made yet, so it is worth another try.
pub(super) fn unroutable(address: &Address, code: u16, text: &str) -> Failure {
    let (exchange, key) = (address.exchange.as_str(), address.routing_key.as_str());
    let text = match exchange {
        "" => format!("there is no queue {key} ({code} {text})"),
        exchange => format!("the exchange {exchange} leads nowhere for {key} ({code} {text})"),
    };
    Failure::new(text).with_code(UNROUTABLE)
}

/// The broker does not let us in.
pub(super) fn login(why: &Closed) -> Option<Failure> {
    is_login_refused(why).then(|| {
        Failure::new(format!("the broker does not accept the login: {why}"))
            .with_code("ACCESS_REFUSED")
            .blaming(Blame::Credential)
    })
}

/// What it means for a message that the broker ended the channel because of it; `None` if that says nothing about it.
pub(super) fn refusal(why: &Closed) -> Option<Outcome> {
    let Closed::Said { code, text } = why else { return None };
    let failure = Failure::new(format!("the broker refused it: {code} {text}")).with_code(code.to_string());
    match *code {
        code::CONTENT_TOO_LARGE | code::PRECONDITION_FAILED => Some(Outcome::Refused(failure)),
        code::ACCESS_REFUSED => Some(Outcome::Failed(failure.blaming(Blame::Credential))),
        code::NOT_FOUND => Some(Outcome::Failed(failure.with_code(UNROUTABLE))),
        _ => Some(Outcome::Failed(failure)),
    }
}
