//! A rule that catches nothing is no rule: each is shown what it is there for, and what it must leave alone.

use redeliver_tidy::{RULES, Tree};

/// A rule, files, and the places where it must find something, in order.
type Sample = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const SAMPLES: &[Sample] = &[
    ("every_file_begins_with_what_it_is_for", &[("a.rs", "use std::fmt;\n")], &["a.rs:1"]),
    ("every_file_begins_with_what_it_is_for", &[("a.rs", "//! What it is for.\n")], &[]),
    ("no_test_is_ignored", &[("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n")], &["a.rs:2"]),
    (
        "every_merge_is_finished",
        &[("a.md", "one\n<<<<<<< HEAD\ntwo\n=======\n>>>>>>> b\n")],
        &["a.md:2", "a.md:5"],
    ),
    (
        "nothing_is_left_for_later",
        &[("a.rs", "fn a() {\n    todo!()\n}\n"), ("b.md", "FIXME: say why\n")],
        &["a.rs:2", "b.md:1"],
    ),
    ("nothing_is_left_for_later", &[("a.rs", "let no_todo = 1; // a list of XXXL shirts\n")], &[]),
    (
        "an_exception_to_a_lint_has_its_reason",
        &[("a.rs", "#![allow(\n    dead_code,\n)]\n#[allow(unused)]\n")],
        &["a.rs:1", "a.rs:4"],
    ),
    (
        "an_exception_to_a_lint_has_its_reason",
        &[("a.rs", "#![allow(\n    dead_code,\n    reason = \"why\"\n)]\n")],
        &[],
    ),
    ("lines_end_where_they_end", &[("a.rs", "a \nb\tc\nd")], &["a.rs:1", "a.rs:2", "a.rs:3"]),
    ("lines_end_where_they_end", &[("a.md", "a\n\n")], &["a.md:2"]),
    ("lines_end_where_they_end", &[("Makefile", "a:\n\tb\n")], &[]),
    (
        "names_say_what_a_thing_is",
        &[("src/utils.rs", "pub(crate) struct RetryService;\nmod common;\n")],
        &["src/utils.rs", "src/utils.rs:1", "src/utils.rs:2"],
    ),
    (
        "names_say_what_a_thing_is",
        &[("a.rs", "struct Serviced;\nlet service_type = 1; // type Manager\n")],
        &[],
    ),
    (
        "crates_point_inwards",
        &[("crates/core/Cargo.toml", "[dependencies]\nredeliver-engine.workspace = true\n")],
        &["crates/core/Cargo.toml:2"],
    ),
    (
        "crates_point_inwards",
        &[(
            "crates/stores/Cargo.toml",
            "[dependencies.redeliver-transports]\nworkspace = true\n[dev-dependencies]\nredeliver-conformance.workspace = true\n",
        )],
        &["crates/stores/Cargo.toml:1"],
    ),
    (
        "crates_point_inwards",
        &[("crates/cli/Cargo.toml", "[dependencies]\nredeliver-conformance = { workspace = true }\n")],
        &["crates/cli/Cargo.toml:2"],
    ),
    ("crates_point_inwards", &[("crates/new/Cargo.toml", "")], &["crates/new/Cargo.toml"]),
    (
        "core_depends_on_nothing_that_does_io",
        &[(
            "crates/core/Cargo.toml",
            "[dependencies]\nserde.workspace = true\ntokio = \"1\"\n[dev-dependencies]\ntempfile = \"3\"\n",
        )],
        &["crates/core/Cargo.toml:3"],
    ),
    (
        "no_shipped_crate_plants_bugs",
        &[(
            "crates/cli/Cargo.toml",
            "[features]\ndefault = [\"planted\"]\n[dependencies]\nredeliver-core = { workspace = true, features = [\"planted\"] }\n",
        )],
        &["crates/cli/Cargo.toml:2", "crates/cli/Cargo.toml:4"],
    ),
    (
        "no_shipped_crate_plants_bugs",
        &[
            ("crates/engine/Cargo.toml", "[features]\nplanted = [\"redeliver-core/planted\"]\n"),
            (
                "crates/simulation/Cargo.toml",
                "[dependencies]\nredeliver-core = { workspace = true, features = [\"planted\"] }\n",
            ),
        ],
        &[],
    ),
    (
        "core_touches_nothing_outside_itself",
        &[(
            "crates/core/src/a.rs",
            "use std::fs;\nasync fn a() {}\n// not std::net\n#[cfg(test)]\nuse std::io;\n",
        )],
        &["crates/core/src/a.rs:1", "crates/core/src/a.rs:2"],
    ),
    (
        "only_core_decides_a_death",
        &[
            ("crates/engine/src/a.rs", "let reason = DeadReason::Expired;\n"),
            ("crates/core/src/a.rs", "DeadReason::Expired\n"),
        ],
        &["crates/engine/src/a.rs:1"],
    ),
    (
        "stores_decide_nothing",
        &[("crates/stores/src/a.rs", "use redeliver_core::settle::settle;\nlet settled_claim = 1;\n")],
        &["crates/stores/src/a.rs:1"],
    ),
    (
        "only_the_clock_reads_the_time",
        &[
            ("crates/cli/src/a.rs", "#![allow(clippy::disallowed_methods, reason = \"because\")]\n"),
            ("crates/engine/src/clock.rs", "#![allow(clippy::disallowed_methods, reason = \"because\")]\n"),
        ],
        &["crates/cli/src/a.rs:1"],
    ),
    (
        "adapters_never_import_one_another",
        &[
            ("crates/stores/src/sqlite/a.rs", "use crate::postgres::b;\nuse crate::encode;\n"),
            ("crates/stores/src/postgres/b.rs", "use crate::postgres::c;\n"),
        ],
        &["crates/stores/src/sqlite/a.rs:1"],
    ),
    (
        "a_sql_file_holds_one_statement",
        &[
            ("s/sql/a.sql", "-- One; two.\nSELECT ';';\n\nDELETE FROM a;\n"),
            ("s/migrations/0001_a.sql", "SELECT 1;\nSELECT 2;\n"),
        ],
        &["s/sql/a.sql:4"],
    ),
    (
        "every_sql_file_is_used",
        &[
            ("s/sql/a.sql", "SELECT 1\n"),
            ("s/sql/b.sql", "SELECT 1\n"),
            ("s/a.rs", "include_str!(\"sql/a.sql\")"),
            ("t/b.rs", "include_str!(\"sql/b.sql\")"),
        ],
        &["s/sql/b.sql"],
    ),
    (
        "migrations_are_numbered_without_gaps",
        &[("s/migrations/0001_a.sql", ""), ("s/migrations/0003_b.sql", "")],
        &["s/migrations/0003_b.sql"],
    ),
    (
        "migrations_are_numbered_without_gaps",
        &[("s/migrations/0001_a.sql", ""), ("s/migrations/0001_b.sql", "")],
        &["s/migrations/0001_b.sql"],
    ),
    (
        "no_path_of_one_machine",
        &[
            ("a.rs", "\"/home/ada/x\"\n\"src/home/x\"\n"),
            ("b.toml", "url = \"sqlite:/tmp/x.db\"\n"),
            ("x/tests/c.rs", "\"/tmp/x\"\n\"/root/x\"\n"),
        ],
        &["a.rs:1", "b.toml:1", "x/tests/c.rs:2"],
    ),
    (
        "no_registry_is_named",
        &[
            (".cargo/config.toml", "[source.crates-io]\nreplace-with = \"ours\"\n"),
            (
                "Cargo.lock",
                "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"git+https://example.org/a\"\n",
            ),
        ],
        &[".cargo/config.toml:2", "Cargo.lock:2"],
    ),
    (
        "every_link_leads_somewhere",
        &[
            (
                "docs/a.md",
                "[b](../b.md#top), [c](c.md), [d](https://example.org/d), `[e](e)`\n[out](../../x.md) and [here](#a)\n",
            ),
            ("b.md", "[docs](docs/)\n"),
        ],
        &["docs/a.md:1", "docs/a.md:2"],
    ),
    (
        "every_make_target_in_the_docs_exists",
        &[
            ("Makefile", "run: build ## Runs.\n"),
            (
                "a.md",
                "`make run`, `make fly`, and make do\n```\nmake     # lists\nmake run X=1\nmake sure\n```\n",
            ),
        ],
        &["a.md:1", "a.md:5"],
    ),
    (
        "the_readme_names_its_two_commands",
        &[("README.md", "Say `make run`.\n```\nmake test   # all of it\n```\n")],
        &["README.md"],
    ),
    (
        "every_decision_is_listed",
        &[
            ("docs/decisions/README.md", "[one](0001-a.md) [other](0001-b.md) [word](one.md)\n"),
            ("docs/decisions/0001-a.md", ""),
            ("docs/decisions/0001-b.md", ""),
            ("docs/decisions/0003-c.md", ""),
            ("docs/decisions/one.md", ""),
        ],
        &["docs/decisions/0001-b.md", "docs/decisions/0003-c.md", "docs/decisions/one.md"],
    ),
    (
        "every_event_of_the_log_is_explained",
        &[
            ("docs/operations.md", "| `a.known` | info | Known. |\n"),
            ("crates/a/src/lib.rs", "info!(event = \"a.known\");\ninfo!(event = \"a.secret\");\n"),
        ],
        &["crates/a/src/lib.rs:2"],
    ),
    ("ci_runs_make_test", &[(".ci/run", "#!/bin/bash\nmake check\n")], &[".ci/run"]),
    ("ci_runs_make_test", &[(".ci/run", "#!/bin/bash\nexec make test\n")], &[]),
    ("ci_runs_make_test", &[], &[".ci/run"]),
];

#[test]
fn each_rule_finds_what_it_should_and_nothing_else() {
    for (name, files, expected) in SAMPLES {
        let (_, rule) =
            RULES.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no rule {name}"));
        let found: Vec<String> = rule(&Tree::of(files))
            .iter()
            .map(|offence| match offence.line {
                0 => offence.path.clone(),
                line => format!("{}:{line}", offence.path),
            })
            .collect();
        assert_eq!(found, *expected, "{name}");
    }
}

#[test]
fn every_rule_is_shown_a_breach() {
    // Its samples are too long to write down: the next test makes them.
    let shown = |name: &str| {
        name == "a_long_file_has_its_reason"
            || SAMPLES.iter().any(|(rule, _, expected)| *rule == name && !expected.is_empty())
    };
    let unshown: Vec<&str> = RULES.iter().map(|(name, _)| *name).filter(|name| !shown(name)).collect();
    assert_eq!(unshown, Vec::<&str>::new());
}

#[test]
fn long_files_are_told_from_short_ones() {
    let long = "//! Long.\n".repeat(501);
    let short = "//! Short.\n".repeat(500);
    let known = redeliver_tidy::text::LONG[0].0;
    let rule = redeliver_tidy::text::a_long_file_has_its_reason;
    assert_eq!(rule(&Tree::of(&[("a.rs", &short), (known, &long)])), []);
    assert_eq!(rule(&Tree::of(&[("a.rs", &long)])).len(), 1);
    assert_eq!(rule(&Tree::of(&[(known, &short)])).len(), 1, "a short file needs no reason");
}

#[test]
fn planted_bugs_are_seen_in_what_cargo_prints() {
    let printed =
        "redeliver-cli v0.1.0\n└── redeliver-core feature \"planted\"\n    └── redeliver-core v0.1.0\n";
    assert_eq!(redeliver_tidy::crates::planted_in(printed).len(), 1);
}
