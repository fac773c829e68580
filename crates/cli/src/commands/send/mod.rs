//! `redeliver send`: has one message accepted, and says how it stands.

mod eml;
pub(super) mod flags;

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use redeliver_core::Timestamp;
use serde_json::{Map, Value};

use super::print;
use super::times::now;
use crate::args::{AboutArgs, SendArgs};
use crate::exit::{FAILED, Told, Usage, print_aside};
use crate::reach::{self, Message, Missing, Reach, Request};

/// The route of a message for which none is named.
const ROUTE: &str = "email";

pub(super) fn run(args: &SendArgs) -> anyhow::Result<()> {
    let message = message(args)?;
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Make).await?;
        let mut request = Request::post("/v1/messages").json(&message);
        if let Some(span) = args.wait {
            // A header has whole seconds; waiting a little longer is no harm.
            let seconds = span.as_millis().div_ceil(1_000);
            request = request.header("prefer", format!("wait={seconds}"));
        }
        let answer = reach.json(request).await?;
        tell(&answer, args.json)?;
        let is_waiting = matches!(answer["status"].as_str(), Some("due" | "scheduled" | "retrying"));
        if reach.is_alone() && is_waiting && !args.json {
            print_aside("no server has this store: it goes out once `redeliver serve` runs on it");
        }
        if answer["status"] == "dead" { Err(Told(FAILED).into()) } else { Ok(()) }
    })
}

/// The message as the API takes it.
fn message(args: &SendArgs) -> anyhow::Result<Value> {
    let mut message = match (&args.from_json, &args.eml, &args.payload) {
        (Some(path), ..) => {
            let said: Value =
                serde_json::from_slice(&read(path)?).map_err(|error| not_json(&path.display(), &error))?;
            return if said.is_object() { Ok(said) } else { Err(not_one(path)) };
        }
        (_, Some(path), _) => {
            Map::from_iter([("email".to_owned(), serde_json::to_value(eml::email(&read(path)?)?)?)])
        }
        (.., Some(payload)) => {
            let text = flags::text(payload)?;
            let payload = serde_json::from_str(&text).map_err(|error| not_json(&"the payload", &error))?;
            Map::from_iter([("payload".to_owned(), payload)])
        }
        (None, None, None) => {
            Map::from_iter([("email".to_owned(), serde_json::to_value(flags::email(&args.mail)?)?)])
        }
    };
    travel(&mut message, &args.about, now());
    Ok(Value::Object(message))
}

fn travel(message: &mut Map<String, Value>, about: &AboutArgs, now: Timestamp) {
    let due_at = about.due_at.or_else(|| about.due_in.map(|span| now.plus(span)));
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let said = [
        ("route", Some(about.route.clone().unwrap_or_else(|| ROUTE.to_owned()))),
        ("key", about.key.clone()),
        ("priority", about.priority.clone()),
        ("due_at", time(due_at)),
        ("expires_at", time(about.expires_at)),
        ("workspace", about.workspace.clone()),
        ("target", about.target.clone()),
    ];
    for (name, value) in said {
        message.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    if !about.attribute.is_empty() {
        let attributes = about.attribute.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        message.insert("attributes".to_owned(), Value::Object(attributes.collect()));
    }
}

/// Says the message's id and how it stands.
fn tell(answer: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return print(&format!("{answer}\n"));
    }
    let id = reach::id_of(answer);
    let known = if answer["duplicate"] == true {
        "  (this key was sent before: it is the first message)"
    } else {
        ""
    };
    match Message::deserialize_from(answer) {
        Ok(message) => {
            let trouble = Some(message.trouble()).filter(|words| !words.is_empty());
            let trouble = trouble.map(|words| format!("  {words}")).unwrap_or_default();
            print(&format!("{id}  {}{}{known}\n", message.status, super::list::cut(&trouble, usize::MAX)))
        }
        // A key that outlived its message.
        Err(_) => print(&format!("{id}  ended{known}\n")),
    }
}

/// All that is in a file, or comes on standard input.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path == Path::new("-") {
        true => {
            std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        }
        false => {
            bytes = std::fs::read(path)
                .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
        }
    }
    Ok(bytes)
}

pub(super) fn not_json(what: &dyn std::fmt::Display, error: &serde_json::Error) -> anyhow::Error {
    Usage(format!("{what} is not JSON: {error}")).into()
}

fn not_one(path: &Path) -> anyhow::Error {
    Usage(format!("{} is no object: `redeliver import` takes many messages", path.display())).into()
}
