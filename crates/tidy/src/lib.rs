//! Keeps house: the rules of this repository that no lint knows.
//!
//! A rule is a pure function from the files to the offences that it finds, all of them at once. `tests/house.rs` puts
//! each to the repository; `tests/samples.rs` shows that each catches what it is there for. Nothing here is shipped.

pub mod architecture;
pub mod crates;
pub mod docs;
pub mod machine;
pub mod names;
pub mod sql;
pub mod text;
pub mod tree;

pub use tree::{Offence, Tree};

/// A rule of the house.
pub type Rule = fn(&Tree) -> Vec<Offence>;

/// Calls a macro with all rules, as `module { rule rule … }`: there is no other list of them.
#[macro_export]
macro_rules! house_rules {
    ($with:ident) => {
        $with! {
            text {
                every_file_begins_with_what_it_is_for
                a_long_file_has_its_reason
                no_test_is_ignored
                every_merge_is_finished
                nothing_is_left_for_later
                an_exception_to_a_lint_has_its_reason
                lines_end_where_they_end
            }
            names {
                names_say_what_a_thing_is
            }
            crates {
                crates_point_inwards
                core_depends_on_nothing_that_does_io
                no_shipped_crate_plants_bugs
            }
            architecture {
                core_touches_nothing_outside_itself
                only_core_decides_a_death
                stores_decide_nothing
                only_the_clock_reads_the_time
                adapters_never_import_one_another
            }
            sql {
                a_sql_file_holds_one_statement
                every_sql_file_is_used
                migrations_are_numbered_without_gaps
            }
            machine {
                no_path_of_one_machine
                no_registry_is_named
            }
            docs {
                every_link_leads_somewhere
                every_make_target_in_the_docs_exists
                the_readme_names_its_two_commands
                every_decision_is_listed
                every_event_of_the_log_is_explained
                ci_runs_make_test
            }
        }
    };
}

macro_rules! list {
    ($($module:ident { $($rule:ident)* })*) => {
        /// All rules, by name.
        pub const RULES: &[(&str, Rule)] = &[$($((stringify!($rule), $module::$rule as Rule)),*),*];
    };
}
house_rules!(list);
