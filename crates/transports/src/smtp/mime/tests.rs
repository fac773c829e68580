//! What is written is what an independent reader reads, whatever was put in.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{Message as Read, MessageParser, MimeHeaders};
use proptest::prelude::*;
use redeliver_core::email::{Attachment, Ics};

const ICS: &str = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\nSUMMARY:Tee für zwei\r\n.\r\n\r\nEND:VCALENDAR\r\n";

fn mailbox(address: &str, name: &str) -> Mailbox {
    Mailbox { address: address.to_owned(), name: (!name.is_empty()).then(|| name.to_owned()) }
}

fn full() -> Email {
    Email {
        from: Some(mailbox("from@example.org", "Grüße, \"GmbH\"")),
        reply_to: Some(mailbox("reply@example.org", "")),
        to: vec![mailbox("ada@example.org", "Ada Lovelace"), mailbox("info@bücher.example", "")],
        cc: vec![mailbox("cc@example.org", "C. C.")],
        bcc: vec![mailbox("secret@example.org", "Secret")],
        subject: "Ihre Buchung für 2".to_owned(),
        text: Some("Hallo Ada,\n.\n..zwei\n\ntschüß \n".to_owned()),
        html: Some("<p>Hallo = Ada</p>".to_owned()),
        ics: Some(Ics { content: ICS.to_owned(), method: "request".to_owned() }),
        attachments: vec![Attachment {
            name: "Größe \"1\".bin".to_owned(),
            content_type: "application/x-thing; version=2".to_owned(),
            base64: STANDARD.encode((0..=255u8).collect::<Vec<u8>>()),
        }],
        in_reply_to: Some("1@example.org".to_owned()),
        references: vec!["<0@example.org>".to_owned(), "<1@example.org>".to_owned()],
    }
}

fn written(email: &Email) -> Written {
    let sender = mailbox("default@example.org", "");
    write(email, &sender, &MessageId::own(17), Timestamp::from_ms(1_800_000_000_000)).unwrap()
}

fn read(bytes: &[u8]) -> Read<'_> {
    MessageParser::default().parse(bytes).unwrap()
}

/// The names of all headers before the first empty line.
fn header_names(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let head = text.split("\r\n\r\n").next().unwrap().to_owned();
    let own = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
    own.map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

/// What every mail keeps to, whatever is in it.
fn check_lines(mail: &Written) {
    let text = String::from_utf8(mail.bytes.clone()).unwrap();
    for line in text.split("\r\n") {
        assert!(!line.contains(['\r', '\n', '\0']), "a line break of its own: {line:?}");
        assert!(line.len() <= 998, "a line of {} bytes", line.len());
    }
    assert!(mail.needs_smtputf8 || mail.bytes.is_ascii());
}

#[test]
fn a_mail_with_everything_in_it_is_read_as_it_was_meant() {
    let mail = written(&full());
    check_lines(&mail);
    assert_eq!(mail.from, "from@example.org");
    assert_eq!(
        mail.to,
        ["ada@example.org", "info@xn--bcher-kva.example", "cc@example.org", "secret@example.org"]
    );
    assert!(!mail.needs_smtputf8);
    let read = read(&mail.bytes);
    assert_eq!(read.subject(), Some("Ihre Buchung für 2"));
    assert_eq!(read.message_id(), Some("00000000-0000-0000-0000-000000000011@example.org"));
    let from = read.from().unwrap().first().unwrap();
    assert_eq!((from.name(), from.address()), (Some("Grüße, \"GmbH\""), Some("from@example.org")));
    assert_eq!(read.date().unwrap().to_timestamp(), 1_800_000_000);
    assert_eq!(read.body_text(0).unwrap(), "Hallo Ada,\r\n.\r\n..zwei\r\n\r\ntschüß \r\n");
    assert_eq!(read.body_html(0).unwrap(), "<p>Hallo = Ada</p>");
    assert_eq!(
        header_names(&mail.bytes),
        [
            "Date",
            "From",
            "Reply-To",
            "To",
            "Cc",
            "Subject",
            "Message-ID",
            "In-Reply-To",
            "References",
            "MIME-Version",
            "Content-Type"
        ]
    );
}

#[test]
fn nobody_sees_who_else_got_it_secretly() {
    let text = String::from_utf8(written(&full()).bytes).unwrap();
    assert!(!text.to_lowercase().contains("bcc") && !text.contains("secret"));
    let only_secretly = Email { to: vec![], cc: vec![], ..full() };
    let mail = written(&only_secretly);
    assert_eq!(mail.to, ["secret@example.org"]);
    assert!(String::from_utf8(mail.bytes).unwrap().contains("\r\nTo: undisclosed-recipients:;\r\n"));
}

#[test]
fn a_calendar_comes_as_a_way_to_show_the_mail_and_as_a_file_byte_for_byte() {
    let mail = written(&full());
    let read = read(&mail.bytes);
    let kinds: Vec<String> = read
        .parts
        .iter()
        .filter_map(|part| {
            part.content_type().map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("-")))
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "multipart/mixed",
            "multipart/alternative",
            "text/plain",
            "text/html",
            "text/calendar",
            "application/ics",
            "application/x-thing"
        ]
    );
    let calendar = &read.parts[4];
    let kind = calendar.content_type().unwrap();
    assert_eq!((kind.attribute("method"), kind.attribute("charset")), (Some("REQUEST"), Some("utf-8")));
    assert_eq!(calendar.contents(), ICS.as_bytes());
    let file = &read.parts[5];
    assert_eq!((file.attachment_name(), file.contents()), (Some("invite.ics"), ICS.as_bytes()));
    let thing = &read.parts[6];
    assert_eq!(thing.attachment_name(), Some("Größe \"1\".bin"));
    assert_eq!(thing.contents(), (0..=255u8).collect::<Vec<u8>>());
}

#[test]
fn a_plain_mail_is_plain() {
    let email = Email {
        to: vec![mailbox("a@b", "")],
        subject: "Hi".to_owned(),
        text: Some("Hello\n".to_owned()),
        ..Email::default()
    };
    let text = String::from_utf8(written(&email).bytes).unwrap();
    assert_eq!(
        text,
        "Date: Fri, 15 Jan 2027 08:00:00 +0000\r\nFrom: default@example.org\r\nTo: a@b\r\nSubject: Hi\r\n\
         Message-ID: <00000000-0000-0000-0000-000000000011@example.org>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain;\r\n charset=\"utf-8\"\r\nContent-Transfer-Encoding: 7bit\r\n\r\nHello\r\n"
    );
}

#[test]
fn every_try_is_the_same_mail() {
    assert_eq!(written(&full()), written(&full()));
}

#[test]
fn the_ids_of_foreign_rows_make_message_ids_too() {
    let id = |text: &str| message_id(&text.parse().unwrap(), "a@example.org");
    assert_eq!(id("email-log:17"), "<email-log%3A17@example.org>");
    assert_ne!(id("t:a b"), id("t:a_b"));
    assert_eq!(id("t:\r\n<x@y>"), "<t%3A%0D%0A%3Cx%40y%3E@example.org>");
}

#[test]
fn letters_beyond_ascii_before_the_at_need_a_server_that_knows_them() {
    let email = Email {
        to: vec![mailbox("käthe@bücher.example", "Käthe")],
        text: Some("x".to_owned()),
        ..Email::default()
    };
    let mail = written(&email);
    assert!(mail.needs_smtputf8);
    assert_eq!(mail.to, ["käthe@xn--bcher-kva.example"]);
}

#[test]
fn a_hostile_mail_is_refused_again_at_sending() {
    let sender = mailbox("default@example.org", "");
    for email in [
        Email { subject: "x\r\nBcc: all@example.org".to_owned(), ..full() },
        Email { to: vec![mailbox("a@b\r\nDATA", "")], ..full() },
        Email { to: vec![mailbox("a@exa\u{FF1E}mple.org", "")], ..full() },
        Email { to: vec![mailbox("a@\u{2F49B}\u{301}-.org", "")], ..full() },
        Email { to: vec![], cc: vec![], bcc: vec![], ..full() },
    ] {
        assert!(write(&email, &sender, &MessageId::own(1), Timestamp::default()).is_err(), "{email:?}");
    }
}

/// Texts with everything in them that is special somewhere, and now and then anything at all.
fn odd_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9 ]{0,20}",
        "[ -~]{0,90}",
        any::<String>(),
        Just("=?utf-8?Q?=0D=0ABcc:_x?=".to_owned()),
        Just("\r\nBcc: all@example.org\r\n\r\n".to_owned()),
        Just("--=_redeliver_00000000-0000-0000-0000-000000000011.m--".to_owned()),
        Just("\r\n.\r\n".to_owned()),
        Just("x".repeat(1_000)),
        Just("日本語🎉".repeat(40)),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn odd_mailbox() -> impl Strategy<Value = Mailbox> {
    let address = prop_oneof![9 => "[a-z.+_'-]{1,12}@[a-z-]{1,8}(\\.[a-z]{2,3})?", 1 => odd_text()];
    (address, proptest::option::of(odd_text())).prop_map(|(address, name)| Mailbox { address, name })
}

fn odd_email() -> impl Strategy<Value = Email> {
    let ics = odd_text().prop_map(|text| Ics {
        content: format!("BEGIN:VCALENDAR\r\n{}", text.replace('\0', "")),
        method: "CANCEL".to_owned(),
    });
    let file = (odd_text(), proptest::collection::vec(any::<u8>(), 0..300)).prop_map(|(name, bytes)| {
        Attachment { name, content_type: "application/pdf".to_owned(), base64: STANDARD.encode(bytes) }
    });
    (
        proptest::option::of(odd_mailbox()),
        proptest::collection::vec(odd_mailbox(), 1..4),
        proptest::collection::vec(odd_mailbox(), 0..2),
        odd_text(),
        proptest::option::of(odd_text()),
        proptest::option::of(odd_text()),
        proptest::option::of(ics),
        proptest::collection::vec(file, 0..2),
    )
        .prop_map(|(from, to, bcc, subject, text, html, ics, attachments)| Email {
            from,
            to,
            bcc,
            subject,
            text,
            html,
            ics,
            attachments,
            ..Email::default()
        })
}

/// The same mail without what would not be accepted.
fn cleaned(mut email: Email) -> Email {
    let clean = |text: &str, max: usize| -> String {
        let kept: String =
            text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}')).collect();
        kept[..kept.floor_char_boundary(max)].to_owned()
    };
    email.subject = clean(&email.subject, 2_000);
    for mailbox in email.to.iter_mut().chain(&mut email.bcc).chain(&mut email.from) {
        mailbox.name = mailbox.name.as_deref().map(|name| clean(name, 255));
        if check_address(&mailbox.address).is_err() {
            mailbox.address = "ada@example.org".to_owned();
        }
    }
    for file in &mut email.attachments {
        file.name = format!("f{}", clean(&file.name.replace(['/', '\\'], ""), 200));
    }
    if email.text.as_deref().is_none_or(str::is_empty) {
        email.html = Some(format!("<p>{}", email.html.unwrap_or_default()));
    }
    email
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever passes at acceptance is written, and has no header that nobody asked for.
    #[test]
    fn no_mail_has_a_header_of_its_contents_making(email in odd_email()) {
        let sender = mailbox("default@example.org", "");
        let id = MessageId::own(17);
        if let Ok(mail) = write(&email, &sender, &id, Timestamp::from_ms(0)) {
            prop_assert_eq!(email.problems(), vec![]);
            check_lines(&mail);
        }
        let email = cleaned(email);
        prop_assert_eq!(email.problems(), vec![]);
        let Ok(mail) = write(&email, &sender, &id, Timestamp::from_ms(0)) else {
            // Only IDNA knows domains that the grammar of addresses doesn't.
            prop_assert!(email.recipients().chain(&email.from).any(|mailbox| !mailbox.address.is_ascii()));
            return Ok(());
        };
        check_lines(&mail);
        let mut expected = vec!["Date", "From", "To"];
        if !email.subject.is_empty() {
            expected.push("Subject");
        }
        expected.extend(["Message-ID", "MIME-Version", "Content-Type"]);
        let mut names = header_names(&mail.bytes);
        names.retain(|name| name != "Content-Transfer-Encoding");
        prop_assert_eq!(names, expected);
    }

    /// An independent reader finds every text and every byte as it was.
    #[test]
    fn what_is_written_is_what_is_read(email in odd_email().prop_map(cleaned)) {
        let sender = mailbox("default@example.org", "");
        let Ok(mail) = write(&email, &sender, &MessageId::own(17), Timestamp::from_ms(0)) else { return Ok(()) };
        let read = read(&mail.bytes);
        let lines = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
        let leaves: Vec<_> = read.parts.iter().filter(|part| !part.is_multipart()).collect();
        let mut expected: Vec<Vec<u8>> = Vec::new();
        expected.extend(email.text.iter().chain(&email.html).map(|text| lines(text).into_bytes()));
        expected.extend(email.ics.iter().flat_map(|ics| [ics.content.clone().into_bytes(), ics.content.clone().into_bytes()]));
        expected.extend(email.attachments.iter().map(|file| STANDARD.decode(&file.base64).unwrap()));
        prop_assert_eq!(leaves.len(), expected.len());
        let texts = email.text.iter().count() + email.html.iter().count();
        for (i, (leaf, bytes)) in leaves.iter().zip(&expected).enumerate() {
            match i < texts {
                true => prop_assert_eq!(lines(&String::from_utf8_lossy(leaf.contents())), String::from_utf8_lossy(bytes)),
                false => prop_assert_eq!(leaf.contents(), &bytes[..]),
            }
        }
        let names: Vec<Option<&str>> = leaves[leaves.len() - email.attachments.len()..].iter().map(|leaf| leaf.attachment_name()).collect();
        for (name, file) in names.iter().zip(&email.attachments) {
            prop_assert_eq!(name.unwrap_or_default(), file.name.as_str());
        }
    }
}
