//! Reads what stands in the path.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use redeliver_core::MessageId;

use crate::problem::Problem;

/// The one variable part of a path, whatever it is.
#[derive(Debug)]
pub struct Segment(pub String);

/// The two variable parts of a path, whatever they are.
#[derive(Debug)]
pub struct Pair(pub String, pub String);

/// A message's id. What can't be one is simply not found.
#[derive(Debug)]
pub struct Id(pub MessageId);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            Err(_) => Err(Problem::not_found("nothing has such a name")),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Pair {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((first, second))) => Ok(Self(first, second)),
            Err(_) => Err(Problem::not_found("nothing has such a name")),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Segment(text) = Segment::from_request_parts(parts, state).await?;
        text.parse().map(Self).map_err(|_| no_message(&text))
    }
}

/// There is no such message, or none that whoever asks may know of.
pub fn no_message(id: impl std::fmt::Display) -> Problem {
    Problem::not_found(format!("there is no message {id}"))
}
