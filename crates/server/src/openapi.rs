//! The API's own description: OpenAPI 3.1, made from the calls themselves. What callers send is in `openapi.json`, because
//! it is read field by field and no type has its shape.

use std::collections::BTreeMap;

use redeliver_engine::Engine;
use serde_json::{Map, Value, json};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::schema::Ref;
use utoipa::openapi::{OpenApi, RefOr, Response, ResponseBuilder, Schema};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use crate::problem::{FieldProblem, Problem};

/// The schemas of what callers send.
const SENT: &str = include_str!("openapi.json");

/// What every problem's status means.
const MEANINGS: [(u16, &str); 11] = [
    (400, "It cannot be read"),
    (401, "A key is needed"),
    (403, "This key may not"),
    (404, "There is no such thing, as far as this key may know"),
    (408, "The body came too slowly"),
    (409, "Things stand otherwise"),
    (413, "It is too large"),
    (415, "Its content type is not supported"),
    (422, "Some fields are wrong"),
    (429, "Too much at once: come again after the seconds in Retry-After"),
    (500, "Something went wrong here"),
];

const UNAVAILABLE: &str = "The store does not answer, or it took too long: say it again with the same key";

fn problems(statuses: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    let meaning =
        |status| MEANINGS.iter().find(|(known, _)| *known == status).map_or(UNAVAILABLE, |(_, text)| text);
    let response = |status| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        ResponseBuilder::new()
            .description(meaning(status))
            .content("application/problem+json", content)
            .build()
    };
    statuses.iter().map(|status| (status.to_string(), response(*status).into())).collect()
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident: $($status:literal)*;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problems(&[$($status),*])
            }
        }
    )*};
}

refusals! {
    /// How a call may be refused that asks for nothing and needs nothing.
    Open: 500 503;
    /// How a call may be refused that needs the store.
    OpenWithStore: 401 429 500 503;
    /// How a look may be refused.
    Looked: 401 403 422 429 500 503;
    /// How a look at one thing may be refused.
    LookedUp: 401 403 404 422 429 500 503;
    /// How a deed may be refused.
    Acted: 401 403 404 409 422 429 500 503;
    /// How messages may be refused.
    Sent: 400 401 403 408 409 413 415 422 429 500 503;
    /// How a report may be refused.
    Reported: 400 401 403 404 408 409 413 415 422 429 500 503;
    /// How a new key may be refused.
    KeyMade: 400 401 403 408 413 415 422 429 500 503;
    /// How a new campaign may be refused.
    CampaignMade: 400 401 403 408 409 413 415 422 429 500 503;
}

macro_rules! sent {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                Ref::from_schema_name(stringify!($name)).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

sent! {
    /// The body of `POST /v1/messages`.
    NewMessages;
    /// The body of a report.
    NewReport;
    /// The body of a correction.
    EditBody;
    /// The body of `POST /v1/keys`.
    NewKeyBody;
    /// The body of `POST /v1/bulk`.
    NewBulk;
    /// The body of `POST /v1/campaigns`.
    CampaignBody;
    /// The steps of a campaign.
    StepsBody;
    /// The settings of a workspace or a campaign.
    SettingsBody;
    /// The body of a prospect's stop.
    StopBody;
    /// The body of `POST /v1/suppressions`.
    SuppressionsBody;
    /// The body of `POST /v1/campaigns/{campaign}/prospects`.
    ProspectLines;
}

/// The description as it is served, with the routes that there are.
pub fn document(described: OpenApi, engine: &Engine) -> String {
    let mut document = serde_json::to_value(described).unwrap_or_default();
    document["info"] = json!({
        "title": "Redeliver",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Takes over every outbound message that must not be lost.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    document["security"] = json!([{ "key": [] }]);
    document["components"]["securitySchemes"] = json!({ "key": { "type": "http", "scheme": "bearer" } });
    any_of(&mut document);
    let mut sent: Map<String, Value> = serde_json::from_str(SENT).unwrap_or_default();
    let routes: Vec<&str> = engine.routes().map(|route| &*route.name).collect();
    if !routes.is_empty() {
        for body in ["NewMessage", "EditBody"] {
            sent[body]["properties"]["route"]["enum"] = json!(routes);
        }
    }
    sent.insert("Problem".to_owned(), schema::<Problem>());
    sent.insert("FieldProblem".to_owned(), schema::<FieldProblem>());
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.append(&mut sent);
    }
    document.to_string()
}

/// What may be one of several things may look like two of them: a message that is kept has an id, as one that is gone.
fn any_of(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(forms) = map.remove("oneOf") {
                map.insert("anyOf".to_owned(), forms);
            }
            map.values_mut().for_each(any_of);
        }
        Value::Array(items) => items.iter_mut().for_each(any_of),
        _ => {}
    }
}

fn schema<T: PartialSchema>() -> Value {
    serde_json::to_value(T::schema()).unwrap_or_default()
}
