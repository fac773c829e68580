//! The rules for whatever feeds messages in.
