//! A message as it is sent in, made into one that the engine takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::accept::NewMessage;
use redeliver_core::campaign::STEP_TYPE;
use redeliver_core::email::{EMAIL_TYPE, Email};
use redeliver_core::{Content, Failure, Lane, Name, Timestamp};
use redeliver_engine::access::Role;
use serde_json::Number;

use crate::auth::Caller;
use crate::input::{Fields, query};
use crate::problem::{FieldProblem, Problem};

/// The longest key of a message.
const KEY_CHARS_MAX: usize = 512;

/// The longest name of a workspace.
const WORKSPACE_BYTES_MAX: usize = 64;

/// The longest target, content type, or name of an attribute.
const WORD_CHARS_MAX: usize = 1_024;

/// Attributes, at most.
const ATTRIBUTES_MAX: usize = 64;

/// Tries, at most: more are a slip.
const ATTEMPTS_MAX: u32 = 10_000;

/// The workspace of a message that names none, sent with a key that is for all.
const DEFAULT_WORKSPACE: &str = "default";

/// What the header `Idempotency-Key` says.
#[derive(Copy, Clone, Debug)]
pub(super) enum HeaderKey<'a> {
    /// Nothing.
    None,
    /// The key of the one message, unless it has the same.
    One(&'a str),
    /// What the keys of many begin with, where they have none: each goes on with its place.
    Many(&'a str, u64),
}

/// Reads one message that came by a broker, as `POST /v1/messages` would; an error names each field and what is wrong
/// with it. Only what is for this workspace is taken, if there is one.
pub fn read_message(bytes: &[u8], workspace: Option<Name>) -> Result<NewMessage, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let caller = Caller { name: "broker".into(), workspace, role: Role::Sender, key: None };
    // Whether there is such a route, whoever takes it will say.
    message(text, HeaderKey::None, &caller, |_| None).map_err(|problem| match problem.errors.as_slice() {
        [] => problem.detail,
        errors => {
            let said = errors.iter().map(|wrong| format!("{} {}", wrong.field, wrong.problem));
            said.collect::<Vec<_>>().join("; ")
        }
    })
}

/// Reads one message.
pub(super) fn message(
    text: &str,
    header_key: HeaderKey<'_>,
    caller: &Caller,
    wrong_route: impl Fn(&str) -> Option<&'static str>,
) -> Result<NewMessage, Problem> {
    let mut fields = Fields::of(text)?;
    let route: Option<String> = fields.get("route");
    if route.is_none() && fields.raw("route").is_none() {
        fields.wrong("route", "is missing");
    }
    if let Some(wrong) = route.as_deref().and_then(wrong_route) {
        fields.wrong("route", wrong);
    }
    let key = key(&mut fields, header_key);
    let workspace =
        fields.parse("workspace", |name: String| check_workspace(&name).map(|()| Arc::from(name)));
    let lane = fields
        .parse("priority", |word: String| query::word(&word, Lane::from_name, &Lane::ALL.map(Lane::name)));
    let due_at: Option<Timestamp> = fields.get("due_at");
    let expires_at: Option<Timestamp> = fields.get("expires_at");
    let attempts = fields.parse("attempts", |count| up_to(count, 0));
    let max_attempts = fields.parse("max_attempts", |count| up_to(count, 1));
    let error: Option<String> = fields.get("error");
    let content = content(&mut fields);
    fields.finish().map_err(Problem::invalid)?;
    let workspace = within(caller, workspace)?;
    Ok(NewMessage {
        workspace,
        lane: lane.unwrap_or_default(),
        key,
        due_at,
        expires_at,
        attempts: attempts.unwrap_or(0),
        max_attempts,
        error: error.map(Failure::new),
        ..NewMessage::new(route.unwrap_or_default(), content)
    })
}

fn key(fields: &mut Fields<'_>, header_key: HeaderKey<'_>) -> Option<Arc<str>> {
    let own = fields.parse("key", |key: String| check_key(&key).map(|()| key));
    match (own, header_key) {
        (Some(own), HeaderKey::One(header)) if own != header => {
            fields.wrong("key", "is another one than the header Idempotency-Key says");
            None
        }
        (Some(own), _) => Some(own.into()),
        (None, HeaderKey::None) => None,
        (None, HeaderKey::One(header)) => Some(header.into()),
        (None, HeaderKey::Many(header, place)) => Some(format!("{header}/{place}").into()),
    }
}

/// What is wrong with a key, if anything is.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    check_printable(key, KEY_CHARS_MAX)
}

/// What is wrong with a workspace's name, if anything is.
pub fn check_workspace(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if name.is_empty() || name.len() > WORKSPACE_BYTES_MAX || !name.bytes().all(fits) {
        return Err(format!("has 1 to {WORKSPACE_BYTES_MAX} letters, digits, \"_\", \".\" and \"-\""));
    }
    Ok(())
}

/// The workspace that a message goes into: its own, if whoever sends it reaches it.
fn within(caller: &Caller, said: Option<Arc<str>>) -> Result<Arc<str>, Problem> {
    match (said, &caller.workspace) {
        (Some(said), _) if caller.reaches(&said) => Ok(said),
        (Some(said), _) => Err(Problem::forbidden(format!("this key does not reach the workspace {said:?}"))),
        (None, Some(own)) => Ok(own.clone()),
        (None, None) => Ok(DEFAULT_WORKSPACE.into()),
    }
}

/// A whole number, which JSON may also write as `3.0`.
fn up_to(count: Number, least: u32) -> Result<u32, String> {
    let whole = count.as_f64().filter(|number| number.fract() == 0.0);
    let fits = whole.filter(|number| (f64::from(least)..=f64::from(ATTEMPTS_MAX)).contains(number));
    fits.map(|number| number as u32)
        .ok_or_else(|| format!("is a whole number between {least} and {ATTEMPTS_MAX}, not {count}"))
}

/// What the message carries: an e-mail, any JSON, or any bytes.
fn content(fields: &mut Fields<'_>) -> Content {
    let attributes = fields.parse("attributes", check_attributes).unwrap_or_default();
    let target = fields.parse("target", check_word);
    let content_type = fields.parse("content_type", check_content_type);
    let email = fields.parse("email", Ok::<Email, String>);
    let payload = fields.raw("payload").map(|raw| raw.get().as_bytes().to_vec());
    let bytes = fields.parse("payload_base64", |text: String| {
        STANDARD.decode(text).map_err(|_| "is not base64".to_owned())
    });
    let said = ["email", "payload", "payload_base64"].map(|name| fields.raw(name).is_some());
    match said.iter().filter(|is_said| **is_said).count() {
        1 => {}
        0 => fields.wrong("payload", "is missing: a message has an email, a payload or a payload_base64"),
        _ => fields.wrong("payload", "is said in several ways: email, payload or payload_base64, not more"),
    }
    let bare = match (email, payload, bytes) {
        (Some(email), ..) => {
            if content_type.is_some() {
                fields.wrong("content_type", "goes with payload or payload_base64, not with email");
            }
            email_content(&email, fields)
        }
        (None, Some(json), _) => {
            Content { content_type: Some("application/json".into()), ..Content::of_bytes(json) }
        }
        (None, None, bytes) => Content::of_bytes(bytes.unwrap_or_default()),
    };
    Content { attributes, target, content_type: content_type.or(bare.content_type.clone()), ..bare }
}

pub(super) fn email_content(email: &Email, fields: &mut Fields<'_>) -> Content {
    for wrong in email.problems() {
        fields.wrong(format!("email.{}", wrong.field), wrong.problem);
    }
    email.to_content().unwrap_or_else(|error| {
        fields.wrong("email", format!("cannot be kept: {error}"));
        Content::default()
    })
}

pub(super) fn check_attributes(
    attributes: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    if attributes.len() > ATTRIBUTES_MAX {
        return Err(format!("are at most {ATTRIBUTES_MAX}"));
    }
    let fits = |name: &String| check_printable(name, WORD_CHARS_MAX).is_ok();
    if !attributes.keys().all(fits) {
        return Err("have names of printable characters".to_owned());
    }
    Ok(attributes)
}

pub(super) fn check_word(word: String) -> Result<Arc<str>, String> {
    check_printable(&word, WORD_CHARS_MAX).map(|()| word.into())
}

/// A content type of a caller's own: what says that it is an e-mail has not been looked over as one, and only a campaign that
/// is planned makes its mails.
pub(super) fn check_content_type(word: String) -> Result<Arc<str>, String> {
    match word.as_str() {
        EMAIL_TYPE => Err("is for e-mails, which are sent as email".to_owned()),
        STEP_TYPE => Err("is for the mails of campaigns, which are launched".to_owned()),
        _ => check_word(word),
    }
}

fn check_printable(text: &str, chars_max: usize) -> Result<(), String> {
    if text.is_empty() || text.chars().nth(chars_max).is_some() || text.chars().any(char::is_control) {
        return Err(format!("has 1 to {chars_max} characters, none of them a control character"));
    }
    Ok(())
}

/// What is wrong with the header that stands for a key.
pub(super) fn wrong_header(problem: String) -> Problem {
    Problem::invalid(vec![FieldProblem::new("Idempotency-Key", problem)])
}
