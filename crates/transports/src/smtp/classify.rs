//! What a server's no means: worth another try, never, or trouble with the destination.

use std::time::Duration;

use redeliver_core::Failure;
use redeliver_core::classify::Meaning;
use redeliver_core::outcome::Blame;

use super::reply::{Reply, Stage};

/// How long a server that asks for less is left alone by everybody.
pub const THROTTLE_WAIT: Duration = Duration::from_secs(60);

/// How long a mail waits at least for a mailbox that is full: whoever it belongs to has to empty it.
pub const FULL_WAIT: Duration = Duration::from_secs(3_600);

/// Words by which servers say that they don't like where a mail comes from, whoever it is for.
const REPUTATION: [&str; 18] = [
    "spamhaus",
    "barracuda",
    "spamcop",
    "sorbs",
    "proofpoint",
    "dnsbl",
    "rbl",
    "blocklist",
    "block list",
    "blacklist",
    "black list",
    "blocked",
    "banned",
    "reputation",
    "poor sender",
    "listed at",
    "listed in",
    "client host rejected",
];
const GREYLISTING: [&str; 4] = ["greylist", "graylist", "grey-list", "gray-list"];
const LOGIN_WANTED: [&str; 3] =
    ["authentication required", "authentication is required", "must authenticate"];
const RATE: [&str; 5] = ["rate limit", "ratelimit", "too many", "throttl", "too fast"];
const FULL: [&str; 4] = ["mailbox full", "mailbox is full", "over quota", "quota exceeded"];

/// What a reply that isn't the hoped-for one means.
///
/// A yes where none was asked for, or an out-of-step 503, is worth another try; see [`is_out_of_step`].
pub fn classify(stage: Stage, reply: &Reply) -> Meaning {
    match reply.code / 100 {
        5 => lasting(stage, reply),
        4 => passing(stage, reply),
        _ => Meaning::Failed(Blame::Message),
    }
}

/// Whether a reply shows that server and client no longer talk about the same thing, so that a fresh connection may
/// help.
pub fn is_out_of_step(stage: Stage, reply: &Reply) -> bool {
    let wanted = match stage {
        Stage::Data => 3,
        Stage::Connect
        | Stage::Greeting
        | Stage::Ehlo
        | Stage::StartTls
        | Stage::Auth
        | Stage::Mail
        | Stage::Rcpt
        | Stage::Dot
        | Stage::Rset => 2,
    };
    match reply.code / 100 {
        class @ (2 | 3) => class != wanted,
        _ => reply.code == 503,
    }
}

/// The failure that a reply is.
pub fn failure(stage: Stage, reply: &Reply) -> Failure {
    let failure = Failure::new(format!("{}: {reply}", stage.name())).with_code(reply.code.to_string());
    match classify(stage, reply) {
        Meaning::Failed(Blame::Throttle) => failure.blaming(Blame::Throttle).with_retry_after(THROTTLE_WAIT),
        Meaning::Failed(Blame::Message) if is_full(stage, reply) => failure.with_retry_after(FULL_WAIT),
        Meaning::Failed(blame) => failure.blaming(blame),
        Meaning::LoginRefused => failure.blaming(Blame::Credential),
        Meaning::Refused => failure,
    }
}

fn passing(stage: Stage, reply: &Reply) -> Meaning {
    let says = |words: &[&str]| says(reply, words);
    let blame = match (stage, reply.code, reply.enhanced) {
        (Stage::Auth, 432, _) => return Meaning::LoginRefused,
        // The first try is always turned away, and the second one is not: this message's own affair.
        _ if says(&GREYLISTING) => Blame::Message,
        (Stage::Rcpt | Stage::Dot, _, Some((4, 2, 2))) => Blame::Message,
        // The rest of them can come with the next try.
        (Stage::Rcpt, 452, _) => Blame::Message,
        (Stage::Auth | Stage::StartTls | Stage::Ehlo, ..) => Blame::Connection,
        (_, _, Some((4, 7, _))) => Blame::Throttle,
        _ if says(&RATE) => Blame::Throttle,
        (Stage::Connect | Stage::Greeting, ..) | (_, 421, _) | (_, _, Some((4, 3, 2) | (4, 4, _))) => {
            Blame::Connection
        }
        _ if says(&REPUTATION) => Blame::Connection,
        _ => Blame::Message,
    };
    Meaning::Failed(blame)
}

fn lasting(stage: Stage, reply: &Reply) -> Meaning {
    let says = |words: &[&str]| says(reply, words);
    let (message, connection) = (Meaning::Failed(Blame::Message), Meaning::Failed(Blame::Connection));
    match (stage, reply.code, reply.enhanced) {
        (_, 503, _) => message,
        (Stage::Auth, ..) => Meaning::LoginRefused,
        (Stage::Connect | Stage::Greeting | Stage::Ehlo | Stage::StartTls | Stage::Rset, ..) => connection,
        (_, 530 | 534 | 535 | 538, _) | (_, _, Some((5, 7, 8 | 9 | 11 | 13 | 14))) => Meaning::LoginRefused,
        (Stage::Mail | Stage::Rcpt, ..) if says(&LOGIN_WANTED) => Meaning::LoginRefused,
        // It may be emptied, or there are too many recipients for one mail.
        (Stage::Rcpt, 552, None) => message,
        _ if is_full(stage, reply) => message,
        // The recipient's own address is at fault, whatever else is said about it.
        (_, _, Some((5, 1, _))) => Meaning::Refused,
        (_, _, Some((5, 3, 2))) => connection,
        _ if says(&REPUTATION) => connection,
        // A rule of the server's about us, before it has seen the mail.
        (Stage::Mail | Stage::Rcpt | Stage::Data, _, Some((5, 7, _))) => message,
        (Stage::Mail | Stage::Rcpt | Stage::Data | Stage::Dot, ..) => Meaning::Refused,
    }
}

/// Whether the recipient's mailbox is full.
fn is_full(stage: Stage, reply: &Reply) -> bool {
    match (stage, reply.code, reply.enhanced) {
        (_, _, Some((4 | 5, 2, 2))) => true,
        (Stage::Rcpt, 552, None) if !says(reply, &RATE) => true,
        (Stage::Rcpt, 400.., None) => says(reply, &FULL),
        _ => false,
    }
}

fn says(reply: &Reply, words: &[&str]) -> bool {
    let text = reply.text.to_lowercase();
    words.iter().any(|word| match *word {
        // Too short to be looked for inside other words.
        "rbl" => text.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word),
        word => text.contains(word),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(text: &str) -> Reply {
        Reply::parse([text]).unwrap()
    }

    #[test]
    fn replies_mean_what_they_say_at_their_stage() {
        use Stage::*;
        const MESSAGE: Meaning = Meaning::Failed(Blame::Message);
        const CONNECTION: Meaning = Meaning::Failed(Blame::Connection);
        const THROTTLE: Meaning = Meaning::Failed(Blame::Throttle);
        const REFUSED: Meaning = Meaning::Refused;
        const LOGIN: Meaning = Meaning::LoginRefused;
        for (stage, text, meaning) in [
            // At the door: about us or about it, never about the message.
            (Greeting, "554 go away", CONNECTION),
            (Greeting, "554 5.7.1 your IP is on our blacklist", CONNECTION),
            (Greeting, "521 does not accept mail", CONNECTION),
            (Greeting, "421 too busy", CONNECTION),
            (Greeting, "421 4.7.0 too many connections", THROTTLE),
            (Greeting, "450 busy", CONNECTION),
            (Ehlo, "550 bad name", CONNECTION),
            (Ehlo, "504 bad name", CONNECTION),
            (Ehlo, "421 4.3.2 shutting down", CONNECTION),
            (StartTls, "454 TLS not available", CONNECTION),
            (StartTls, "554 no", CONNECTION),
            // Logins.
            (Auth, "535 5.7.8 bad credentials", LOGIN),
            (Auth, "535 authentication failed", LOGIN),
            (Auth, "534 5.7.9 stronger mechanism wanted", LOGIN),
            (Auth, "538 encryption wanted", LOGIN),
            (Auth, "530 STARTTLS first", LOGIN),
            (Auth, "504 mechanism unknown", LOGIN),
            (Auth, "554 no", LOGIN),
            (Auth, "454 4.7.0 temporary authentication failure", CONNECTION),
            (Auth, "421 bye", CONNECTION),
            (Auth, "432 4.7.12 password transition needed", LOGIN),
            (Mail, "530 5.7.0 authentication required", LOGIN),
            (Mail, "530 must issue STARTTLS first", LOGIN),
            (Mail, "550 5.7.1 authentication required", LOGIN),
            (Rcpt, "554 5.7.8 login again", LOGIN),
            (Rcpt, "550 5.7.13 account disabled", LOGIN),
            (Dot, "535 login expired", LOGIN),
            // Senders.
            (Mail, "550 5.1.8 bad sender", REFUSED),
            (Mail, "553 sender not allowed", REFUSED),
            (Mail, "501 syntax", REFUSED),
            (Mail, "552 5.3.4 too big", REFUSED),
            (Mail, "452 4.3.1 no space", MESSAGE),
            (Mail, "451 4.1.8 sender's domain not found", MESSAGE),
            (Mail, "421 4.4.2 idle too long", CONNECTION),
            // Recipients.
            (Rcpt, "550 5.1.1 no such user", REFUSED),
            (Rcpt, "550 no such user", REFUSED),
            (Rcpt, "551 5.1.6 moved", REFUSED),
            (Rcpt, "553 5.1.3 bad address", REFUSED),
            (Rcpt, "556 5.1.10 null MX", REFUSED),
            (Rcpt, "501 5.1.3 syntax", REFUSED),
            (Rcpt, "550 5.2.1 mailbox disabled", REFUSED),
            (Rcpt, "550 5.4.1 access denied", REFUSED),
            (Rcpt, "552 5.2.2 mailbox full", MESSAGE),
            (Rcpt, "552 storage", MESSAGE),
            (Rcpt, "552 too many recipients", MESSAGE),
            (Rcpt, "550 mailbox is full", MESSAGE),
            (Rcpt, "552 5.3.4 too big", REFUSED),
            (Rcpt, "452 4.2.2 over quota", MESSAGE),
            (Rcpt, "450 4.2.0 greylisted", MESSAGE),
            (Rcpt, "451 4.7.1 Greylisting in action, come back", MESSAGE),
            (Rcpt, "450 4.7.1 gray-listed", MESSAGE),
            (Rcpt, "450 mailbox busy", MESSAGE),
            (Rcpt, "451 local error", MESSAGE),
            (Rcpt, "452 4.5.3 too many recipients", MESSAGE),
            (Rcpt, "452 too many recipients", MESSAGE),
            (Rcpt, "451 4.7.1 slow down", THROTTLE),
            (Rcpt, "450 4.7.28 rate limit of your IP", THROTTLE),
            (Rcpt, "421 closing", CONNECTION),
            (Rcpt, "421 4.7.0 rate limited", THROTTLE),
            (Rcpt, "451 4.4.3 DNS", CONNECTION),
            // Reputation is never the recipient's fault.
            (Rcpt, "554 5.7.1 Service unavailable; Client host blocked using zen.spamhaus.org", CONNECTION),
            (Rcpt, "550 listed at Barracuda", CONNECTION),
            (Rcpt, "550 5.7.1 poor reputation", CONNECTION),
            (Rcpt, "553 found in RBL", CONNECTION),
            (Rcpt, "550 no such user marblehead", REFUSED),
            (Rcpt, "550 5.1.1 user blocked", REFUSED),
            (Rcpt, "550 5.7.1 relaying denied", MESSAGE),
            (Rcpt, "550 5.7.26 unauthenticated", MESSAGE),
            (Rcpt, "450 blocked for now, see blocklist", CONNECTION),
            // The mail itself.
            (Data, "554 no valid recipients", REFUSED),
            (Data, "451 not now", MESSAGE),
            (Data, "503 RCPT first", MESSAGE),
            (Data, "421 bye", CONNECTION),
            (Dot, "554 5.6.0 bad content", REFUSED),
            (Dot, "554 5.7.1 looks like spam", REFUSED),
            (Dot, "550 5.7.1 virus", REFUSED),
            (Dot, "552 too big", REFUSED),
            (Dot, "552 5.2.2 mailbox full", MESSAGE),
            (Dot, "550 rejected: IP on blacklist", CONNECTION),
            (Dot, "451 4.3.0 try later", MESSAGE),
            (Dot, "452 4.3.1 disk full", MESSAGE),
            (Dot, "421 4.3.2 shutting down", CONNECTION),
            (Dot, "451 4.7.0 too fast", THROTTLE),
            (Dot, "503 what?", MESSAGE),
            // An enhanced code that contradicts its reply says nothing.
            (Rcpt, "550 4.2.2 full", REFUSED),
            (Rcpt, "450 5.1.1 no such user", MESSAGE),
            (Mail, "250 5.7.8 odd", MESSAGE),
        ] {
            assert_eq!(classify(stage, &reply(text)), meaning, "{stage:?} {text}");
        }
    }

    #[test]
    fn out_of_step_is_what_nobody_asked_for() {
        for (stage, text, out) in [
            (Stage::Data, "354 go", false),
            (Stage::Data, "250 ok", true),
            (Stage::Rcpt, "250 ok", false),
            (Stage::Rcpt, "354 go", true),
            (Stage::Mail, "503 EHLO first", true),
            (Stage::Mail, "550 no", false),
            (Stage::Rcpt, "451 later", false),
        ] {
            assert_eq!(is_out_of_step(stage, &reply(text)), out, "{stage:?} {text}");
        }
    }

    #[test]
    fn a_failure_says_where_and_what_and_blames_whom_it_should() {
        let failed = failure(Stage::Rcpt, &reply("451 4.7.1 slow down"));
        assert_eq!(&*failed.text, "RCPT: 451 4.7.1 slow down");
        assert_eq!((failed.code.as_deref(), failed.blame), (Some("451"), Blame::Throttle));
        assert_eq!(failed.retry_after, Some(THROTTLE_WAIT));
        assert_eq!(failure(Stage::Auth, &reply("535 no")).blame, Blame::Credential);
        assert_eq!(failure(Stage::Rcpt, &reply("550 no")).blame, Blame::Message);
    }

    #[test]
    fn a_full_mailbox_is_given_time_to_be_emptied() {
        for (stage, text, wait) in [
            (Stage::Rcpt, "452 4.2.2 over quota", Some(FULL_WAIT)),
            (Stage::Rcpt, "552 5.2.2 mailbox full", Some(FULL_WAIT)),
            (Stage::Dot, "552 5.2.2 mailbox full", Some(FULL_WAIT)),
            (Stage::Rcpt, "552 storage", Some(FULL_WAIT)),
            (Stage::Rcpt, "552 mailbox full, too many mails", Some(FULL_WAIT)),
            (Stage::Rcpt, "550 mailbox is full", Some(FULL_WAIT)),
            (Stage::Rcpt, "450 user over quota", Some(FULL_WAIT)),
            // The disk of the server, and the number of recipients, are other matters.
            (Stage::Dot, "452 4.3.1 disk full", None),
            (Stage::Rcpt, "452 4.5.3 too many recipients", None),
            (Stage::Rcpt, "452 too many recipients", None),
            (Stage::Rcpt, "552 too many recipients", None),
            (Stage::Rcpt, "450 4.2.0 greylisted", None),
        ] {
            let failed = failure(stage, &reply(text));
            assert_eq!((failed.retry_after, failed.blame), (wait, Blame::Message), "{stage:?} {text}");
        }
    }

    proptest! {
        /// The three rules that hold whatever is said.
        #[test]
        fn a_4yz_is_never_refused_and_nothing_at_the_door_is_either(
            code in 200u16..600,
            text in "([245]\\.[0-9]{1,2}\\.[0-9]{1,2} )?[ -~]{0,60}",
            at in 0..Stage::ALL.len(),
        ) {
            let stage = Stage::ALL[at];
            let meaning = classify(stage, &reply(&format!("{code} {text}")));
            let at_the_door = matches!(stage, Stage::Connect | Stage::Greeting | Stage::Ehlo | Stage::StartTls | Stage::Auth);
            if code < 500 || at_the_door {
                prop_assert_ne!(meaning, Meaning::Refused);
            }
        }
    }
}
