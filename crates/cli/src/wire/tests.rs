//! What whoever starts us is told when a store can't be opened.

use super::*;

#[test]
fn whoever_cannot_open_a_store_is_told_what_to_do() {
    let path = || "x.db".into();
    let check = |error: OpenError, words: &str| {
        let said = with_advice(error).to_string();
        assert!(said.starts_with("cannot open store sqlite:x.db: ") && said.contains(words), "{said}");
    };
    check(OpenError::Taken { path: path(), lock: "x.db.lock".into() }, "stop that one first");
    check(OpenError::Locked { path: path() }, "is another redeliver running?");
    check(OpenError::Locked { path: path() }, "end whatever has a transaction open");
    check(OpenError::Full { path: path() }, "make room");
    check(OpenError::Damaged { path: path(), why: "bad".into() }, "restore it from a backup");
}
