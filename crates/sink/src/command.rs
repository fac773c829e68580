//! What a client can say, read from its lines.

/// Something that a client said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Hello { extended: bool },
    StartTls,
    Auth { mechanism: String, initial: Option<String> },
    Mail { from: String, bytes: Option<u64>, utf8: bool },
    Rcpt(String),
    Data,
    Rset,
    Noop,
    Vrfy,
    Quit,
    Private(Private),
}

/// What only a sink understands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Private {
    Tell(String),
    List(Option<usize>),
    Show(u64),
    Clear,
}

/// Why a line is no command: the answer to it.
pub(crate) type Wrong = (u16, &'static str);

/// Bytes of an address.
const ADDRESS_BYTES_MAX: usize = 320;

pub(crate) fn read_command(line: &[u8]) -> Result<Command, Wrong> {
    let line = str::from_utf8(line).map_err(|_| (500, "5.5.2 a command is text"))?;
    if line.contains(|c: char| c.is_control() && c != '\t') {
        return Err((500, "5.5.2 a command has no control characters"));
    }
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let bare = |command| if rest.is_empty() { Ok(command) } else { Err((501, "5.5.4 takes no argument")) };
    match verb.trim().to_ascii_uppercase().as_str() {
        "EHLO" | "HELO" if rest.is_empty() => Err((501, "5.5.4 say who you are")),
        "EHLO" => Ok(Command::Hello { extended: true }),
        "HELO" => Ok(Command::Hello { extended: false }),
        "STARTTLS" => bare(Command::StartTls),
        "AUTH" => read_auth(rest),
        "MAIL" => read_mail(rest),
        "RCPT" => read_rcpt(rest),
        "DATA" => bare(Command::Data),
        "RSET" => bare(Command::Rset),
        "NOOP" => Ok(Command::Noop),
        "VRFY" => Ok(Command::Vrfy),
        "QUIT" => bare(Command::Quit),
        "XTELL" => Ok(Command::Private(Private::Tell(rest.to_owned()))),
        "XLIST" if rest.is_empty() => Ok(Command::Private(Private::List(None))),
        "XLIST" => {
            let count = rest.parse().map_err(|_| (501, "5.5.4 XLIST takes how many"))?;
            Ok(Command::Private(Private::List(Some(count))))
        }
        "XSHOW" => {
            let number = rest.parse().map_err(|_| (501, "5.5.4 XSHOW takes the number of a mail"))?;
            Ok(Command::Private(Private::Show(number)))
        }
        "XCLEAR" => bare(Command::Private(Private::Clear)),
        _ => Err((500, "5.5.2 not understood")),
    }
}

fn read_auth(rest: &str) -> Result<Command, Wrong> {
    let mut words = rest.split_whitespace();
    let mechanism = words.next().ok_or((501, "5.5.4 AUTH takes a mechanism"))?.to_ascii_uppercase();
    let initial = words.next().map(str::to_owned);
    match words.next() {
        Some(_) => Err((501, "5.5.4 too many arguments")),
        None => Ok(Command::Auth { mechanism, initial }),
    }
}

fn read_mail(rest: &str) -> Result<Command, Wrong> {
    let path = strip_word(rest, "FROM:").ok_or((501, "5.5.4 MAIL FROM:<address>"))?;
    let (from, parameters) = read_path(path).ok_or((501, "5.1.7 no such form of address"))?;
    if !from.is_empty() && !is_address(from) {
        return Err((501, "5.1.7 not an address"));
    }
    let (mut bytes, mut utf8) = (None, false);
    for parameter in parameters.split_whitespace() {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name.to_ascii_uppercase().as_str() {
            "SIZE" => bytes = Some(value.parse().map_err(|_| (501, "5.5.4 SIZE takes a number"))?),
            "BODY" if ["7BIT", "8BITMIME"].iter().any(|known| value.eq_ignore_ascii_case(known)) => {}
            "SMTPUTF8" if value.is_empty() => utf8 = true,
            "AUTH" => {}
            _ => return Err((555, "5.5.4 parameter not understood")),
        }
    }
    Ok(Command::Mail { from: from.to_owned(), bytes, utf8 })
}

fn read_rcpt(rest: &str) -> Result<Command, Wrong> {
    let path = strip_word(rest, "TO:").ok_or((501, "5.5.4 RCPT TO:<address>"))?;
    let (to, parameters) = read_path(path).ok_or((501, "5.1.3 no such form of address"))?;
    if !to.eq_ignore_ascii_case("postmaster") && !is_address(to) {
        return Err((501, "5.1.3 not an address"));
    }
    if !parameters.is_empty() {
        return Err((555, "5.5.4 parameter not understood"));
    }
    Ok(Command::Rcpt(to.to_owned()))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// The address between the brackets and what follows them. A route before the address is left out, as it has been
/// by everybody for decades.
fn read_path(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('<')?;
    let (mut quoted, mut escaped) = (false, false);
    let end = text.bytes().position(|byte| {
        let ends = byte == b'>' && !quoted;
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        ends
    })?;
    let (path, rest) = (&text[..end], &text[end + 1..]);
    let address = match path.strip_prefix('@') {
        Some(route) => route.split_once(':')?.1,
        None => path,
    };
    (rest.is_empty() || rest.starts_with(' ')).then(|| (address, rest.trim()))
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let is_plain = |part: &str| !part.is_empty() && !part.contains([' ', '\t', '<', '>', '"', '@', ',', ';']);
    text.len() <= ADDRESS_BYTES_MAX && (is_quoted || is_plain(local)) && is_plain(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(from: &str, bytes: Option<u64>, utf8: bool) -> Result<Command, Wrong> {
        Ok(Command::Mail { from: from.to_owned(), bytes, utf8 })
    }

    fn rcpt(to: &str) -> Result<Command, Wrong> {
        Ok(Command::Rcpt(to.to_owned()))
    }

    #[test]
    fn lines_are_read_as_they_are_meant() {
        let check = |line: &str, expected| assert_eq!(read_command(line.as_bytes()), expected, "{line}");
        check("ehlo me", Ok(Command::Hello { extended: true }));
        check("HELO me", Ok(Command::Hello { extended: false }));
        check("MAIL FROM:<a@b.test>", mail("a@b.test", None, false));
        check("mail from: <> size=12 BODY=8bitmime", mail("", Some(12), false));
        check("MAIL FROM:<ä@b.test> SMTPUTF8", mail("ä@b.test", None, true));
        check("MAIL FROM:<@x.test,@y.test:a@b.test>", mail("a@b.test", None, false));
        check(r#"RCPT TO:<"a > \" b"@c.test>"#, rcpt(r#""a > \" b"@c.test"#));
        check("RCPT TO:<Postmaster>", rcpt("Postmaster"));
        check("DATA ", Ok(Command::Data));
        check("XTELL defer x1; cut", Ok(Command::Private(Private::Tell("defer x1; cut".to_owned()))));
        check("xlist 5", Ok(Command::Private(Private::List(Some(5)))));
        check("XSHOW 7", Ok(Command::Private(Private::Show(7))));
    }

    #[test]
    fn what_is_no_command_has_its_answer() {
        let check = |line: &[u8], code| {
            let answer = read_command(line).map_err(|wrong| wrong.0);
            assert_eq!(answer, Err(code), "{}", line.escape_ascii());
        };
        check(b"", 500);
        check(b"\0\xff\xfe", 500);
        check(b"NOOP \0", 500);
        check(b"BREW coffee", 500);
        check(b"EHLO", 501);
        check(b"DATA now", 501);
        check(b"MAIL a@b.test", 501);
        check(b"MAIL FROM:a@b.test", 501);
        check(b"MAIL FROM:<a@b.test", 501);
        check(b"MAIL FROM:<a@b.test>SIZE=1", 501);
        check(b"MAIL FROM:<nobody>", 501);
        check(b"MAIL FROM:<a@b.test> SIZE=big", 501);
        check(b"MAIL FROM:<a@b.test> COLOUR=red", 555);
        check("MAIL F\u{fc}OM:<a@b.test>".as_bytes(), 501);
        check(b"RCPT TO:<>", 501);
        check(b"RCPT TO:<a b@c.test>", 501);
        check(b"RCPT TO:<@x.test>", 501);
        check(b"RCPT TO:<a@b.test> NOTIFY=NEVER", 555);
        check(b"XSHOW me", 501);
        check(b"XLIST -1", 501);
        check(b"AUTH", 501);
        check(b"AUTH PLAIN a b", 501);
        let long = format!("RCPT TO:<{}@b.test>", "a".repeat(400));
        check(long.as_bytes(), 501);
    }
}
