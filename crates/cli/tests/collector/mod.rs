//! A collector of traces on a port of its own, which keeps what it is sent.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode as Answer;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;

type Requests = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

/// A span as the tests look at it.
#[derive(Clone, Debug)]
pub struct Span {
    pub name: String,
    pub trace: String,
    pub parent: String,
    pub is_error: bool,
    pub attributes: BTreeMap<String, String>,
}

/// A collector; it ends with this value.
pub struct Collector {
    pub url: String,
    requests: Requests,
    _runtime: tokio::runtime::Runtime,
}

impl Collector {
    pub fn start() -> Self {
        Self::busy(0)
    }

    /// One that has no time for its first so many requests.
    pub fn busy(refusals: usize) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let requests = Requests::default();
        let state = (Arc::clone(&requests), Arc::new(Mutex::new(refusals)));
        let router = Router::new().route("/v1/traces", post(keep)).with_state(state);
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, requests, _runtime: runtime }
    }

    /// Every span so far.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        let spans = resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans);
        spans
            .map(|span| Span {
                name: span.name.clone(),
                trace: hex(&span.trace_id),
                parent: hex(&span.parent_span_id),
                is_error: span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error),
                attributes: texts(&span.attributes),
            })
            .collect()
    }

    /// Who sent them.
    pub fn services(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        let mut names: Vec<String> = resources
            .filter_map(|resource| texts(&resource.resource.as_ref()?.attributes).remove("service.name"))
            .collect();
        names.dedup();
        names
    }
}

async fn keep(State((requests, refusals)): State<(Requests, Arc<Mutex<usize>>)>, body: Bytes) -> Answer {
    let mut refusals = refusals.lock().unwrap();
    if *refusals > 0 {
        *refusals -= 1;
        return Answer::SERVICE_UNAVAILABLE;
    }
    requests.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
    Answer::OK
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    attributes.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}
