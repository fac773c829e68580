//! What a sink does to whom: rules, of which the first that fits has its way. How they are written is in `parse`.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::time::Duration;

/// Rules, of which the first that fits has its way. Where none fits, all is well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order in which they are asked.
    pub rules: Vec<Rule>,
}

/// What to do when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// When in the conversation; nothing means at every stage.
    pub stage: Option<Stage>,
    /// What to do.
    pub action: Action,
    /// How often, after which the rule is as if it weren't there.
    pub times: Option<u32>,
    /// Only to recipients like this, in which `*` stands for anything.
    pub pattern: Option<String>,
}

/// A moment in the conversation, named after what the client has just said.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has connected and said nothing yet.
    Greeting,
    /// EHLO or HELO.
    Ehlo,
    /// AUTH, with a right or wrong password.
    Auth,
    /// MAIL FROM.
    Mail,
    /// RCPT TO.
    Rcpt,
    /// DATA.
    Data,
    /// The dot that ends a mail; the mail is not kept yet.
    Dot,
    /// The same, but the mail is kept: only the answer is still missing. Written `after dot`.
    Kept,
}

/// What can be done to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// All is well, whatever the rules below say.
    Accept,
    /// "Not now": a code from 400 to 499. With 421, the connection is closed as well.
    Defer(Reply),
    /// "Never": a code from 500 to 599.
    Refuse(Reply),
    /// Say nothing any more, and leave the connection open.
    Hang,
    /// Close the connection without a word.
    Cut,
    /// Answer with something that is no answer.
    Garble,
    /// Take this long; then the rules below are asked.
    Slow(Duration),
    /// Defer the first try of each pair of sender and recipient, and accept the later ones.
    Greylist,
}

/// An answer that is no good news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The three digits.
    pub code: u16,
    /// The rest of the line.
    pub text: String,
}

/// What a rule is asked about.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment<'a> {
    pub stage: Stage,
    pub from: &'a str,
    /// The recipient that is being named, or all that were accepted.
    pub to: &'a [String],
}

/// What the rules came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// How long to wait first.
    pub wait: Duration,
    /// What to do then; never slow or greylist.
    pub action: Action,
}

/// A script that is being played: it remembers how often each rule had its way, and whom it has seen.
#[derive(Debug)]
pub(crate) struct Playing {
    told: Vec<(Rule, u32)>,
    magic: Vec<(Rule, u32)>,
    seen: HashSet<(String, String)>,
    seen_order: VecDeque<(String, String)>,
}

/// Pairs that a greylist remembers; the oldest is forgotten first.
const PAIRS_MAX: usize = 10_000;

/// What a recipient gets who is called after it.
const MAGIC: &str = "defer for defer@*\nrefuse for refuse@*\nhang for hang@*\ncut for cut@*\nlose for lose@*\n\
                     greylist for greylist@*\ngarble for garble@*\nat rcpt slow 2s for slow@*";

impl Playing {
    pub fn new(script: Script, magic: bool) -> Self {
        let magic = if magic { MAGIC.parse().expect("a test parses it") } else { Script::default() };
        let fresh = |script: Script| script.rules.into_iter().map(|rule| (rule, 0)).collect();
        Self { told: fresh(script), magic: fresh(magic), seen: HashSet::new(), seen_order: VecDeque::new() }
    }

    /// Begins another script. Whom the greylist has seen, it still knows.
    pub fn tell(&mut self, script: Script) {
        self.told = script.rules.into_iter().map(|rule| (rule, 0)).collect();
    }

    /// Whether a rule could do something to a client that has said nothing yet.
    pub fn minds_greeting(&self) -> bool {
        let minds = |(rule, used): &(Rule, u32)| {
            rule.stage.is_none_or(|stage| stage == Stage::Greeting)
                && rule.times.is_none_or(|times| *used < times)
        };
        self.told.iter().any(minds)
    }

    /// What to do now.
    pub fn decide(&mut self, moment: Moment<'_>) -> Decision {
        let mut wait = Duration::ZERO;
        for (rule, used) in self.told.iter_mut().chain(&mut self.magic) {
            if !rule.fits(moment) || rule.times.is_some_and(|times| *used >= times) {
                continue;
            }
            let action = match &rule.action {
                Action::Slow(span) => {
                    wait += *span;
                    *used = used.saturating_add(1);
                    continue;
                }
                Action::Greylist if is_new(&mut self.seen, &mut self.seen_order, moment) => {
                    Action::Defer(Reply { code: 450, text: "4.2.0 greylisted, try again".to_owned() })
                }
                // A second try is no use of the rule.
                Action::Greylist => return Decision { wait, action: Action::Accept },
                action => action.clone(),
            };
            *used = used.saturating_add(1);
            return Decision { wait, action };
        }
        Decision { wait, action: Action::Accept }
    }
}

fn is_new(
    seen: &mut HashSet<(String, String)>,
    order: &mut VecDeque<(String, String)>,
    moment: Moment<'_>,
) -> bool {
    let to = moment.to.first().map(|to| to.to_lowercase()).unwrap_or_default();
    let pair = (moment.from.to_lowercase(), to);
    if !seen.insert(pair.clone()) {
        return false;
    }
    order.push_back(pair);
    if order.len() > PAIRS_MAX
        && let Some(oldest) = order.pop_front()
    {
        seen.remove(&oldest);
    }
    true
}

impl Rule {
    fn fits(&self, moment: Moment<'_>) -> bool {
        self.stage.is_none_or(|stage| stage == moment.stage)
            && self.pattern.as_ref().is_none_or(|pattern| moment.to.iter().any(|to| is_like(pattern, to)))
    }
}

/// Whether an address is like a pattern, in which `*` stands for anything; case aside.
pub(crate) fn is_like(pattern: &str, address: &str) -> bool {
    let (pattern, address) = (pattern.to_lowercase(), address.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| address.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.rules.iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            write!(f, "{between}{rule}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            None => {}
            Some(Stage::Kept) => f.write_str("after dot ")?,
            Some(stage) => write!(f, "at {} ", stage.name())?,
        }
        write!(f, "{}", self.action)?;
        if let Some(times) = self.times {
            write!(f, " x{times}")?;
        }
        if let Some(pattern) = &self.pattern {
            write!(f, " for {pattern}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("accept"),
            Self::Defer(reply) => write!(f, "defer {} {}", reply.code, reply.text),
            Self::Refuse(reply) => write!(f, "refuse {} {}", reply.code, reply.text),
            Self::Hang => f.write_str("hang"),
            Self::Cut => f.write_str("cut"),
            Self::Garble => f.write_str("garble"),
            Self::Slow(span) => write!(f, "slow {}ms", span.as_millis()),
            Self::Greylist => f.write_str("greylist"),
        }
    }
}

impl Stage {
    /// All that `at` can name, in the order of the conversation.
    pub const NAMED: [Self; 7] =
        [Self::Greeting, Self::Ehlo, Self::Auth, Self::Mail, Self::Rcpt, Self::Data, Self::Dot];

    /// What it is called in a script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greeting => "greeting",
            Self::Ehlo => "ehlo",
            Self::Auth => "auth",
            Self::Mail => "mail",
            Self::Rcpt => "rcpt",
            Self::Data => "data",
            Self::Dot => "dot",
            Self::Kept => "after dot",
        }
    }

    /// Whether a recipient is known by then.
    pub(crate) fn knows_recipients(self) -> bool {
        match self {
            Self::Greeting | Self::Ehlo | Self::Auth | Self::Mail => false,
            Self::Rcpt | Self::Data | Self::Dot | Self::Kept => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(playing: &mut Playing, stage: Stage, from: &str, to: &str) -> String {
        let to = [to.to_owned()];
        playing.decide(Moment { stage, from, to: &to }).action.to_string()
    }

    fn playing(script: &str, magic: bool) -> Playing {
        Playing::new(script.parse().unwrap(), magic)
    }

    #[test]
    fn a_pattern_stands_for_the_addresses_that_it_looks_like() {
        let check = |pattern, address, expected| {
            assert_eq!(is_like(pattern, address), expected, "{pattern} {address}")
        };
        check("bob@a.test", "bob@a.test", true);
        check("bob@a.test", "bob@a.test.test", false);
        check("bob@*", "BOB@a.test", true);
        check("bob@*", "rob@a.test", false);
        check("*@a.test", "x@a.test", true);
        check("*@a.test", "x@a.tests", false);
        check("*", "", true);
        check("b*b@*.test", "bob@a.test", true);
        check("b*b@*.test", "b@a.test", false);
        check("a*a", "a", false);
        check("*aab", "aaab", true);
    }

    #[test]
    fn the_first_rule_that_fits_has_its_way_as_often_as_it_may() {
        let mut playing = playing("defer 451 one x2 for bob@*\nrefuse 550 two x1\naccept", false);
        let mut next = |to| play(&mut playing, Stage::Rcpt, "a@a.test", to);
        assert_eq!(next("bob@b.test"), "defer 451 one");
        assert_eq!(next("eve@b.test"), "refuse 550 two");
        assert_eq!(next("eve@b.test"), "accept");
        assert_eq!(next("bob@b.test"), "defer 451 one");
        assert_eq!(next("bob@b.test"), "accept");
    }

    #[test]
    fn slow_leaves_the_decision_to_the_rules_below() {
        let mut playing = playing("slow 200ms; slow 1s for bob@*; refuse 550 no", false);
        let to = ["bob@b.test".to_owned()];
        let decision = playing.decide(Moment { stage: Stage::Rcpt, from: "", to: &to });
        assert_eq!(
            (decision.wait, decision.action.to_string()),
            (Duration::from_millis(1200), "refuse 550 no".to_owned())
        );
        let decision = playing.decide(Moment { stage: Stage::Ehlo, from: "", to: &[] });
        assert_eq!((decision.wait, decision.action), (Duration::from_millis(200), Action::Accept));
    }

    #[test]
    fn a_greylist_defers_the_first_try_of_each_pair() {
        let mut playing = playing("greylist", false);
        let mut next =
            |from, to| play(&mut playing, Stage::Rcpt, from, to).split(' ').next().unwrap().to_owned();
        assert_eq!(next("a@a.test", "b@b.test"), "defer");
        assert_eq!(next("A@a.test", "b@B.test"), "accept");
        assert_eq!(next("a@a.test", "c@b.test"), "defer");
        assert_eq!(next("x@a.test", "b@b.test"), "defer");
    }

    #[test]
    fn what_a_greylist_remembers_is_bounded() {
        let mut playing = playing("greylist", false);
        for number in 0..PAIRS_MAX + 10 {
            play(&mut playing, Stage::Rcpt, "a@a.test", &format!("{number}@b.test"));
        }
        assert_eq!((playing.seen.len(), playing.seen_order.len()), (PAIRS_MAX, PAIRS_MAX));
    }

    #[test]
    fn magic_recipients_get_what_they_are_called_after_unless_the_script_says_otherwise() {
        let mut magic = playing("accept for defer@vip.test", true);
        assert!(play(&mut magic, Stage::Rcpt, "", "defer@b.test").starts_with("defer 451"));
        assert_eq!(play(&mut magic, Stage::Rcpt, "", "defer@vip.test"), "accept");
        assert_eq!(play(&mut magic, Stage::Rcpt, "", "lose@b.test"), "accept");
        assert_eq!(play(&mut magic, Stage::Kept, "", "lose@b.test"), "cut");
        assert_eq!(play(&mut playing("", false), Stage::Rcpt, "", "defer@b.test"), "accept");
    }
}
