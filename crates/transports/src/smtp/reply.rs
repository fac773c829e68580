//! What a server says: a code, perhaps an enhanced code, and words.

use std::fmt;

/// The longest line of a reply that is read.
pub const REPLY_LINE_BYTES_MAX: usize = 4_096;
/// The most lines of one reply that are read.
pub const REPLY_LINES_MAX: usize = 200;
/// The longest text of a reply that is kept.
const REPLY_TEXT_BYTES_MAX: usize = 1_000;

/// The points of a conversation at which a server can say something.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reaching it at all.
    Connect,
    /// Its first words.
    Greeting,
    /// Its answer to ours.
    Ehlo,
    /// On the way to an encrypted connection.
    StartTls,
    /// Logging in.
    Auth,
    /// The sender.
    Mail,
    /// A recipient.
    Rcpt,
    /// Whether it wants the mail.
    Data,
    /// Its word on the mail as a whole.
    Dot,
    /// Starting over.
    Rset,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 10] = [
        Self::Connect,
        Self::Greeting,
        Self::Ehlo,
        Self::StartTls,
        Self::Auth,
        Self::Mail,
        Self::Rcpt,
        Self::Data,
        Self::Dot,
        Self::Rset,
    ];

    /// How people who know SMTP call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Greeting => "greeting",
            Self::Ehlo => "EHLO",
            Self::StartTls => "STARTTLS",
            Self::Auth => "AUTH",
            Self::Mail => "MAIL",
            Self::Rcpt => "RCPT",
            Self::Data => "DATA",
            Self::Dot => "end of data",
            Self::Rset => "RSET",
        }
    }
}

/// A server's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Three digits, the first from 2 to 5.
    pub code: u16,
    /// The enhanced code of RFC 3463, if there is one that agrees with the code.
    pub enhanced: Option<(u16, u16, u16)>,
    /// The words, the enhanced code included, one line.
    pub text: String,
    /// The words line by line, as EHLO has them.
    pub lines: Vec<String>,
}

/// Whether a line is the last of its reply.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// `250 words`
    Last,
    /// `250-words`
    More,
}

/// The code of one line and whether another follows; `None` if it is no line of a reply.
pub fn parse_line(line: &str) -> Option<(u16, LineKind, &str)> {
    let (digits, rest) = line.split_at_checked(3)?;
    let code: u16 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (kind, words) = match rest.as_bytes().first() {
        None => (LineKind::Last, ""),
        Some(b' ') => (LineKind::Last, &rest[1..]),
        Some(b'-') => (LineKind::More, &rest[1..]),
        Some(_) => return None,
    };
    (200..600).contains(&code).then_some((code, kind, words))
}

impl Reply {
    /// The reply that these lines make; `None` if they make none.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut all: Vec<(u16, LineKind, &str)> = Vec::new();
        for line in lines {
            if all.last().is_some_and(|(_, kind, _)| *kind == LineKind::Last) {
                return None;
            }
            all.push(parse_line(line)?);
        }
        let (code, kind, _) = *all.last()?;
        if kind != LineKind::Last || all.iter().any(|(other, _, _)| *other != code) {
            return None;
        }
        let words =
            |text: &str| -> String { text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() };
        let lines: Vec<String> = all.iter().map(|(_, _, text)| words(text)).collect();
        let mut text = lines.join(" ");
        text.truncate(text.floor_char_boundary(REPLY_TEXT_BYTES_MAX));
        let enhanced =
            lines.first().and_then(|line| parse_enhanced(line)).filter(|(class, ..)| *class == code / 100);
        Some(Self { code, enhanced, text: text.trim().to_owned(), lines })
    }

    /// Whether the server agrees.
    pub fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// Whether the server wants to hear more.
    pub fn is_intermediate(&self) -> bool {
        self.code / 100 == 3
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text)
    }
}

/// An enhanced code that a text begins with: `4.2.2`.
fn parse_enhanced(text: &str) -> Option<(u16, u16, u16)> {
    let word = text.split(|c: char| c.is_whitespace() || c == ':').next()?;
    let mut parts = word.split('.').map(|part| match part.len() {
        1..=3 if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse::<u16>().ok(),
        _ => None,
    });
    let enhanced = (parts.next()??, parts.next()??, parts.next()??);
    (parts.next().is_none() && matches!(enhanced.0, 2 | 4 | 5)).then_some(enhanced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replies_are_read() {
        let reply = Reply::parse(["550 5.1.1 no such user"]).unwrap();
        assert_eq!((reply.code, reply.enhanced), (550, Some((5, 1, 1))));
        assert_eq!(reply.to_string(), "550 5.1.1 no such user");
        let many = Reply::parse(["250-mx.example.org", "250-SIZE 100", "250 8BITMIME"]).unwrap();
        assert_eq!(many.lines, ["mx.example.org", "SIZE 100", "8BITMIME"]);
        assert_eq!(Reply::parse(["250"]).unwrap().text, "");
        assert_eq!(Reply::parse(["451-4.7.1 a", "451 4.7.1 b"]).unwrap().enhanced, Some((4, 7, 1)));
    }

    #[test]
    fn an_enhanced_code_counts_only_if_it_agrees() {
        for text in
            ["550 4.2.2 full", "250 5.0.0", "550 5.1", "550 5.1.1.1", "550 5.x.1", "550 5..1", "550 5.1.1234"]
        {
            assert_eq!(Reply::parse([text]).unwrap().enhanced, None, "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_reply() {
        for lines in [
            &[][..],
            &["", "250 ok"],
            &["hello"],
            &["25"],
            &["2500 x"],
            &["+25 x"],
            &["150 x"],
            &["650 x"],
            &["250-more"],
            &["250-a", "550 b"],
            &["250 a", "250 b"],
            &["250x"],
            &["é50 x"],
        ] {
            assert_eq!(Reply::parse(lines.iter().copied()), None, "{lines:?}");
        }
    }

    #[test]
    fn words_are_cut_and_control_characters_gone() {
        let reply = Reply::parse([format!("250 a\u{1b}b\r{}", "é".repeat(5_000)).as_str()]).unwrap();
        assert!(reply.text.len() <= REPLY_TEXT_BYTES_MAX && reply.text.starts_with("a b é"));
    }

    proptest! {
        #[test]
        fn whatever_a_server_says_is_read_or_not(lines in proptest::collection::vec(any::<String>(), 0..5)) {
            let _ = Reply::parse(lines.iter().map(String::as_str));
        }

        #[test]
        fn a_reply_that_looks_like_one_is_one(code in 200u16..600, text in "[ -~]{0,80}") {
            let reply = Reply::parse([format!("{code} {text}").as_str()]).unwrap();
            prop_assert_eq!(reply.code, code);
        }
    }
}
