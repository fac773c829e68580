//! The API's description says what there is, all of it.

use std::collections::BTreeSet;

use redeliver_server::auth::rights::{Need, RIGHTS};
use serde_json::Value;

use crate::rig::Rig;

async fn document() -> Value {
    Rig::still().get("/openapi.json").await.json()
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &'_ Value)| -> Vec<(String, String)> {
        item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())).collect()
    };
    paths
        .iter()
        .flat_map(of)
        .map(|(method, path)| {
            let operation = &document["paths"][&path][method.to_lowercase()];
            (method, path, operation)
        })
        .collect()
}

#[tokio::test]
async fn every_call_is_described_and_has_its_line_in_the_table_of_rights() {
    let document = document().await;
    let described: BTreeSet<(String, String)> =
        operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    let guarded: BTreeSet<(String, String)> =
        RIGHTS.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    let api = |all: &BTreeSet<(String, String)>| -> BTreeSet<(String, String)> { all.clone() };
    assert!(
        api(&described).is_subset(&api(&guarded)),
        "{:?}",
        described.difference(&guarded).collect::<Vec<_>>()
    );
    let undescribed: Vec<_> = guarded.difference(&described).collect();
    assert!(undescribed.is_empty(), "{undescribed:?}");
}

#[tokio::test]
async fn the_document_is_whole() {
    let document = document().await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut wanted = BTreeSet::new();
    references(&document, &mut wanted);
    for reference in wanted {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("500"), "{method} {path}");
        let is_open = RIGHTS.iter().any(|(m, p, need)| *m == method && *p == path && *need == Need::Nobody);
        assert_eq!(responses.contains_key("403"), !is_open && path != "/openapi.json", "{method} {path}");
    }
    assert_eq!(
        document["components"]["schemas"]["NewMessage"]["properties"]["route"]["enum"],
        serde_json::json!(["campaign", "email", "sms"])
    );
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
