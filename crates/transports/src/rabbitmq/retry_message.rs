//! A failed message on its way back to its queue, as the broker's retry scheduler is sent it: `RetryMessage`, as protobuf
//! or as JSON.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::Message as _;
use redeliver_core::accept::{NewMessage, Source};
use redeliver_core::fields::{Field as JsonField, read_fields};
use redeliver_core::{Content, Failure, Message, Name, Timestamp, identity};

use super::amqp::Delivery;
use super::amqp::properties::Properties;
use super::amqp::table::STRING;
use super::amqp::wire::SHORT_BYTES_MAX;
use super::parcel::HEADER_TYPE;

/// The queue that a message goes back to.
pub(super) const QUEUE: &str = "retry.queue";
/// How often it may be retried.
pub(super) const MAX_RETRIES: &str = "retry.max_retries";
/// What a `RetryMessage` is.
pub(super) const CONTENT_TYPE: &str = "application/x-protobuf";
/// What its sender calls it.
const MESSAGE_ID: &str = "retry.message_id";
/// The same among the properties of the message that goes back.
const MESSAGE_ID_PROPERTY: &str = "amqp.message_id";
/// The header that says what the original payload is.
const CONTENT_TYPE_HEADER: &str = "x-original-content-type";
/// A broker's own account of how a message came to be where it is: it says nothing to whoever gets the message next.
const DEATH_HEADER: &str = "x-death";
/// The longest name that a message may have.
const MESSAGE_ID_BYTES_MAX: usize = 1_024;
/// As often as anything may be retried.
const RETRIES_MAX: i32 = 1_000_000;

/// The longest that anything may be told to wait: ten years.
const DUE_WITHIN_MAX: Duration = Duration::from_secs(3_650 * 24 * 3_600);

/// A failed message, and where it is to go back to.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RetryMessage {
    /// What its sender calls it.
    #[prost(string, tag = "1")]
    pub message_id: String,
    /// What it carries.
    #[prost(bytes = "bytes", tag = "2")]
    pub original_payload: Bytes,
    /// Where it goes back to.
    #[prost(string, tag = "3")]
    pub original_queue: String,
    /// Why it failed.
    #[prost(string, tag = "4")]
    pub error_reason: String,
    /// How often it has been retried.
    #[prost(int32, tag = "5")]
    pub retry_count: i32,
    /// How often it may be retried; 0: as often as is usual.
    #[prost(int32, tag = "6")]
    pub max_retries: i32,
    /// When it is to go back, in ms since 1970; 0: by the policy.
    #[prost(int64, tag = "7")]
    pub next_retry_at_ms: i64,
}

/// What a delivery holds; an error says why nobody can make a message of it.
pub(super) fn read(delivery: &Delivery, bytes_max: usize) -> Result<(RetryMessage, &Properties), String> {
    let properties = delivery.properties.as_ref().map_err(|wrong| format!("its properties are {wrong}"))?;
    if delivery.body_bytes > bytes_max as u64 {
        return Err(format!("it has {} bytes, more than {bytes_max}", delivery.body_bytes));
    }
    let content_type = properties.content_type.as_ref().map_or("", |text| text.as_str());
    let message = match content_type.split(';').next().unwrap_or_default().trim().ends_with("json") {
        true => read_json(&delivery.body)?,
        false => RetryMessage::decode(delivery.body.clone())
            .map_err(|wrong| format!("no RetryMessage: {wrong}"))?,
    };
    if message.message_id.is_empty() {
        return Err("it has no message_id".to_owned());
    }
    if message.message_id.len() > MESSAGE_ID_BYTES_MAX {
        return Err(format!("its message_id has more than {MESSAGE_ID_BYTES_MAX} bytes"));
    }
    if message.original_queue.is_empty() || message.original_queue.len() > SHORT_BYTES_MAX {
        return Err(format!("its original_queue has not 1 to {SHORT_BYTES_MAX} bytes"));
    }
    // These become names, and not every store and broker could keep such ones.
    let names = [
        ("message_id", Some(message.message_id.as_str())),
        ("original_queue", Some(message.original_queue.as_str())),
        (CONTENT_TYPE_HEADER, properties.header(CONTENT_TYPE_HEADER)),
    ];
    if let Some((name, _)) = names.iter().find(|(_, text)| text.is_some_and(has_control)) {
        return Err(format!("its {name} has control characters"));
    }
    Ok((message, properties))
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// The message that it becomes on a route, unless it says otherwise with so many retries.
pub(super) fn to_new(
    message: RetryMessage,
    properties: &Properties,
    route: &Name,
    max_retries: u32,
    redelivered: bool,
    now: Timestamp,
) -> NewMessage {
    let retries = |count: i32| count.clamp(0, RETRIES_MAX) as u32;
    let max_retries = if message.max_retries > 0 { retries(message.max_retries) } else { max_retries };
    // A time that no calendar has is as good as the last one that anybody will see.
    let due_at = Timestamp::from_ms(message.next_retry_at_ms).min(now.plus(DUE_WITHIN_MAX));
    let key = identity::of_queue(&message.original_queue, &message.message_id);
    let mut content = Content {
        target: Some(message.original_queue.as_str().into()),
        content_type: properties.header(CONTENT_TYPE_HEADER).map(Into::into),
        bytes: message.original_payload,
        ..Content::default()
    };
    for (name, field) in properties.headers.iter().flat_map(|headers| &headers.0) {
        if name == DEATH_HEADER {
            continue;
        }
        if field.kind != STRING {
            content.attributes.insert(format!("{HEADER_TYPE}{name}"), char::from(field.kind).to_string());
        }
        content.headers.push((name.clone(), field.bytes.clone()));
    }
    if message.message_id.len() <= SHORT_BYTES_MAX {
        content.attributes.insert(MESSAGE_ID_PROPERTY.to_owned(), message.message_id.clone());
    }
    content.attributes.extend([
        (QUEUE.to_owned(), message.original_queue),
        (MAX_RETRIES.to_owned(), max_retries.to_string()),
        (MESSAGE_ID.to_owned(), message.message_id),
    ]);
    let error = (!message.error_reason.is_empty()).then(|| Failure::new(&message.error_reason));
    NewMessage {
        key: Some(key),
        due_at: (due_at > now).then_some(due_at),
        attempts: retries(message.retry_count) + 1,
        error,
        max_attempts: Some(max_retries + 1),
        source: Source::Broker { redelivered },
        ..NewMessage::new(Arc::clone(route), content)
    }
}

/// What goes to manual review: the message as it came, with what it has been through. `None` for any other message.
pub(super) fn for_review(message: &Message, content: &Content) -> Option<Bytes> {
    let attribute = |name: &str| content.attributes.get(name);
    let queue = attribute(QUEUE).filter(|_| message.is_dead_letter)?;
    let number = |name: &str| attribute(name).and_then(|text| text.parse::<i32>().ok()).unwrap_or_default();
    let letter = RetryMessage {
        message_id: attribute(MESSAGE_ID)?.clone(),
        original_payload: content.bytes.clone(),
        original_queue: queue.clone(),
        error_reason: attribute("dead_error").cloned().unwrap_or_default(),
        retry_count: number("dead_attempts").saturating_sub(1),
        max_retries: number(MAX_RETRIES),
        next_retry_at_ms: 0,
    };
    Some(letter.encode_to_vec().into())
}

/// The fields of a `RetryMessage` in JSON.
const JSON_FIELDS: [&str; 14] = [
    "message_id",
    "messageId",
    "original_payload",
    "originalPayload",
    "original_queue",
    "originalQueue",
    "error_reason",
    "errorReason",
    "retry_count",
    "retryCount",
    "max_retries",
    "maxRetries",
    "next_retry_at_ms",
    "nextRetryAtMs",
];

/// The same as JSON writes protobuf: bytes in base64, names in either spelling, large numbers as texts or as numbers.
fn read_json(bytes: &[u8]) -> Result<RetryMessage, String> {
    let fields = read_fields(bytes, &JSON_FIELDS)?;
    let field = |snake: &str, camel: &str| fields.get(snake).or_else(|| fields.get(camel));
    let text = |snake: &str, camel: &str| match field(snake, camel) {
        None | Some(JsonField::Null) => Ok(String::new()),
        Some(JsonField::Text(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{snake} is no text")),
    };
    let number = |snake: &str, camel: &str| match field(snake, camel) {
        None | Some(JsonField::Null) => Ok(0),
        Some(JsonField::Whole(number)) => Ok(*number),
        Some(JsonField::Text(text)) => text.parse().map_err(|_| format!("{snake} is no whole number")),
        Some(JsonField::Other) => Err(format!("{snake} is no whole number")),
    };
    let small = |snake: &str, camel: &str| {
        i32::try_from(number(snake, camel)?).map_err(|_| format!("{snake} is out of bounds"))
    };
    let payload = STANDARD
        .decode(text("original_payload", "originalPayload")?)
        .map_err(|_| "original_payload is no base64".to_owned())?;
    Ok(RetryMessage {
        message_id: text("message_id", "messageId")?,
        original_payload: payload.into(),
        original_queue: text("original_queue", "originalQueue")?,
        error_reason: text("error_reason", "errorReason")?,
        retry_count: small("retry_count", "retryCount")?,
        max_retries: small("max_retries", "maxRetries")?,
        next_retry_at_ms: number("next_retry_at_ms", "nextRetryAtMs")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbitmq::amqp::Weight;
    use crate::rabbitmq::amqp::table::{Field, Table};
    use crate::rabbitmq::amqp::wire::Short;
    use proptest::prelude::*;

    fn message() -> RetryMessage {
        RetryMessage {
            message_id: "m-1".to_owned(),
            original_payload: Bytes::from_static(b"\0payload\xff"),
            original_queue: "orders".to_owned(),
            error_reason: "timeout".to_owned(),
            retry_count: 1,
            max_retries: 0,
            next_retry_at_ms: 0,
        }
    }

    fn delivery(body: impl Into<Bytes>, content_type: &str) -> Delivery {
        let body = body.into();
        let properties = Properties { content_type: Short::new(content_type), ..Properties::default() };
        let body_bytes = body.len() as u64;
        let weight = Weight::default();
        Delivery { tag: 1, redelivered: false, properties: Ok(properties), body, body_bytes, weight }
    }

    fn new(message: RetryMessage) -> NewMessage {
        to_new(message, &Properties::default(), &"retry".into(), 3, false, Timestamp::from_ms(1_000))
    }

    #[test]
    fn protobuf_and_json_say_the_same() {
        let protobuf = delivery(message().encode_to_vec(), "application/x-protobuf");
        assert_eq!(read(&protobuf, 1_000).unwrap().0, message());
        let json = r#"{"message_id":"m-1","originalPayload":"AHBheWxvYWT/","original_queue":"orders",
                       "error_reason":"timeout","retryCount":1,"next_retry_at_ms":"0","max_retries":null}"#;
        assert_eq!(read(&delivery(json, "application/json; charset=utf-8"), 1_000).unwrap().0, message());
    }

    #[test]
    fn what_is_no_retry_message_is_said_to_be_none() {
        let check = |delivery: Delivery, said: &str| {
            let wrong = read(&delivery, 100).unwrap_err();
            assert!(wrong.contains(said), "{wrong}");
        };
        let of = |message: RetryMessage| delivery(message.encode_to_vec(), "");
        check(delivery("\u{7}garbage", ""), "no RetryMessage");
        check(delivery("{", "application/json"), "no JSON");
        check(delivery("[]", "application/json"), "no object");
        check(delivery(r#"{"retry_count":1.5}"#, "application/json"), "retry_count");
        check(delivery(r#"{"retry_count":9999999999}"#, "application/json"), "out of bounds");
        check(delivery(r#"{"original_payload":"?"}"#, "application/json"), "base64");
        check(of(RetryMessage { message_id: String::new(), ..message() }), "message_id");
        check(of(RetryMessage { original_queue: String::new(), ..message() }), "original_queue");
        check(of(RetryMessage { original_queue: "q".repeat(256), ..message() }), "more than 100");
        check(of(RetryMessage { message_id: "m\0".to_owned(), ..message() }), "message_id has control");
        check(
            of(RetryMessage { original_queue: "a\tb".to_owned(), ..message() }),
            "original_queue has control",
        );
        let mut typed = of(message());
        let headers = Table::default().with(CONTENT_TYPE_HEADER, Field::string("text/\u{7f}"));
        typed.properties = Ok(Properties { headers: Some(headers), ..Properties::default() });
        check(typed, "x-original-content-type has control");
        check(
            Delivery { properties: Err(crate::rabbitmq::amqp::wire::Malformed("x")), ..of(message()) },
            "properties",
        );
    }

    #[test]
    fn counts_and_times_are_as_the_document_says() {
        let first = new(message());
        assert_eq!((first.attempts, first.max_attempts, first.due_at), (2, Some(4), None));
        assert_eq!(first.error.unwrap().text.as_ref(), "timeout");
        let own = new(RetryMessage { max_retries: 7, next_retry_at_ms: 5_000, ..message() });
        assert_eq!((own.max_attempts, own.due_at), (Some(8), Some(Timestamp::from_ms(5_000))));
        let never = new(RetryMessage { next_retry_at_ms: i64::MAX, ..message() });
        assert_eq!(never.due_at, Some(Timestamp::from_ms(1_000).plus(DUE_WITHIN_MAX)));
        let past = new(RetryMessage { next_retry_at_ms: 999, retry_count: -5, max_retries: -1, ..message() });
        assert_eq!((past.attempts, past.max_attempts, past.due_at), (1, Some(4), None));
    }

    #[test]
    fn headers_pass_on_but_not_the_brokers_own_account() {
        let headers = Table::default()
            .with("x-death", Field::string("x"))
            .with("x-original-content-type", Field::string("text/plain"))
            .with("n", Field::number(7));
        let properties = Properties {
            headers: Some(headers),
            content_type: Short::new("application/x-protobuf"),
            ..Properties::default()
        };
        let content =
            to_new(message(), &properties, &"retry".into(), 3, false, Timestamp::from_ms(0)).content;
        let names: Vec<&str> = content.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x-original-content-type", "n"]);
        assert_eq!(content.content_type.as_deref(), Some("text/plain"));
        assert_eq!(content.attributes.get("amqp.header.n").map(String::as_str), Some("I"));
        assert_eq!(content.attributes.get("amqp.message_id").map(String::as_str), Some("m-1"));
        assert_eq!(content.bytes, message().original_payload);
    }

    proptest! {
        #[test]
        fn no_body_brings_us_down(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&delivery(body.clone(), ""), 1_000);
            let _ = read(&delivery(body, "application/json"), 1_000);
        }
    }
}
