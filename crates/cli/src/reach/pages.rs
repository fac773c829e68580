//! Lists messages, and whatever else has pages, page by page.

use anyhow::Context;
use serde_json::Value;

use super::{Message, Reach, Request};
use crate::args::FilterArgs;

/// Items of one page, as many as the API gives at once.
pub const PAGE_LEN_MAX: u64 = 500;

/// What is left of a list.
pub struct Listing {
    path: &'static str,
    params: Vec<(&'static str, String)>,
    left: u64,
    after: Option<String>,
    /// Whether there is more than was asked for or has come so far.
    has_more: bool,
}

/// What is left of a list of messages.
pub struct Pages(Listing);

/// One page: each message as the API told it, and as it is understood.
pub type Page = Vec<(Value, Message)>;

impl Pages {
    /// The newest messages, so many of them.
    pub fn of(filter: &FilterArgs, limit: u64) -> Self {
        Self(Listing::of("/v1/messages", &filter.params(), limit))
    }

    /// The next page, if there is one.
    pub async fn next(&mut self, reach: &Reach) -> anyhow::Result<Option<Page>> {
        let Some(items) = self.0.next(reach).await? else { return Ok(None) };
        Ok(Some(items.into_iter().map(understand).collect::<anyhow::Result<_>>()?))
    }

    /// Whether there are more than have come.
    pub fn has_more(&self) -> bool {
        self.0.has_more()
    }
}

impl Listing {
    /// The newest of what stands behind a path, by these parameters, so many of them.
    pub fn of(path: &'static str, params: &[(&'static str, &str)], limit: u64) -> Self {
        let params = params.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { path, params, left: limit, after: None, has_more: true }
    }

    /// The next page, if there is one.
    pub async fn next(&mut self, reach: &Reach) -> anyhow::Result<Option<Vec<Value>>> {
        if !self.has_more || self.left == 0 {
            return Ok(None);
        }
        let limit = self.left.min(PAGE_LEN_MAX).to_string();
        let mut params: Vec<(&str, &str)> =
            self.params.iter().map(|(name, value)| (*name, value.as_str())).collect();
        params.push(("limit", &limit));
        params.extend(self.after.as_deref().map(|after| ("after", after)));
        let mut answer = reach.json(Request::get(self.path).with(&params)).await?;
        let items = match answer["items"].take() {
            Value::Array(items) => items,
            other => anyhow::bail!("the server's list is not understood: {other}"),
        };
        self.after = answer["next"].as_str().map(str::to_owned);
        self.has_more = self.after.is_some();
        self.left = self.left.saturating_sub(items.len() as u64);
        Ok(Some(items))
    }

    /// Whether there are more than have come.
    pub fn has_more(&self) -> bool {
        self.has_more
    }
}

fn understand(value: Value) -> anyhow::Result<(Value, Message)> {
    let message = Message::deserialize_from(&value)?;
    Ok((value, message))
}

impl Message {
    /// A message as the API told it.
    pub fn deserialize_from(value: &Value) -> anyhow::Result<Self> {
        serde::Deserialize::deserialize(value)
            .context("the server's message is not understood (is it another version?)")
    }
}
