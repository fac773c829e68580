//! `redeliver export`: messages and all that they carry, a line of JSON each, as `redeliver import` takes them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use futures_util::future::try_join_all;
use indicatif::ProgressBar;
use serde_json::{Map, Value};

use crate::args::ExportArgs;
use crate::config::problem::counted;
use crate::exit::{Usage, print_aside};
use crate::reach::{self, Message, Missing, Pages, Problem, Reach, Request, path_of};

/// Messages that are read together.
const LOOKS_MAX: usize = 16;

/// Those that are left out unless they are asked for: importing them would send them again.
const OVER: [&str; 2] = ["delivered", "cancelled"];

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
        let wanted =
            |message: &Message| args.filter.status.is_some() || !OVER.contains(&message.status.as_str());
        let messages: Vec<Message> =
            page.into_iter().map(|(_, message)| message).filter(|message| wanted(message)).collect();
        for some in messages.chunks(LOOKS_MAX) {
            let lines = try_join_all(some.iter().map(|message| line(reach, message))).await?;
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

/// A message as one would send it; nothing if it is gone by now.
async fn line(reach: &Reach, message: &Message) -> anyhow::Result<Option<Value>> {
    let request = Request::get(path_of(&message.id, "")).with(&[("content", "full")]);
    match reach.json(request).await {
        Ok(mut seen) => Ok(Some(as_sent(message, seen["content"].take()))),
        Err(error) if error.downcast_ref::<Problem>().is_some_and(|problem| problem.status == 404) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn as_sent(message: &Message, mut content: Value) -> Value {
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
    put("attempts", message.attempts.into());
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

fn create(path: &Path) -> anyhow::Result<File> {
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Usage(format!("{} is there already: name a new file", path.display())).into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    })
}
