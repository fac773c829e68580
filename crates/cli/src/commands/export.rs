//! `redeliver export`: messages and all that they carry, a line of JSON each, as `redeliver import` takes them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use futures_util::future::try_join_all;
use indicatif::ProgressBar;
use redeliver_core::campaign::STEP_TYPE;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::args::ExportArgs;
use crate::config::problem::counted;
use crate::exit::{Usage, print_aside};
use crate::reach::{self, Message, Missing, Pages, Problem, Reach, Request, path_of};

/// Messages that are read together.
const LOOKS_MAX: usize = 16;

/// Those that are left out unless they are asked for: nothing is to be sent of them.
const OVER: [&str; 3] = ["delivered", "cancelled", "dead"];

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        match &args.output {
            None => export(&reach, args, &mut io::stdout().lock()).await.map(drop),
            Some(path) => {
                let mut file = BufWriter::new(create(path)?);
                let written = export(&reach, args, &mut file)
                    .await
                    .with_context(|| format!("{} is not complete", path.display()))?;
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.sync_all().with_context(|| format!("cannot write {}", path.display()))?;
                print_aside(format_args!("{} in {}", counted(written, "message"), path.display()));
                Ok(())
            }
        }
    })
}

async fn export(reach: &Reach, args: &ExportArgs, out: &mut impl Write) -> anyhow::Result<usize> {
    // Standard error is for people: the lines themselves may go to the same terminal.
    let bar = ProgressBar::new_spinner();
    let mut pages = Pages::of(&args.filter, u64::MAX);
    let mut written = 0;
    while let Some(page) = pages.next(reach).await? {
        let messages: Vec<Message> =
            page.into_iter().map(|(_, message)| message).filter(|message| is_wanted(message, args)).collect();
        for some in messages.chunks(LOOKS_MAX) {
            let lines = try_join_all(some.iter().map(|message| line(reach, message, args))).await?;
            for line in lines.into_iter().flatten() {
                writeln!(out, "{line}")?;
                written += 1;
            }
            bar.set_message(counted(written, "message"));
            bar.tick();
        }
    }
    out.flush()?;
    bar.finish_and_clear();
    Ok(written)
}

fn is_wanted(message: &Message, args: &ExportArgs) -> bool {
    args.filter.status.is_some() || !OVER.contains(&message.status.as_str())
}

/// A message as one would send it, as it stands now; nothing if it is gone or over by now.
async fn line(reach: &Reach, listed: &Message, args: &ExportArgs) -> anyhow::Result<Option<Value>> {
    let request = Request::get(path_of(&listed.id, "")).with(&[("content", "full")]);
    match reach.json(request).await {
        Ok(seen) => {
            let message = Message::deserialize(&seen).context("the server's answer is no message")?;
            // What a campaign is yet to write is nothing to send: the campaign is launched where it is wanted.
            let is_unwritten = seen["content"]["content_type"] == STEP_TYPE;
            Ok((is_wanted(&message, args) && !is_unwritten).then(|| as_sent(&message, seen)))
        }
        Err(error) if error.downcast_ref::<Problem>().is_some_and(|problem| problem.status == 404) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn as_sent(message: &Message, mut seen: Value) -> Value {
    let mut content = seen["content"].take();
    keep_those_left(&mut content["email"], &seen["recipients"], &message.status);
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            line.insert(name.to_owned(), value);
        }
    };
    put("route", message.route.clone().into());
    put("workspace", message.workspace.clone().into());
    // One without a key gets one, so that importing it twice is importing it once.
    put("key", message.key.clone().unwrap_or_else(|| format!("exported-{}", message.id)).into());
    put("priority", message.priority.clone().into());
    put("due_at", message.due_at.to_string().into());
    put("expires_at", message.expires_at.map(|at| at.to_string()).into());
    let (attempts, max_attempts) = budget(message);
    put("attempts", attempts.into());
    put("max_attempts", max_attempts.into());
    put("error", message.last_error.as_ref().map(|error| error.text.clone()).into());
    for name in ["target", "attributes", "email", "payload", "payload_base64"] {
        let value = content[name].take();
        if value.as_object().is_none_or(|object| !object.is_empty()) {
            put(name, value);
        }
    }
    // A mail's is no matter of whoever sends it.
    if content["kind"] == "payload" {
        put("content_type", content["content_type"].take());
    }
    Value::Object(line)
}

/// Tries that it has had, and tries in all. What was given up has had all of them, so that it comes as given up and is
/// not sent again unless a person says so.
fn budget(message: &Message) -> (u32, Option<u32>) {
    let (had, all) = (message.attempts, message.max_attempts);
    match message.status.as_str() {
        "dead" => {
            let spent = had.max(all.unwrap_or(1));
            (spent, Some(spent))
        }
        _ => (had, all),
    }
}

/// Leaves out the recipients of a mail who have it, and those who never will. Of a dead one, those who refused it stay, as
/// they do when a person retries it; and one that is over is wanted whole. A verdict names its recipient by the place among
/// all of them.
fn keep_those_left(email: &mut Value, verdicts: &Value, status: &str) {
    let done: &[&str] = match status {
        "delivered" | "cancelled" => &[],
        "dead" => &["delivered"],
        _ => &["delivered", "refused"],
    };
    let is_final = |verdict: &&Value| done.iter().any(|outcome| verdict["outcome"] == *outcome);
    let settled: Vec<u64> = verdicts
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_final)
        .filter_map(|verdict| verdict["index"].as_u64())
        .collect();
    let mut place = 0;
    for list in ["to", "cc", "bcc"] {
        let Some(list) = email.get_mut(list).and_then(Value::as_array_mut) else { continue };
        list.retain(|_| {
            place += 1;
            !settled.contains(&(place - 1))
        });
    }
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Usage(format!("{} is there already: name a new file", path.display())).into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(status: &str, more: Value) -> Value {
        let mut seen = json!({
            "id": "m-1", "workspace": "default", "route": "email", "priority": "medium", "status": status,
            "due_at": "2027-01-01T00:00:00.000Z", "scheduled_for": "2027-01-01T00:00:00.000Z",
            "created_at": "2027-01-01T00:00:00.000Z", "attempts": 1, "max_attempts": 6, "losses": 0,
            "possible_duplicates": 0, "recipients": [],
            "content": { "kind": "email", "email": { "to": ["a@x.org", "b@x.org"], "cc": ["c@x.org"],
                "bcc": ["d@x.org"], "subject": "Hi", "text": "Hi" } },
        });
        seen.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        seen
    }

    fn exported(seen: Value) -> Value {
        as_sent(&Message::deserialize(&seen).unwrap(), seen)
    }

    #[test]
    fn who_has_a_mail_or_never_will_is_left_out_of_it() {
        let verdict = |index: u32, outcome: &str| json!({ "index": index, "outcome": outcome });
        let verdicts = [verdict(0, "delivered"), verdict(1, "failed"), verdict(2, "refused")];
        let check = |status: &str, to: Value, cc: Value| {
            let email = &exported(seen(status, json!({ "recipients": verdicts })))["email"];
            assert_eq!(
                [&email["to"], &email["cc"], &email["bcc"]],
                [&to, &cc, &json!(["d@x.org"])],
                "{status}"
            );
        };
        check("retrying", json!(["b@x.org"]), json!([]));
        check("dead", json!(["b@x.org"]), json!(["c@x.org"]));
        check("delivered", json!(["a@x.org", "b@x.org"]), json!(["c@x.org"]));
        assert_eq!(exported(seen("due", json!({})))["email"]["to"], json!(["a@x.org", "b@x.org"]));
    }

    #[test]
    fn what_was_given_up_is_exported_with_all_its_tries_used_up() {
        let tries = |seen: Value| {
            let line = exported(seen);
            (line["attempts"].clone(), line["max_attempts"].clone())
        };
        assert_eq!(tries(seen("retrying", json!({}))), (json!(1), json!(6)));
        assert_eq!(tries(seen("dead", json!({}))), (json!(6), json!(6)));
        assert_eq!(tries(seen("dead", json!({ "attempts": 0, "max_attempts": null }))), (json!(1), json!(1)));
    }
}
