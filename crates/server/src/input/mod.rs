//! What callers send, read field by field: all problems at once, each with its field and the near name.

pub mod body;
pub mod json;
pub mod parse;
pub mod path;
pub mod query;

use crate::problem::FieldProblem;
pub use json::Fields;
pub use path::{Id, Pair, Segment};
pub use query::Params;

/// The longest name that is compared with others: no name here is nearly as long.
const COMPARED_BYTES_MAX: usize = 64;

/// Unknown names of one request that come with advice: comparing names takes time.
const ADVISED_MAX: usize = 10;

/// What is wrong about names that nobody asked for.
fn unknown_names<'a>(
    names: impl Iterator<Item = &'a str>,
    asked: &[&'static str],
) -> impl Iterator<Item = FieldProblem> {
    let unasked = names.filter(move |name| !asked.contains(name));
    unasked.enumerate().map(move |(n, name)| {
        let problem = match asked {
            [] => "is unknown: there are no parameters here".to_owned(),
            asked if n < ADVISED_MAX => unknown(name, asked.iter().copied()),
            _ => "is unknown".to_owned(),
        };
        FieldProblem::new(name, problem)
    })
}

/// What is wrong about a name that nobody knows: the near one, or all that are known.
pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let is_short = name.len() <= COMPARED_BYTES_MAX;
    let near = known
        .clone()
        .into_iter()
        .filter(|_| is_short)
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, candidate)) => format!("is unknown: did you mean {candidate:?}?"),
        None => format!("is unknown: known are {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// From 0 to 1. A single slip counts as much as a shared beginning, which is what short words need.
fn likeness(word: &str, other: &str) -> f64 {
    let one_slip = if strsim::osa_distance(word, other) <= 1 { 0.9 } else { 0.0 };
    strsim::jaro_winkler(word, other).max(one_slip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_offered_and_otherwise_all_of_them() {
        assert_eq!(unknown("rout", ["route", "key"]), "is unknown: did you mean \"route\"?");
        assert_eq!(unknown("colour", ["route", "key"]), "is unknown: known are route, key");
    }
}
