//! `redeliver edit`: corrects what made a message hopeless, shows the difference, and sends it again.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::list::cut;
use super::send::flags::{mailbox, text};
use super::send::{not_json, read};
use super::{print, show};
use crate::args::EditArgs;
use crate::exit::Usage;
use crate::reach::{self, Missing, Reach, Request, find_id, path_of};

/// Characters of what a field says, at most.
const SAID_LEN_MAX: usize = 60;

/// What is different in one field.
#[derive(Deserialize)]
pub(super) struct Difference {
    field: String,
    #[serde(default)]
    before: Value,
    #[serde(default)]
    after: Value,
}

pub(super) fn run(args: &EditArgs) -> anyhow::Result<()> {
    let mut wanted = wanted(args)?;
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let id = find_id(&reach, &args.id).await?;
        if !wanted.contains_key("version") {
            // Whoever changes it between this and the next call is noticed by it.
            let seen = reach.json(Request::get(path_of(&id, ""))).await?;
            wanted.insert("version".to_owned(), seen["version"].clone());
        }
        if args.dry_run {
            wanted.insert("dry_run".to_owned(), true.into());
        }
        let request = Request::post(path_of(&id, "/edit")).json(&Value::Object(wanted));
        let mut answer = reach.json(request).await?;
        if args.json {
            return print(&format!("{answer}\n"));
        }
        let differences: Vec<Difference> = Deserialize::deserialize(answer["differences"].take())?;
        print(&table(&differences))?;
        match (args.dry_run, answer["message"]["status"].as_str()) {
            (true, _) => print("\nnothing was done: say it without --dry-run to send it like this\n"),
            (false, status) => print(&format!("\n{id}  {}\n", status.unwrap_or("?"))),
        }
    })
}

/// Differences, a line each.
pub(super) fn table(differences: &[Difference]) -> String {
    let said = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => cut(text, SAID_LEN_MAX),
        other => cut(&other.to_string(), SAID_LEN_MAX),
    };
    let row = |different: &Difference| {
        vec![cut(&different.field, SAID_LEN_MAX), said(&different.before), said(&different.after)]
    };
    show::table(&["field", "before", "after"], &[], differences.iter().map(row).collect())
}

/// What is to be otherwise, as the API takes it.
fn wanted(args: &EditArgs) -> anyhow::Result<Map<String, Value>> {
    let stdin = [&args.text, &args.html, &args.payload].into_iter().flatten().filter(|said| *said == "-");
    if stdin.count() > 1 {
        return Err(Usage("only one thing can be read from standard input".to_owned()).into());
    }
    let mut wanted = match &args.from_json {
        Some(path) => {
            serde_json::from_slice(&read(path)?).map_err(|error| not_json(&path.display(), &error))?
        }
        None => Map::new(),
    };
    let mut email = Map::new();
    for (name, said) in [("to", &args.to), ("cc", &args.cc), ("bcc", &args.bcc)] {
        if !said.is_empty() {
            let mailboxes = said.iter().filter(|text| !text.is_empty()).map(|text| mailbox(text));
            email.insert(name.to_owned(), serde_json::to_value(mailboxes.collect::<Vec<_>>())?);
        }
    }
    for (name, said) in [("from", &args.from), ("reply_to", &args.reply_to)] {
        let value = match said.as_deref() {
            None => continue,
            Some("") => Value::Null,
            Some(text) => serde_json::to_value(mailbox(text))?,
        };
        email.insert(name.to_owned(), value);
    }
    for (name, said) in [("subject", &args.subject), ("text", &args.text), ("html", &args.html)] {
        let value = match said.as_deref() {
            None => continue,
            Some("") if name != "subject" => Value::Null,
            Some(said) if name != "subject" => text(said)?.into(),
            Some(said) => said.into(),
        };
        email.insert(name.to_owned(), value);
    }
    if !email.is_empty() {
        wanted.insert("email".to_owned(), Value::Object(email));
    }
    if let Some(said) = &args.payload {
        let payload = serde_json::from_str(&text(said)?).map_err(|error| not_json(&"the payload", &error))?;
        wanted.insert("payload".to_owned(), payload);
    }
    wanted.extend(args.route.iter().map(|route| ("route".to_owned(), route.as_str().into())));
    let some = |text: &String| if text.is_empty() { Value::Null } else { text.as_str().into() };
    wanted.extend(args.target.iter().map(|target| ("target".to_owned(), some(target))));
    if !args.attribute.is_empty() {
        let attributes = args.attribute.iter().map(|(name, value)| (name.clone(), some(value)));
        wanted.insert("attributes".to_owned(), Value::Object(attributes.collect()));
    }
    Ok(wanted)
}
