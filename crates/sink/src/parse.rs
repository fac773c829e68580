//! How a script is written: `[at STAGE | after dot] ACTION [xN] [for PATTERN]`, one rule on a line or between `;`.

use std::str::FromStr;
use std::time::Duration;

use crate::script::{Action, Reply, Rule, Script, Stage};

/// A script that can't be read: which rule, why, and what could stand there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the rule \"{rule}\": {why}; a rule is {FORM}")]
pub struct ScriptError {
    rule: String,
    why: String,
}

const FORM: &str = "[at greeting|ehlo|auth|mail|rcpt|data|dot, or after dot] \
     accept | defer [4xx] [text] | refuse [5xx] [text] | hang | cut | lose | garble | slow 200ms | greylist \
     [x3] [for bob@*]";

/// Rules of a script, at most.
const RULES_MAX: usize = 100;
/// Bytes of an answer, so that it fits on a line with its code.
const TEXT_BYTES_MAX: usize = 400;
/// A wait beyond any client's patience.
const SLOW_MAX: Duration = Duration::from_secs(600);

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let written = lines.flat_map(|line| line.split(';')).map(str::trim).filter(|rule| !rule.is_empty());
        let mut rules = Vec::new();
        for rule in written {
            let wrong = |why: String| ScriptError { rule: rule.escape_debug().take(80).collect(), why };
            if rules.len() == RULES_MAX {
                return Err(wrong(format!("a script has at most {RULES_MAX} rules")));
            }
            rules.push(read_rule(rule).map_err(wrong)?);
        }
        Ok(Self { rules })
    }
}

fn read_rule(text: &str) -> Result<Rule, String> {
    if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic() && *c != ' ' && *c != '\t') {
        return Err(format!("an answer is plain ASCII, and {c:?} isn't"));
    }
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let (times, pattern) = take_suffixes(&mut words)?;
    let (stage, words) = take_stage(&words)?;
    let Some((word, rest)) = words.split_first() else { return Err("it doesn't say what to do".to_owned()) };
    let (action, usual) = read_action(word, rest)?;
    let stage = match (stage, *word) {
        (Some(stage), "lose") if stage != Stage::Kept => {
            return Err("lose is always after the dot".to_owned());
        }
        (Some(stage), "greylist") if stage != Stage::Rcpt => {
            return Err("greylist is always at rcpt".to_owned());
        }
        (stage, _) => stage.or(usual),
    };
    if let Some(stage) = stage
        && pattern.is_some()
        && !stage.knows_recipients()
    {
        return Err(format!("at {} no recipient is known yet", stage.name()));
    }
    Ok(Rule { stage, action, times, pattern })
}

/// How often and for whom, taken off the end in whatever order.
fn take_suffixes(words: &mut Vec<&str>) -> Result<(Option<u32>, Option<String>), String> {
    let (mut times, mut pattern) = (None, None);
    loop {
        match words[..] {
            // A text may well end with "for it", but hardly with "for b@c".
            [.., "for", last] if last.contains(['@', '*']) && pattern.is_none() => {
                pattern = Some(last.to_owned());
                words.truncate(words.len() - 2);
            }
            [.., last] if is_times(last) && times.is_none() => {
                let number = last[1..].parse().ok().filter(|number| *number > 0);
                times = Some(number.ok_or_else(|| format!("{last} is no number of times"))?);
                words.pop();
            }
            _ => return Ok((times, pattern)),
        }
    }
}

fn is_times(word: &str) -> bool {
    word.strip_prefix('x')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn take_stage<'a>(words: &'a [&'a str]) -> Result<(Option<Stage>, &'a [&'a str]), String> {
    match words {
        ["after", "dot", rest @ ..] => Ok((Some(Stage::Kept), rest)),
        ["after", ..] => Err("only the dot has an after".to_owned()),
        ["at", name, rest @ ..] => {
            let stage = Stage::NAMED.into_iter().find(|stage| stage.name() == *name);
            Ok((Some(stage.ok_or_else(|| format!("there is no stage {name}"))?), rest))
        }
        words => Ok((None, words)),
    }
}

/// What to do, and when if the rule doesn't say.
fn read_action(word: &str, rest: &[&str]) -> Result<(Action, Option<Stage>), String> {
    let bare = |action, stage| match rest {
        [] => Ok((action, Some(stage))),
        [more, ..] => Err(format!("{word} takes nothing after it, and there is {more}")),
    };
    match word {
        "accept" => bare(Action::Accept, Stage::Rcpt),
        "hang" => bare(Action::Hang, Stage::Rcpt),
        "cut" => bare(Action::Cut, Stage::Rcpt),
        "garble" => bare(Action::Garble, Stage::Rcpt),
        "greylist" => bare(Action::Greylist, Stage::Rcpt),
        "lose" => bare(Action::Cut, Stage::Kept),
        "defer" => {
            Ok((Action::Defer(read_reply(word, rest, 451, "4.3.0 try again later")?), Some(Stage::Rcpt)))
        }
        "refuse" => {
            Ok((Action::Refuse(read_reply(word, rest, 550, "5.1.1 no such mailbox")?), Some(Stage::Rcpt)))
        }
        "slow" => match rest {
            [span] => Ok((Action::Slow(read_span(span)?), None)),
            _ => Err("slow takes a span, such as 200ms or 2s".to_owned()),
        },
        word => Err(format!("{word} is nothing that can be done")),
    }
}

fn read_reply(word: &str, rest: &[&str], code: u16, text: &str) -> Result<Reply, String> {
    let class = code / 100;
    let (code, rest) = match rest {
        [first, rest @ ..] if first.bytes().all(|b| b.is_ascii_digit()) => {
            let fits = first.parse().ok().filter(|code: &u16| code / 100 == class);
            (fits.ok_or_else(|| format!("{word} takes a code from {class}00 to {class}99"))?, rest)
        }
        rest => (code, rest),
    };
    let text = if rest.is_empty() { text.to_owned() } else { rest.join(" ") };
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("its text has more than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(Reply { code, text })
}

fn read_span(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err(format!("{text} is no span, such as 200ms or 2s")),
    };
    let span =
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms)).map(Duration::from_millis);
    span.filter(|span| *span <= SLOW_MAX)
        .ok_or_else(|| format!("{text} is longer than 10m or no span at all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        // What a person may write, and all of what it means.
        let check = |text: &str, expected: &str| {
            let script: Script = text.parse().unwrap();
            assert_eq!(script.to_string(), expected, "{text}");
            assert_eq!(expected.parse::<Script>().unwrap(), script, "{text}");
        };
        check("", "");
        check("# nothing\n\n ; ", "");
        check("accept", "at rcpt accept");
        check("defer", "at rcpt defer 451 4.3.0 try again later");
        check("defer 450", "at rcpt defer 450 4.3.0 try again later");
        check("defer 451 4.7.1 try later", "at rcpt defer 451 4.7.1 try later");
        check("defer 4.7.1 later", "at rcpt defer 451 4.7.1 later");
        check("refuse 550 5.1.1 no such user", "at rcpt refuse 550 5.1.1 no such user");
        check("at greeting refuse 554 go away", "at greeting refuse 554 go away");
        check("at data hang", "at data hang");
        check("  at   ehlo cut x2", "at ehlo cut x2");
        check("lose", "after dot cut");
        check("after dot cut", "after dot cut");
        check("after dot defer 451 kept all the same", "after dot defer 451 kept all the same");
        check("at dot garble", "at dot garble");
        check("slow 2s", "slow 2000ms");
        check("at mail slow 1m", "at mail slow 60000ms");
        check("greylist x3 for *@a.test", "at rcpt greylist x3 for *@a.test");
        check("cut for bob@* x3", "at rcpt cut x3 for bob@*");
        check("refuse 550 wait for it", "at rcpt refuse 550 wait for it");
        check(
            "defer x1\nrefuse;lose",
            "at rcpt defer 451 4.3.0 try again later x1; at rcpt refuse 550 5.1.1 no such mailbox; after dot cut",
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_with_what_could_be() {
        let check = |text: &str, why: &str| {
            let error = text.parse::<Script>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("greylist [x3] [for bob@*]"), "{text}: {error}");
        };
        check("bounce", "bounce is nothing that can be done");
        check("at lunch defer", "there is no stage lunch");
        check("at", "at is nothing that can be done");
        check("at rcpt", "doesn't say what to do");
        check("x3", "doesn't say what to do");
        check("after rcpt cut", "only the dot has an after");
        check("defer 550 no", "from 400 to 499");
        check("refuse 99999999 no", "from 500 to 599");
        check("hang 5s", "hang takes nothing after it");
        check("slow", "slow takes a span");
        check("slow 5", "5 is no span");
        check("slow 11m", "longer than 10m");
        check("slow 99999999999999999999s", "longer than 10m");
        check("defer x0", "x0 is no number of times");
        check("defer x99999999999", "is no number of times");
        check("at mail lose", "always after the dot");
        check("at data greylist", "always at rcpt");
        check("at mail defer for bob@*", "no recipient is known yet");
        check("defer 451 später", "plain ASCII");
        check(&format!("defer {}", "a".repeat(401)), "more than 400 bytes");
        check(&"accept;".repeat(101), "at most 100 rules");
    }
}
