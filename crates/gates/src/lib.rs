//! Gates that ask somebody outside before a message is tried.
//!
//! A check that can't be made defers; it never kills, and it never costs a try.

pub mod eligibility;
