//! Hostile mails are refused at acceptance, each with the field that is at fault.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use redeliver_core::email::{
    ATTACHMENTS_MAX, Attachment, Email, ICS_METHODS, Ics, Mailbox, NAME_BYTES_MAX, RECIPIENTS_MAX,
    REFERENCES_MAX, SUBJECT_BYTES_MAX,
};

fn mailbox(address: &str) -> Mailbox {
    Mailbox { address: address.to_owned(), name: Some("Ada Lovelace".to_owned()) }
}

/// A mail with everything in it, and nothing wrong with it.
fn good() -> Email {
    Email {
        from: Some(mailbox("from@example.org")),
        reply_to: Some(mailbox("reply@example.org")),
        to: vec![mailbox("ada@example.org"), mailbox("bob@example.org")],
        cc: vec![mailbox("cc@example.org")],
        bcc: vec![mailbox("bcc@example.org")],
        subject: "Grüße".to_owned(),
        text: Some("Hello\n.\nworld\0".to_owned()),
        html: Some("<p>Hello</p>".to_owned()),
        ics: Some(Ics {
            content: "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n".to_owned(),
            method: "REQUEST".to_owned(),
        }),
        attachments: vec![Attachment {
            name: "größe 1.pdf".to_owned(),
            content_type: "application/pdf; version=1".to_owned(),
            base64: "QUJD".to_owned(),
        }],
        in_reply_to: Some("<1@example.org>".to_owned()),
        references: vec!["<0@example.org>".to_owned(), "1@example.org".to_owned()],
    }
}

/// Changes one field of a mail.
type Put = fn(&mut Email) -> &mut String;

/// Every field that becomes part of a header or an envelope.
const HEADER_FIELDS: [(&str, Put); 17] = [
    ("from.address", |email| &mut email.from.as_mut().unwrap().address),
    ("from.name", |email| email.from.as_mut().unwrap().name.as_mut().unwrap()),
    ("reply_to.address", |email| &mut email.reply_to.as_mut().unwrap().address),
    ("reply_to.name", |email| email.reply_to.as_mut().unwrap().name.as_mut().unwrap()),
    ("to[0].address", |email| &mut email.to[0].address),
    ("to[1].address", |email| &mut email.to[1].address),
    ("to[1].name", |email| email.to[1].name.as_mut().unwrap()),
    ("cc[0].address", |email| &mut email.cc[0].address),
    ("cc[0].name", |email| email.cc[0].name.as_mut().unwrap()),
    ("bcc[0].address", |email| &mut email.bcc[0].address),
    ("bcc[0].name", |email| email.bcc[0].name.as_mut().unwrap()),
    ("subject", |email| &mut email.subject),
    ("attachments[0].name", |email| &mut email.attachments[0].name),
    ("attachments[0].content_type", |email| &mut email.attachments[0].content_type),
    ("ics.method", |email| &mut email.ics.as_mut().unwrap().method),
    ("in_reply_to", |email| email.in_reply_to.as_mut().unwrap()),
    ("references[1]", |email| &mut email.references[1]),
];

/// What must not come through any of them.
const NASTIES: [&str; 22] = [
    "\r\nBcc: all@example.org",
    "\nBcc: all@example.org",
    "\rBcc: all@example.org",
    "\r\n\r\n<script>",
    "\r\n.\r\nMAIL FROM:<x@evil.example>",
    "\n.\n",
    "\n.\r\n",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\u{1}",
    "\t",
    "\u{8}",
    "\u{b}",
    "\u{c}",
    "\u{1b}[2J",
    "\u{7f}",
    "\u{85}Bcc: all@example.org",
    "\u{2028}Bcc: all@example.org",
    "\u{2029}Bcc: all@example.org",
    "\r\n\tfolded",
];

fn fields_at_fault(email: &Email) -> Vec<String> {
    email.problems().into_iter().map(|problem| problem.field).collect()
}

fn check(name: &str, email: &Email, field: &str) {
    assert_eq!(fields_at_fault(email), [field], "{name}");
}

#[test]
fn a_mail_with_everything_in_it_is_fine() {
    assert_eq!(good().problems(), []);
    let plain = Email {
        to: vec![Mailbox { address: "a@b".to_owned(), name: None }],
        text: Some("x".to_owned()),
        ..Email::default()
    };
    assert_eq!(plain.problems(), []);
}

#[test]
fn nothing_breaks_out_of_a_header_wherever_it_stands() {
    let mut cases = 0;
    for (field, put) in HEADER_FIELDS {
        for nasty in NASTIES {
            for whole in ["{n}", "{v}{n}", "{n}{v}", "{h}{n}{t}"] {
                let mut email = good();
                let value = put(&mut email).clone();
                let (head, tail) = value.split_at(value.floor_char_boundary(value.len() / 2));
                *put(&mut email) = whole
                    .replace("{n}", nasty)
                    .replace("{v}", &value)
                    .replace("{h}", head)
                    .replace("{t}", tail);
                check(&format!("{field} {nasty:?} {whole}"), &email, field);
                cases += 1;
            }
        }
    }
    assert!(cases >= 200, "{cases}");
}

#[test]
fn a_problem_says_where_and_never_repeats_what() {
    let mut email = good();
    email.to[1].address = "secret\r\n@example.org".to_owned();
    let problems = email.problems();
    assert_eq!(problems[0].field, "to[1].address");
    assert_eq!(problems[0].problem, "has a carriage return as character 7");
    assert!(!format!("{problems:?}").contains("secret"));
}

#[test]
fn each_odd_field_is_named() {
    let put = |field: &str, value: &str| {
        let (_, put) = HEADER_FIELDS.into_iter().find(|(name, _)| *name == field).unwrap();
        let mut email = good();
        *put(&mut email) = value.to_owned();
        check(value, &email, field);
    };
    for field in ["from.address", "reply_to.address", "to[0].address", "cc[0].address", "bcc[0].address"] {
        for address in
            ["", "ada", "a@b@c", "a b@c", "\"a\"@b", "<a@b>", "a@b,c@d", "a@", "@b", "a@b..c", "a@[::1]"]
        {
            put(field, address);
        }
    }
    for kind in [
        "",
        "pdf",
        "application/",
        "/pdf",
        "application/pdf/x",
        "application /pdf",
        "text/plain; charset",
        "text/plain;",
        "text/plain; charset=\"utf-8\"",
        "text/plain; name=x",
        "multipart/mixed",
        "Message/rfc822",
        "text/ünlikely",
        "text/plain; a=b c=d",
    ] {
        put("attachments[0].content_type", kind);
    }
    for name in ["", "../../etc/passwd", "a/b", "a\\b"] {
        put("attachments[0].name", name);
    }
    for method in ["", "INVITE", "REQUEST; charset=x", "REQUEST ", "REQUEST\"", "ПУБЛИКАЦИЯ"] {
        put("ics.method", method);
    }
    for id in
        ["", "<>", "<@>", "<a@>", "<@b>", "a", "<a b@c>", "<a@b", "a@b>", "<a@b> <c@d>", "<a@b@c>", "<ä@b>"]
    {
        put("in_reply_to", id);
        put("references[1]", id);
    }
}

#[test]
fn what_is_too_long_or_too_many_is_refused() {
    let long = |bytes: usize| "x".repeat(bytes);
    let mut email = good();
    email.subject = long(SUBJECT_BYTES_MAX + 1);
    check("subject", &email, "subject");
    let mut email = good();
    email.cc[0].name = Some(long(NAME_BYTES_MAX + 1));
    check("name", &email, "cc[0].name");
    let mut email = good();
    email.bcc = (0..RECIPIENTS_MAX).map(|i| mailbox(&format!("u{i}@example.org"))).collect();
    check("recipients", &email, "to");
    let mut email = good();
    email.attachments = vec![email.attachments[0].clone(); ATTACHMENTS_MAX + 1];
    check("attachments", &email, "attachments");
    let mut email = good();
    email.references = vec!["<a@b>".to_owned(); REFERENCES_MAX + 1];
    check("references", &email, "references");
}

#[test]
fn nobody_and_nothing_are_refused() {
    let nobody = Email { to: vec![], cc: vec![], bcc: vec![], ..good() };
    check("nobody", &nobody, "to");
    let nothing = Email { to: good().to, text: Some(String::new()), ..Email::default() };
    check("nothing", &nothing, "text");
}

#[test]
fn what_is_no_base64_and_no_calendar_is_refused() {
    for base64 in ["Q", "QQ=", "QU JD", "QUJD\r\n", "QU\0D", "QU-_", "äöü="] {
        let mut email = good();
        email.attachments[0].base64 = base64.to_owned();
        check(base64, &email, "attachments[0].base64");
    }
    for content in
        ["", "VCALENDAR", "BEGIN:VCARD\r\n", " BEGIN:VCALENDAR", "BEGIN:VCALENDÄR", "BEGIN:VCALENDAR\0"]
    {
        let mut email = good();
        email.ics.as_mut().unwrap().content = content.to_owned();
        check(content, &email, "ics.content");
    }
}

#[test]
fn every_method_of_calendars_is_known() {
    for method in ICS_METHODS {
        let mut email = good();
        email.ics.as_mut().unwrap().method = method.to_ascii_lowercase();
        assert_eq!(email.problems(), []);
    }
}

#[test]
fn letters_beyond_ascii_are_noted_only_before_the_at() {
    let mut email = good();
    assert!(!email.needs_smtputf8());
    email.cc[0].address = "info@bücher.example".to_owned();
    assert_eq!((email.problems(), email.needs_smtputf8()), (vec![], false));
    email.bcc[0].address = "käthe@example.org".to_owned();
    assert_eq!((email.problems(), email.needs_smtputf8()), (vec![], true));
}

#[test]
fn an_address_is_written_in_three_ways() {
    let read = |to: &str| serde_json::from_str::<Email>(&format!("{{\"to\":{to},\"text\":\"x\"}}")).unwrap();
    assert_eq!(read("\"a@b\"").to[0].address, "a@b");
    assert_eq!(read("{\"address\":\"a@b\",\"name\":\"A\"}").to[0].name.as_deref(), Some("A"));
    assert_eq!(read("[\"a@b\",{\"address\":\"c@d\"}]").to.len(), 2);
    let again: Email = serde_json::from_slice(&good().to_content().unwrap().bytes).unwrap();
    assert_eq!(again, good());
}

proptest! {
    #[test]
    fn whatever_is_put_anywhere_is_looked_at_without_falling_over(text in any::<String>(), at in 0..HEADER_FIELDS.len()) {
        let mut email = good();
        let (field, put) = HEADER_FIELDS[at];
        *put(&mut email) = text.clone();
        let problems = email.problems();
        prop_assert!(problems.iter().all(|problem| problem.field == field));
        let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        prop_assert!(!text.contains(breaks) || !problems.is_empty());
    }
}
