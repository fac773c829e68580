//! `[routes.NAME.eligibility]`: the service that is asked, before each try, whether a message's receiver is active.

use std::time::Duration;

use redeliver_core::breaker::BreakerConfig;
use redeliver_gates::eligibility::{EligibilityConfig, Template};

use super::reader::Reader;
use super::source::Node;
use super::value::{DAY, HOUR, MS};

/// Reads the check of one route; `None` if it has none.
pub(super) fn read(reader: &Reader<'_>) -> Option<EligibilityConfig> {
    if !reader.holds_table("eligibility") {
        let wrong = "must be a table such as { path = \"/devices/{device_id}\" }";
        return reader.get("eligibility", None, |node| {
            node.unless("off", |node| Err(format!("{wrong}, not {}", node.value.kind())))
        });
    }
    Some(reader.section("eligibility", settings))
}

fn settings(reader: &Reader<'_>) -> EligibilityConfig {
    let default = EligibilityConfig::default();
    reader.require("path", "path = \"/devices/{device_id}\"");
    let words = |key, default: Vec<String>| {
        let found = reader.list(key, "[\"true\"]", Node::text);
        found.map_or(default, |found| found.value)
    };
    let statuses = reader.list("inactive_statuses", "[404]", |node| {
        Ok(u16::try_from(node.count(100..=599)?).unwrap_or_default())
    });
    EligibilityConfig {
        url: reader.get("url", default.url, address),
        path: reader.get("path", default.path, |node| node.parsed(Template::parse)),
        active_field: reader.get("active_field", default.active_field, Node::text),
        active_values: words("active_values", default.active_values),
        inactive_statuses: statuses.map_or(default.inactive_statuses, |found| found.value),
        timeout: reader.get("timeout", default.timeout, |node| node.span(MS..=HOUR)),
        cache_for: reader.get("cache_for", default.cache_for, |node| node.span(Duration::ZERO..=DAY)),
        again_after: reader.get("again_after", default.again_after, |node| node.span(MS..=DAY)),
        breaker: BreakerConfig {
            failures_max: reader
                .get("failures_max", default.breaker.failures_max, |node| node.count(1..=1_000_000)),
            open_for: reader.get("open_for", default.breaker.open_for, |node| node.span(MS..=DAY)),
            open_for_max: reader
                .get("open_for_max", default.breaker.open_for_max, |node| node.span(MS..=DAY)),
            recover_per_s: reader
                .get("recover_per_s", default.breaker.recover_per_s, |node| node.count(1..=1_000_000)),
        },
    }
}

/// Where a service is; the empty text is nowhere.
fn address(node: &Node) -> Result<Option<String>, String> {
    let text = node.text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || "must be an address such as \"http://devices:8080\"".to_owned();
    let url = reqwest::Url::parse(&text).map_err(|_| wrong())?;
    let is_plain = url.query().is_none() && url.fragment().is_none();
    match matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain {
        true => Ok(Some(text)),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redeliver_gates::eligibility::EligibilityConfig;

    use crate::config::{Sources, load};

    const ROUTE: &str = "[transports.script]\nkind = 'scripted'\n[policies.p]\nbackoff = ['1s']\nmax_attempts = 2\n\
                         [routes.notification]\ntransport = 'script'\npolicy = 'p'\n";

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Option<EligibilityConfig>, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let file = Some(("f".into(), format!("{ROUTE}{text}")));
        let sources = Sources { file, variables: variables.collect(), ..Sources::default() };
        let loaded = load(&sources).map_err(|wrong| format!("{wrong:?}"))?;
        Ok(loaded.config.routes["notification"].eligibility.clone())
    }

    #[test]
    fn a_route_asks_the_service_that_the_environment_names() {
        let table = "[routes.notification.eligibility]\npath = '/devices/{device_id}'\ncache_for = '1s'\n";
        let device_service = [("DEVICE_SERVICE_URL", "http://devices:8080")];
        let config = read(table, &device_service).unwrap().unwrap();
        assert_eq!(config.url.as_deref(), Some("http://devices:8080"));
        assert_eq!(
            (config.path.to_string().as_str(), config.cache_for),
            ("/devices/{device_id}", Duration::from_secs(1))
        );
        assert_eq!(read(table, &[]).unwrap().unwrap().url, None);
        assert_eq!(read("", &device_service).unwrap(), None, "no check is made of it");
        assert_eq!(read("eligibility = 'off'", &[]).unwrap(), None);
    }

    #[test]
    fn what_is_wrong_with_a_check_is_said() {
        for (line, why) in [
            ("eligibility = true", "must be a table"),
            ("eligibility = {}", "needs path"),
            ("eligibility = { path = 'd' }", "must begin with"),
            ("eligibility = { path = '/d', url = 'devices' }", "must be an address"),
            ("eligibility = { path = '/d', url = 'ftp://devices' }", "must be an address"),
            ("eligibility = { path = '/d', inactive_statuses = [99] }", "inactive_statuses"),
            ("eligibility = { path = '/d', timeouts = '1s' }", "timeout"),
        ] {
            let wrong = read(line, &[]).unwrap_err();
            assert!(wrong.contains(why), "{line}: {wrong}");
        }
    }
}
