//! The rules for whatever carries messages out.
