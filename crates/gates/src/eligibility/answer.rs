//! What a service's answer says.

use serde_json::Value;

use super::config::EligibilityConfig;

/// What is known of whoever a message is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Wants it.
    Active,
    /// Doesn't.
    Inactive,
}

/// Reads an answer; an error says why it is none.
pub(super) fn read(config: &EligibilityConfig, status: u16, body: &[u8]) -> Result<Standing, String> {
    if config.inactive_statuses.contains(&status) {
        return Ok(Standing::Inactive);
    }
    if status != 200 {
        return Err(format!("it answered with status {status}"));
    }
    let value: Value = serde_json::from_slice(body).map_err(|_| "its answer is no JSON".to_owned())?;
    let said = config.active_field.split('.').try_fold(&value, |value, name| value.get(name));
    let said = match said {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_) | Value::Null)) => value.to_string(),
        Some(Value::Array(_) | Value::Object(_)) | None => {
            return Err(format!("its answer has no {}", config.active_field));
        }
    };
    match config.active_values.contains(&said) {
        true => Ok(Standing::Active),
        false => Ok(Standing::Inactive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_active_is_a_matter_of_config() {
        let plain = EligibilityConfig::default();
        let other = EligibilityConfig {
            active_field: "device.state".to_owned(),
            active_values: vec!["ON".to_owned(), "1".to_owned()],
            inactive_statuses: vec![404, 410],
            ..EligibilityConfig::default()
        };
        let (active, inactive) = (Ok(Standing::Active), Ok(Standing::Inactive));
        for (config, status, body, standing) in [
            (&plain, 200, r#"{"active": true}"#, active.clone()),
            (&plain, 200, r#"{"active": "true"}"#, active.clone()),
            (&plain, 200, r#"{"active": false}"#, inactive.clone()),
            (&plain, 200, r#"{"active": null}"#, inactive.clone()),
            (&plain, 404, "", inactive.clone()),
            (&plain, 410, "", Err("it answered with status 410".to_owned())),
            (&plain, 503, r#"{"active": true}"#, Err("it answered with status 503".to_owned())),
            (&plain, 204, "", Err("it answered with status 204".to_owned())),
            (&plain, 200, "<html>", Err("its answer is no JSON".to_owned())),
            (&plain, 200, "[]", Err("its answer has no active".to_owned())),
            (&plain, 200, r#"{"active": {}}"#, Err("its answer has no active".to_owned())),
            (&other, 200, r#"{"device": {"state": "ON"}}"#, active.clone()),
            (&other, 200, r#"{"device": {"state": 1}}"#, active),
            (&other, 200, r#"{"device": {"state": "OFF"}}"#, inactive.clone()),
            (&other, 410, "", inactive),
        ] {
            assert_eq!(read(config, status, body.as_bytes()), standing, "{status} {body}");
        }
    }
}
