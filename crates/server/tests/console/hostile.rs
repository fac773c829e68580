//! Whatever a mail, a server or a key's name says, it is text on a page and never part of the page.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::bulk::{Bulk, Pace, Standing, Total, Which};
use redeliver_core::campaign::{CampaignState, Ends, Ledger, MailOf};
use redeliver_core::change::Audit;
use redeliver_core::edit::{Difference, EditRecord};
use redeliver_core::email::{Attachment, Email, Ics, Mailbox};
use redeliver_core::gate::Scope;
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::operate::{Action, operate};
use redeliver_core::{Change, Content, Failure, Message, MessageId, State, Timestamp};
use redeliver_engine::access::Role;
use redeliver_engine::campaigns::{CampaignRecord, Campaigns};
use redeliver_engine::store::{About, Applied, Store};
use serde_json::{Value, json};

use crate::html::shape;
use crate::reader::Reader;
use crate::stage::{Stage, TRIES_MAX};

/// Things that would run, break out or break the page if they were not escaped.
pub const NASTY: [&str; 14] = [
    "<script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"><svg onload=window.hacked=1>",
    "' onmouseover='window.hacked=1",
    "\" autofocus onfocus=\"window.hacked=1",
    "</a></td></tr></table><h1>gone",
    "<!-- ",
    "]]><![CDATA[",
    "javascript:window.hacked=1",
    "{{ 7*7 }} {% raw %} ${7*7}",
    "&lt;script&gt; &#60;b&#62; &",
    "\u{202e}gpj.exe\u{0}\u{7f}\u{2028}",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>",
];

/// What an audit page shows of somebody with such a name who paused a route.
async fn audit_shape(text: &str) -> Vec<String> {
    let stage = Stage::new();
    stage.engine.pause(Scope::Destination, text, &text.into()).await.unwrap();
    let mut reader = stage.reader(Role::Admin, None).await;
    let mut seen = shape(&reader.get("/admin/audit").await.body);
    seen.extend(shape(&reader.get("/admin/routes").await.body));
    seen.extend(shape(&reader.get("/admin").await.body));
    seen
}

/// A failed mail that says the same everywhere.
pub fn mail_saying(text: &str) -> NewMessage {
    let mailbox = || Mailbox { address: text.to_owned(), name: Some(text.to_owned()) };
    let email = Email {
        from: Some(mailbox()),
        to: vec![mailbox()],
        cc: vec![mailbox()],
        bcc: vec![mailbox()],
        reply_to: Some(mailbox()),
        subject: text.to_owned(),
        text: Some(text.to_owned()),
        in_reply_to: Some(text.to_owned()),
        references: vec![text.to_owned()],
        html: Some(text.to_owned()),
        ics: Some(Ics { content: text.to_owned(), method: text.to_owned() }),
        attachments: vec![Attachment {
            name: text.to_owned(),
            content_type: text.to_owned(),
            base64: String::new(),
        }],
    };
    let content = Content { attributes: attributes_saying(text), ..email.to_content().unwrap() };
    NewMessage {
        workspace: text.into(),
        key: Some(text.into()),
        attempts: TRIES_MAX,
        error: Some(Failure::new(text).with_code(text)),
        ..NewMessage::new("email", content)
    }
}

/// Something that is no mail and says the same everywhere: its payload, what that is, where it goes.
pub fn payload_saying(text: &str) -> NewMessage {
    let content = Content {
        target: Some(text.into()),
        attributes: attributes_saying(text),
        content_type: Some(text.into()),
        ..Content::of_bytes(text.to_owned())
    };
    NewMessage { workspace: text.into(), ..NewMessage::new("sms", content) }
}

fn attributes_saying(text: &str) -> BTreeMap<String, String> {
    [("device".to_owned(), text.to_owned()), (format!("x{text}"), text.to_owned())].into()
}

/// A message whose other side said such a thing when it took it, and one that was cancelled for such a reason.
pub async fn ended_saying(stage: &Stage, text: &str, wait: impl Fn()) -> [MessageId; 2] {
    let mut ids = Vec::new();
    for state in [
        State::Delivered { at: Timestamp::from_ms(1), receipt: Some(text.into()) },
        State::Cancelled { at: Timestamp::from_ms(1), reason: text.into() },
    ] {
        wait();
        let id = stage.accept(payload_saying(text)).await;
        let before = stage.get(&id).await;
        let route = stage.engine.route("sms").unwrap();
        let change = operate(&before, Action::Cancel, &"stage".into(), route, before.due_at).unwrap();
        let message = Message { state, ..change.message.clone() };
        assert_eq!(stage.store.apply(vec![Change { message, ..change }]).await.unwrap(), [Applied::Applied]);
        ids.push(id);
    }
    ids.try_into().unwrap()
}

/// A mail that such things came of: a try by an instance of such a name, and a verdict on each of its recipients.
pub async fn tried_saying(stage: &Stage, text: &str) -> MessageId {
    let engine = &stage.engine;
    let (instance, now) = (engine.instance(), engine.clock().now());
    engine.beat().await.unwrap();
    let about = About { name: text.into(), version: text.into(), started_at: now };
    stage.store.introduce(instance, about).await.unwrap();
    let id = stage.accept(NewMessage { key: None, ..mail_saying(text) }).await;
    let before = stage.get(&id).await;
    let failure = || Failure::new(text).with_code(text);
    let fates = [Fate::Delivered, Fate::Failed(failure()), Fate::Refused(failure())];
    let verdicts = fates.into_iter().zip(0..).map(|(fate, index)| RecipientVerdict { index, fate });
    let route = engine.route("email").unwrap();
    let change = operate(&before, Action::Retry, &"stage".into(), route, now).unwrap();
    let record = AttemptRecord {
        generation: 0,
        attempt: 1,
        verdict: Verdict::Partial,
        at: now,
        due_at: Some(now),
        claimed_at: Some(now),
        sent_at: Some(now),
        instance: Some(instance),
        failure: Some(failure()),
    };
    let message = Message { recipients: verdicts.collect(), fence: change.message.fence, ..before };
    let change = Change { message, attempt: Some(record), ..change };
    assert_eq!(stage.store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    id
}

/// A campaign of such a name with settings, and templates that say what is known of a prospect.
async fn campaign_with(stage: &Stage, id: &str, text: &str, settings: Value) {
    let step = json!({ "order": 1, "subject": "{{ title }}", "text": "{{ first_name }}", "html": "<p>{{ first_name }}</p>" });
    let definition = json!({ "name": text, "sequence_id": id, "route": "email", "from": "ada@example.org",
        "steps": [step], "settings": settings });
    let at = stage.engine.clock().now();
    let record = CampaignRecord {
        id: id.into(),
        workspace: text.into(),
        definition: serde_json::from_value(definition).unwrap(),
        state: CampaignState::Draft,
        ledger: Ledger::default(),
        prospects: 0,
        scheduled: 0,
        last_at: None,
        paused_for: None,
        ends: Ends::default(),
        created_at: at,
    };
    let audit = Audit { actor: "stage".into(), action: "create", subject: id.into(), at, detail: None };
    assert!(stage.store.add_campaign(record, audit).await.unwrap());
}

/// Mails of a campaign that are yet to be written, to prospects of whom such things are known: one that can be, and one that
/// has no address.
pub async fn drafts_saying(stage: &Stage, campaign: &str, text: &str, wait: impl Fn()) -> [MessageId; 2] {
    campaign_with(stage, campaign, text, json!({})).await;
    let title: String = text.chars().filter(|c| c.is_ascii_graphic()).collect();
    let known =
        |id: &str, email: &str| json!({ "id": id, "email": email, "first_name": text, "title": title });
    let prospects = [known("p-1", "p@example.org"), known("p-2", text)];
    let prospects = prospects.into_iter().map(|prospect| serde_json::from_value(prospect).unwrap());
    stage.store.enrol(campaign, prospects.collect()).await.unwrap();
    let mut ids = Vec::new();
    for prospect in ["p-1", "p-2"] {
        wait();
        let of = MailOf {
            campaign: campaign.to_owned(),
            prospect: prospect.to_owned(),
            step: 1,
            sender: text.to_owned(),
        };
        let new = NewMessage { workspace: text.into(), ..NewMessage::new("email", of.to_content()) };
        ids.push(stage.accept(new).await);
    }
    ids.try_into().unwrap()
}

/// The shape of the page of a campaign with such settings.
async fn settings_shape(stage: &Stage, reader: &mut Reader, text: &str) -> Vec<String> {
    let settings = json!({ "days": [text], "start": text, "end": text, "zone": text, "holidays": [text], "blackouts": [text],
        "quota_period": text, "urgent_share": text, "spacing": [text, text] });
    campaign_with(stage, "odd", text, settings).await;
    let page = reader.get("/admin/campaigns/odd").await;
    assert!(!text.contains('<') || !page.says(text), "it repeats {text} as it is");
    shape(&page.body)
}

/// Something done to many messages by somebody with such a name.
pub fn hostile_bulk(text: &str) -> Bulk {
    let which = Which { error: Some(text.to_owned()), workspace: Some(text.into()), ..Which::default() };
    let pace = Pace { rate_per_s: 1, is_careful: true };
    Bulk {
        standing: Standing::Stopped,
        why: Some(text.into()),
        done: 1,
        total: Some(Total { count: 9, is_least: true }),
        worked_ms: 1_500,
        ..Bulk::new("b", text, Action::Retry, which, pace, Timestamp::from_ms(1))
    }
}

/// As much of a text as the id of a prospect may have.
pub fn id_of(text: &str) -> String {
    text.chars().filter(|c| !(*c == ':' || c.is_whitespace() || c.is_control())).collect()
}

/// The shapes of all pages about one such mail, seen with a key of such a name.
async fn shapes(text: &str) -> Vec<Vec<String>> {
    // What comes in the same millisecond stands in any order.
    let (stage, clock) = Stage::with_hand_on_clock();
    let wait = || {
        clock.advance(Duration::from_millis(5));
    };
    let id = stage.accept(mail_saying(text)).await;
    wait();
    let key = stage.key(text, Role::Admin, Some(text)).await;
    let paged = stage.accept(payload_saying(text)).await;
    let [delivered, cancelled] = ended_saying(&stage, text, wait).await;
    wait();
    let tried = tried_saying(&stage, text).await;
    let [draft, nowhere] = drafts_saying(&stage, "drafts", text, wait).await;
    let bulk = hostile_bulk(text);
    assert!(stage.store.put_bulk(bulk.clone(), None).await.unwrap());
    wait();
    let campaign = stage.campaign(text, text, text, &[&id_of(text)]).await;
    stage.engine.pause(Scope::Sender, text, &text.into()).await.unwrap();
    let mut reader = Reader::new(&stage.router);
    assert_eq!(reader.log_in(&key.text).await.location(), "/admin");
    let mut shapes = Vec::new();
    let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let asked = escaped(text);
    for path in [
        "/admin",
        "/admin/email-queue",
        "/admin/email-queue?show=failed",
        "/admin/messages",
        &format!("/admin/messages?recipient={asked}&error={asked}&key={asked}&workspace={asked}"),
        "/admin/bulk",
        "/admin/dead-letters",
        &format!("/admin/bulk/{}", bulk.id),
        "/admin/campaigns",
        &format!("/admin/campaigns/{campaign}"),
        &format!("/admin/campaigns/{campaign}?prospect=no{asked}"),
        &format!("/admin/campaigns/{campaign}?prospect={}", escaped(&id_of(text))),
        &format!("/admin/campaigns/{campaign}/forecast"),
        "/admin/keys",
        "/admin/routes",
        &format!("/admin/messages/{id}"),
        &format!("/admin/messages/{id}/edit"),
        &format!("/admin/messages/{paged}"),
        &format!("/admin/messages/{delivered}"),
        &format!("/admin/messages/{cancelled}"),
        &format!("/admin/messages/{tried}"),
        &format!("/admin/messages/{draft}"),
        &format!("/admin/messages/{nowhere}"),
        &format!("/admin/messages?since=24h&before=0s&fingerprint={asked}"),
    ] {
        let page = reader.get(path).await;
        assert!(!text.contains('<') || !page.says(text), "{path} repeats {text} as it is");
        shapes.push(shape(&page.body));
    }
    shapes.extend(corrected_shapes(&stage, &mut reader, &id, text).await);
    shapes.push(settings_shape(&stage, &mut reader, text).await);
    // Only whoever sees all workspaces is told what instances are called.
    let mut all = stage.reader(Role::Operator, None).await;
    for path in ["/admin", &format!("/admin/messages/{tried}")] {
        let page = all.get(path).await;
        assert!(!text.contains('<') || !page.says(text), "{path} repeats {text} as it is");
        shapes.push(shape(&page.body));
    }
    shapes
}

/// The shapes of the pages about a mail that says such a thing and is to say it in other places; and of its own page when it
/// was corrected by somebody with such a name.
async fn corrected_shapes(
    stage: &Stage,
    reader: &mut Reader,
    id: &MessageId,
    text: &str,
) -> Vec<Vec<String>> {
    let (page, form) = (format!("/admin/messages/{id}"), format!("/admin/messages/{id}/edit"));
    let csrf = reader.get(&form).await.csrf();
    let mut seen = Vec::new();
    let mut fields = vec![("csrf", csrf.as_str()), ("version", "0"), ("route", "email"), ("to", text)];
    fields.extend(["cc", "bcc", "from", "reply_to"].map(|name| (name, "")));
    fields.extend(["subject", "text", "html"].map(|name| (name, text)));
    let attributes = text.replace('=', "");
    fields.push(("attributes", &attributes));
    // An address that is none and attributes that are none are shown again above and within the form.
    let refused = reader.post(&form, &fields).await;
    assert!(refused.says("role=\"alert\""), "{}", refused.body);
    seen.push(shape(&refused.body));
    let mut differences = Vec::new();
    for field in ["email.to", "email.subject", "email.text", "payload"] {
        differences.push(Difference {
            field: format!("{field} {text}"),
            before: text.into(),
            after: json!([text]),
        });
    }
    let before = stage.get(id).await;
    let record = EditRecord { actor: text.into(), at: before.due_at, generation: 1, differences };
    let audit = Audit {
        actor: text.into(),
        action: "edit",
        subject: id.to_string().into(),
        at: before.due_at,
        detail: Some(text.into()),
    };
    let change =
        operate(&before, Action::Retry, &text.into(), stage.engine.route("email").unwrap(), before.due_at);
    let change = Change { edit: Some(record), audit: Some(audit), ..change.unwrap() };
    assert_eq!(stage.store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    for path in [page.as_str(), form.as_str()] {
        let answer = reader.get(path).await;
        assert!(!text.contains('<') || !answer.says(text), "{path} repeats {text} as it is");
        seen.push(shape(&answer.body));
    }
    let mut all = stage.reader(Role::Admin, None).await;
    seen.push(shape(&all.get("/admin/audit").await.body));
    seen
}

#[tokio::test]
async fn hostile_words_change_nothing_about_a_page() {
    let plain = shapes("harmless").await;
    for nasty in NASTY {
        for (place, (seen, harmless)) in shapes(nasty).await.iter().zip(&plain).enumerate() {
            assert_eq!(seen, harmless, "{nasty} on page {place}");
        }
        assert_eq!(audit_shape(nasty).await, audit_shape("harmless").await, "{nasty}");
    }
}
