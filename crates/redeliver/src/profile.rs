//! What an outbox does unless it is told otherwise: what the profile `email-outbox` of the command does. A test beside the
//! profiles compares the two.

use std::time::Duration;

use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::route::send_timeout_for;
use redeliver_core::{Policy, Route};
use redeliver_transports::smtp::SmtpConfig;

/// The route of a mail that doesn't name another.
pub const EMAIL_ROUTE: &str = "email";

/// The transport of that route.
pub const SMTP_TRANSPORT: &str = "smtp";

/// Tries 30 s, 90 s, 3.5 min, 7.5 min and 15.5 min after the first one, which is made before the caller's eyes.
pub fn email_policy() -> Policy {
    Policy {
        backoff: Backoff::Exponential {
            base: Duration::from_secs(30),
            factor: 2.0,
            cap: Duration::from_secs(8 * 60),
        },
        jitter: Jitter::None,
        max_attempts: 6,
        expires_after: None,
    }
}

/// The route [`EMAIL_ROUTE`] over [`SMTP_TRANSPORT`], retried by this policy.
///
/// A server may take ten minutes to answer for a mail: giving up earlier can send it twice. A mail that has gone out is
/// deleted; its key still answers for a week.
pub fn email_route(policy: Policy) -> Route {
    Route {
        inline_first: true,
        send_timeout: send_timeout_for(&SmtpConfig::default().timeouts()),
        retention: Duration::ZERO,
        ..Route::new(EMAIL_ROUTE, SMTP_TRANSPORT, policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_tried_at_the_times_of_the_outbox() {
        let tries: Vec<u64> =
            email_policy().timetable(10).iter().map(|slot| slot.since_first.min.as_secs()).collect();
        assert_eq!(tries, [30, 90, 210, 450, 930]);
    }
}
