//! `[telemetry]`: where traces go, and what they call us.

use super::reader::Reader;

/// Where traces go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The collector's address, without the path of a signal; none: nothing is traced.
    pub otlp_endpoint: Option<String>,
    /// What traces call us.
    pub service_name: String,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, service_name: "redeliver".to_owned() }
    }
}

pub(super) fn read(reader: &Reader<'_>) -> TelemetryConfig {
    let default = TelemetryConfig::default();
    TelemetryConfig {
        otlp_endpoint: reader.get("otlp_endpoint", None, |node| node.parsed(parse_endpoint)),
        service_name: reader.get("service_name", default.service_name, |node| node.text()),
    }
}

fn parse_endpoint(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    // What it says instead may be a secret: it is not repeated.
    let wrong = || "a collector's address is written like http://127.0.0.1:4318".to_owned();
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    if !["http", "https"].contains(&url.scheme()) || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "a collector's login goes into OTEL_EXPORTER_OTLP_HEADERS, not into its address".to_owned()
        );
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_and_has_no_login() {
        assert_eq!(parse_endpoint(""), Ok(None));
        assert_eq!(parse_endpoint("http://otel:4318/"), Ok(Some("http://otel:4318".to_owned())));
        for wrong in ["otel:4318", "grpc://otel", "http://", "http://otel?x=1"] {
            assert!(parse_endpoint(wrong).is_err(), "{wrong}");
        }
        let said = parse_endpoint("https://ada:secret@otel").unwrap_err();
        assert!(said.contains("OTEL_EXPORTER_OTLP_HEADERS") && !said.contains("secret"), "{said}");
    }
}
