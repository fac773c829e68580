//! A script as it is written in a config: one step for each carrying of a message.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::time::{parse_span, show_span};

/// How a scripted transport behaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedConfig {
    /// What happens to each message, carrying by carrying.
    pub script: Script,
    /// How long each carrying takes.
    pub latency: Duration,
}

/// The steps that every message goes through. The last one repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
}

/// What one carrying comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `deliver`, or `deliver 250 queued` with a receipt: the other side took it.
    Deliver(Option<Arc<str>>),
    /// `hand_off`: somebody outside will report.
    HandOff,
    /// `fail 451 try later`: worth another try.
    Fail(Reply),
    /// `refuse 550 no such user`: never worth another.
    Refuse(Reply),
    /// `throttle 30s`: the destination asks everybody to slow down for so long.
    Throttle(Duration),
    /// `refuse_login 535 bad password`: the destination doesn't accept our login.
    RefuseLogin(Reply),
    /// `unreachable`: no connection could be made.
    Unreachable,
    /// `defer 30s`: nothing was sent, and the message goes on with the next step after so long.
    Defer(Duration),
    /// `lose`: nobody knows.
    Lose,
    /// `hang`: no answer until the carrying is given up.
    Hang,
    /// `panic`: the carrying brings down its task.
    Panic,
}

/// A code and what was said with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The other side's code.
    pub code: Arc<str>,
    /// What was said.
    pub text: Arc<str>,
}

impl Script {
    /// The most steps that a script may have.
    pub const STEPS_MAX: usize = 1_000;

    /// A script of these steps; `None` if there are none, or too many.
    pub fn new(steps: Vec<Step>) -> Option<Self> {
        (1..=Self::STEPS_MAX).contains(&steps.len()).then_some(Self { steps })
    }

    /// What the carrying with this number comes to, the first being 0.
    pub fn step(&self, carrying: usize) -> &Step {
        let last = self.steps.len().saturating_sub(1);
        self.steps.get(carrying.min(last)).unwrap_or(&Step::Deliver(None))
    }
}

impl Default for Script {
    /// Everything is delivered.
    fn default() -> Self {
        Self { steps: vec![Step::Deliver(None)] }
    }
}

impl Step {
    /// The words that a step can begin with.
    pub const WORDS: [&str; 11] = [
        "deliver",
        "hand_off",
        "fail",
        "refuse",
        "throttle",
        "refuse_login",
        "unreachable",
        "defer",
        "lose",
        "hang",
        "panic",
    ];

    /// Reads a step such as `deliver`, `fail 451 try later` or `defer 30s`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, rest) = first_word(text);
        let plain = |step: Self| match rest {
            "" => Ok(step),
            _ => Err(format!("{word} stands alone, without {rest:?}")),
        };
        let span = || {
            parse_span(rest).map_err(|_| format!("{word} needs a span, as in \"{word} 30s\", not {rest:?}"))
        };
        match word {
            "deliver" => Ok(Self::Deliver((!rest.is_empty()).then(|| rest.into()))),
            "hand_off" => plain(Self::HandOff),
            "fail" => Ok(Self::Fail(Reply::parse(rest, "451", "scripted failure"))),
            "refuse" => Ok(Self::Refuse(Reply::parse(rest, "550", "scripted refusal"))),
            "throttle" => span().map(Self::Throttle),
            "refuse_login" => {
                Ok(Self::RefuseLogin(Reply::parse(rest, "535", "scripted refusal of the login")))
            }
            "unreachable" => plain(Self::Unreachable),
            "defer" => span().map(Self::Defer),
            "lose" => plain(Self::Lose),
            "hang" => plain(Self::Hang),
            "panic" => plain(Self::Panic),
            _ => Err(format!("a step begins with {}, not {word:?}", Self::WORDS.join(", "))),
        }
    }

    /// Writes what [`Step::parse`] reads.
    pub fn show(&self) -> String {
        match self {
            Self::Deliver(None) => "deliver".to_owned(),
            Self::Deliver(Some(receipt)) => format!("deliver {receipt}"),
            Self::HandOff => "hand_off".to_owned(),
            Self::Fail(reply) => format!("fail {} {}", reply.code, reply.text),
            Self::Refuse(reply) => format!("refuse {} {}", reply.code, reply.text),
            Self::Throttle(span) => format!("throttle {}", show_span(*span)),
            Self::RefuseLogin(reply) => format!("refuse_login {} {}", reply.code, reply.text),
            Self::Unreachable => "unreachable".to_owned(),
            Self::Defer(span) => format!("defer {}", show_span(*span)),
            Self::Lose => "lose".to_owned(),
            Self::Hang => "hang".to_owned(),
            Self::Panic => "panic".to_owned(),
        }
    }
}

impl Reply {
    /// The first word is the code, the rest what was said; what is missing takes the usual words.
    fn parse(text: &str, code: &str, said: &str) -> Self {
        let (first, rest) = first_word(text);
        let or = |given: &str, usual: &str| if given.is_empty() { usual } else { given }.into();
        Self { code: or(first, code), text: or(rest, said) }
    }
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_written() {
        for text in [
            "deliver",
            "deliver 250 queued as 17",
            "hand_off",
            "fail 451 try later",
            "refuse 550 no such user",
            "throttle 30s",
            "refuse_login 535 bad password",
            "unreachable",
            "defer 1h30m",
            "lose",
            "hang",
            "panic",
        ] {
            assert_eq!(Step::parse(text).unwrap().show(), text);
        }
    }

    #[test]
    fn every_word_begins_a_step() {
        for word in Step::WORDS {
            let spelled = [word.to_owned(), format!("{word} 1s")];
            assert!(spelled.iter().any(|text| Step::parse(text).is_ok()), "{word}");
        }
    }

    #[test]
    fn a_failure_without_a_code_takes_the_usual_one() {
        assert_eq!(Step::parse("fail").unwrap().show(), "fail 451 scripted failure");
        assert_eq!(Step::parse(" refuse  552 ").unwrap().show(), "refuse 552 scripted refusal");
    }

    #[test]
    fn what_is_no_step_is_said_to_be_none() {
        for text in ["", "succeed", "defer", "defer soon", "hang 3s", "throttle"] {
            assert!(Step::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_step_repeats() {
        let script = Script::new(vec![Step::Lose, Step::Deliver(None)]).unwrap();
        assert_eq!([0, 1, 2, 900].map(|n| script.step(n).show()), ["lose", "deliver", "deliver", "deliver"]);
        assert_eq!(Script::new(vec![]), None);
    }
}
