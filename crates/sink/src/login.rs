//! AUTH: PLAIN and LOGIN, against the one login that a sink may have.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::script::Stage;
use crate::session::{Played, Session};
use crate::wire::Line;

/// Takes a login.
pub(crate) async fn log_in(
    session: &mut Session,
    mechanism: &str,
    initial: Option<String>,
) -> io::Result<Played> {
    let wrong = if session.shared.login.is_none() {
        Some((502, "5.5.1 no login is needed here"))
    } else if !session.takes_logins() {
        Some((538, "5.7.11 say STARTTLS first"))
    } else if session.login.is_some() {
        Some((503, "5.5.1 logged in already"))
    } else if !["PLAIN", "LOGIN"].contains(&mechanism) {
        Some((504, "5.5.4 only PLAIN and LOGIN"))
    } else {
        None
    };
    if let Some((code, text)) = wrong {
        return answer(session, code, text).await;
    }
    let given =
        if mechanism == "PLAIN" { plain(session, initial).await? } else { login(session, initial).await? };
    let Some(given) = given else { return answer(session, 501, "5.5.2 no login in that").await };
    match session.play(Stage::Auth, &[]).await? {
        Played::Nothing => {}
        played => return Ok(played),
    }
    if session.shared.login.as_ref() != Some(&given) {
        return answer(session, 535, "5.7.8 wrong user or password").await;
    }
    session.login = Some(given.0);
    answer(session, 235, "2.7.0 logged in").await
}

async fn answer(session: &mut Session, code: u16, text: &str) -> io::Result<Played> {
    session.wire.say(code, text).await?;
    Ok(Played::Answered)
}

/// `[for whom] NUL user NUL password`
async fn plain(session: &mut Session, initial: Option<String>) -> io::Result<Option<(String, String)>> {
    let given = match initial {
        Some(initial) => decode(initial.as_bytes()),
        None => ask(session, "").await?,
    };
    Ok(given.and_then(|given| {
        let mut parts = given.split('\0').skip(1).map(str::to_owned);
        let login = (parts.next()?, parts.next()?);
        parts.next().is_none().then_some(login)
    }))
}

async fn login(session: &mut Session, initial: Option<String>) -> io::Result<Option<(String, String)>> {
    let user = match initial {
        Some(initial) => decode(initial.as_bytes()),
        None => ask(session, "Username:").await?,
    };
    let Some(user) = user else { return Ok(None) };
    let password = ask(session, "Password:").await?;
    Ok(password.map(|password| (user, password)))
}

async fn ask(session: &mut Session, question: &str) -> io::Result<Option<String>> {
    session.wire.say(334, &STANDARD.encode(question)).await?;
    match session.wire.line(session.shared.limits.line_bytes_max).await? {
        Line::Said(line) => Ok(decode(&line)),
        Line::TooLong => Ok(None),
        Line::End => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn decode(text: &[u8]) -> Option<String> {
    // A lone `=` is how nothing at all is said in AUTH.
    let text = if text == b"=" { b"" } else { text };
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}
