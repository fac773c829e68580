//! `redeliver list`: the newest messages, a line each.

use comfy_table::{Cell, Color};
use futures_util::future::join_all;
use serde_json::Value;

use super::times::Times;
use super::{print, show};
use crate::args::ListArgs;
use crate::exit::print_aside;
use crate::reach::{self, Message, Missing, Page, Pages, Reach, Request, path_of, short_ids};

/// Characters of what a mail is about, and of an error, at most.
const ABOUT_LEN_MAX: usize = 40;
const TROUBLE_LEN_MAX: usize = 60;

/// Messages that are looked at together.
const LOOKS_MAX: usize = 16;

pub(super) fn run(args: &ListArgs) -> anyhow::Result<()> {
    reach::run(list(args))
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let reach = Reach::open(&args.reach, Missing::Refuse).await?;
    let limit = if args.all { u64::MAX } else { args.limit };
    let mut pages = Pages::of(&args.filter, limit);
    let mut is_first = true;
    while let Some(page) = pages.next(&reach).await? {
        if args.output.json {
            let lines: String = page.iter().map(|(value, _)| format!("{value}\n")).collect();
            print(&lines)?;
        } else if page.is_empty() && is_first {
            print_aside("no such messages");
        } else if !page.is_empty() {
            let abouts = if args.brief { None } else { Some(abouts(&reach, &page).await) };
            print(&table(&page, abouts.as_deref(), Times::of(args.output.utc)))?;
        }
        is_first = false;
    }
    if pages.has_more() && !args.output.json {
        print_aside("there are more: --all lists them, --limit so many");
    }
    Ok(())
}

/// Whom each message is for and what it is about, where it is a mail.
async fn abouts(reach: &Reach, page: &Page) -> Vec<String> {
    let mut abouts = Vec::with_capacity(page.len());
    for some in page.chunks(LOOKS_MAX) {
        let looks = some.iter().map(|(_, message)| async {
            // One that is gone by now, or that we may not look into, is listed all the same.
            reach
                .json(Request::get(path_of(&message.id, "")))
                .await
                .map_or_else(|_| String::new(), |seen| about(&seen))
        });
        abouts.extend(join_all(looks).await);
    }
    abouts
}

/// Whom a message is for and what it is about; where it goes, if it is no mail.
pub(super) fn about(seen: &Value) -> String {
    let content = &seen["content"];
    let subject = content["subject"].as_str().unwrap_or_default();
    let text = match content["to"].as_array().map(Vec::as_slice) {
        Some([first, rest @ ..]) => {
            let first = first.as_str().unwrap_or_default();
            let more = if rest.is_empty() { String::new() } else { format!(" +{}", rest.len()) };
            format!("{first}{more}: {subject}")
        }
        _ => content["target"].as_str().unwrap_or_default().to_owned(),
    };
    cut(&text, ABOUT_LEN_MAX)
}

fn table(page: &Page, abouts: Option<&[String]>, times: Times) -> String {
    let ids: Vec<&str> = page.iter().map(|(_, message)| message.id.as_str()).collect();
    let rows = page.iter().zip(short_ids(&ids)).enumerate().map(|(index, ((_, message), id))| {
        let mut row = vec![Cell::new(id), status(&message.status), Cell::new(&message.route)];
        row.extend(abouts.map(|abouts| Cell::new(abouts.get(index).map_or("", String::as_str))));
        row.push(Cell::new(message.tries()));
        row.push(Cell::new(when(message, times)));
        row.push(Cell::new(cut(&message.trouble(), TROUBLE_LEN_MAX)));
        row
    });
    let mut header = vec!["id", "status", "route", "about", "tries", "when", "trouble"];
    if abouts.is_none() {
        header.remove(3);
    }
    show::table(&header, &[header.len() - 3], rows.collect())
}

/// When a message ended, or else when it goes out next.
pub(super) fn when(message: &Message, times: Times) -> String {
    match message.status.as_str() {
        "held" | "sending" | "handed_off" => String::new(),
        _ => times.show(message.ended_at.unwrap_or(message.due_at)),
    }
}

/// A status, in its colour.
fn status(word: &str) -> Cell {
    match colour(word) {
        Some(colour) => Cell::new(word).fg(colour),
        None => Cell::new(word),
    }
}

/// The colour of a status, where colours are seen.
pub(super) fn colour(status: &str) -> Option<Color> {
    match status {
        "delivered" => Some(Color::Green),
        "dead" => Some(Color::Red),
        "retrying" | "held" => Some(Color::Yellow),
        "sending" | "handed_off" => Some(Color::Cyan),
        _ => None,
    }
}

/// At most so many characters of a text, in one line, without anything that a terminal would obey.
pub(super) fn cut(text: &str, len_max: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.chars().count() <= len_max {
        return plain;
    }
    plain.chars().take(len_max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_one_plain_line() {
        assert_eq!(cut("451 try\r\n\u{1b}[31mlater", 60), "451 try   [31mlater");
        assert_eq!(cut("äöüß", 4), "äöüß");
        assert_eq!(cut("äöüß", 3), "äö…");
    }

    #[test]
    fn a_mail_is_about_its_recipients_and_its_subject() {
        let check = |content: Value, words: &str| {
            assert_eq!(about(&serde_json::json!({ "content": content })), words);
        };
        check(serde_json::json!({ "to": ["a@x.org"], "subject": "Hi" }), "a@x.org: Hi");
        check(
            serde_json::json!({ "to": ["a@x.org", "b@x.org", "c@x.org"], "subject": "Hi" }),
            "a@x.org +2: Hi",
        );
        check(serde_json::json!({ "target": "orders" }), "orders");
        check(Value::Null, "");
    }
}
