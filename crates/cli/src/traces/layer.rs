//! Makes OpenTelemetry's spans of ours. It is shown only those that the server and the engine mark for it
//! (`redeliver_engine::span::TARGET`), so that nothing gets into a trace that nobody meant to tell.

use std::borrow::Cow;
use std::fmt::Debug;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span};
use redeliver_core::trace::TRACEPARENT;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as Within;
use tracing_subscriber::registry::LookupSpan;

/// Makes spans.
pub struct Spans {
    tracer: SdkTracer,
}

/// A span that is under way.
struct Open(Span);

impl Spans {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self { tracer }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, within: Within<'_, S>) {
        let Some(span) = within.span(id) else { return };
        let mut said = Said::default();
        attributes.record(&mut said);
        let name = said.name.take().map_or(Cow::Borrowed(attributes.metadata().name()), Cow::Owned);
        let builder = SpanBuilder::from_name(name)
            .with_kind(said.kind.take().unwrap_or(SpanKind::Internal))
            .with_attributes(std::mem::take(&mut said.attributes));
        let open = self.tracer.build_with_context(builder, &said.parent());
        span.extensions_mut().insert(Open(open));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, within: Within<'_, S>) {
        let Some(span) = within.span(id) else { return };
        let mut said = Said::default();
        values.record(&mut said);
        if let Some(Open(open)) = span.extensions_mut().get_mut::<Open>() {
            open.set_attributes(said.attributes);
            if said.is_error {
                open.set_status(Status::error(""));
            }
        }
    }

    fn on_close(&self, id: Id, within: Within<'_, S>) {
        let open = within.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        if let Some(Open(mut open)) = open {
            open.end();
        }
    }
}

/// What the fields of a span say.
#[derive(Default)]
struct Said {
    name: Option<String>,
    kind: Option<SpanKind>,
    traceparent: Option<String>,
    is_error: bool,
    attributes: Vec<KeyValue>,
}

impl Said {
    /// The span that this one belongs below: one of somebody else's, or none.
    fn parent(&self) -> Context {
        let Some(traceparent) = &self.traceparent else { return Context::new() };
        let carrier = std::collections::HashMap::from([(TRACEPARENT.to_owned(), traceparent.clone())]);
        TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier)
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(field.name(), value.into()));
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, text: &str) {
        match field.name() {
            "otel.name" => self.name = Some(text.to_owned()),
            "otel.kind" => {
                self.kind = match text {
                    "server" => Some(SpanKind::Server),
                    "producer" => Some(SpanKind::Producer),
                    _ => None,
                }
            }
            "otel.status_code" => self.is_error = text == "ERROR",
            TRACEPARENT => self.traceparent = Some(text.to_owned()),
            _ => self.add(field, text.to_owned()),
        }
    }

    fn record_i64(&mut self, field: &Field, number: i64) {
        self.add(field, number);
    }

    fn record_u64(&mut self, field: &Field, number: u64) {
        self.add(field, i64::try_from(number).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, is_so: bool) {
        self.add(field, is_so);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
