//! `redeliver demo` as a newcomer sees it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::Place;

#[test]
fn the_demo_shows_ten_messages_to_their_ends() {
    // The environment names a store, and the demo must leave it alone.
    let place = Place::new("").with_variable("DATABASE_URL", "sqlite:production.db");
    let said = place.run("demo --store sqlite:demo.db");
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)), "{}", said.out);
    let lines: Vec<&str> = said.out.lines().collect();
    let check = |name: &str, told: &[&str], ending: [&str; 3]| {
        let own: Vec<&str> =
            lines.iter().filter(|line| line.split_whitespace().nth(1) == Some(name)).copied().collect();
        assert_eq!(own.len(), told.len(), "{name}: {own:#?}");
        for (line, words) in own.iter().zip(told) {
            assert!(line.contains(words), "{name}: {words} in {line}");
        }
        let row = lines.iter().find(|line| line.starts_with(&format!("  {name} "))).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[1..3], ending[..2], "{row}");
        assert!(row.contains(ending[2]), "{row}");
    };
    let letter = "its dead letter is on its way, by route dead-letters";
    let letter_out = "its dead letter is delivered";
    let failed = |n: u32, wait: &str| format!("try {n} failed: 503 out of order; try {} in {wait}", n + 1);
    check("welcome", &["accepted, due now", "delivered on try 1"], ["delivered", "1", "at once"]);
    check(
        "invoice",
        &["accepted", "try 1 failed: 451 mailbox busy; try 2 in 1s", "delivered on try 2"],
        ["delivered", "2", "451 mailbox busy"],
    );
    check(
        "password",
        &["accepted", "try 1 failed", "try 2 failed: 421 restarting; try 3 in 2s", "delivered on try 3"],
        ["delivered", "3", "421 restarting"],
    );
    check(
        "newsletter",
        &["accepted", "dead: refused for good: 550 no such mailbox", letter, letter_out],
        ["dead", "1", "refused"],
    );
    check(
        "stock-update",
        &[
            "accepted",
            &failed(1, "1s"),
            &failed(2, "2s"),
            &failed(3, "3s"),
            "dead: try 4 failed: 503 out of order; that was the last",
            letter,
            letter_out,
        ],
        ["dead", "4", "attempts_exhausted"],
    );
    check(
        "payment",
        &["accepted", "lost: nobody confirmed attempt", "delivered, again as attempt"],
        ["delivered", "1", "never confirmed"],
    );
    check("contract", &["accepted", "dead: nobody knows", letter, letter_out], ["dead", "0", "uncertain"]);
    check(
        "night-note",
        &["accepted", "not sent: put off by the script; again in 3s", "delivered on try 1"],
        ["delivered", "1", "put off first"],
    );
    check(
        "flash-sale",
        &["worthless after ", &failed(1, "1s"), "after its expiry", letter, letter_out],
        ["dead", "2", "expired"],
    );
    check("reminder", &["accepted, due in ", "delivered on try 1"], ["delivered", "1", "asked for"]);
    let attempt = |line: &&&str| line.contains("payment") && line.contains('…');
    let attempts: Vec<&str> = lines
        .iter()
        .filter(attempt)
        .filter_map(|line| line.split('…').nth(1)?.split([';', ':']).next())
        .collect();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0], attempts[1], "a repeat keeps its attempt id");
    assert!(!said.out.contains('\x1b'), "no colours where there is no terminal");
    assert!(!said.out.contains("of the demo"), "no bodies");
    for words in ["redeliver policy show", "redeliver check", "make test", "still in sqlite:demo.db"] {
        assert!(said.out.contains(words), "{words}");
    }
    assert!(!place.path("production.db").exists());

    let again = place.run("demo --store sqlite:demo.db");
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("demo.db is there already"), "{}", again.err);
}
