//! Judges: what every store, transport and intake must do, one named test per rule.
//!
//! Whoever writes another adapter says once how a fresh one is made, and gets the whole suite:
//!
//! ```text
//! redeliver_conformance::store_tests!(MemoryStore::new());
//! redeliver_conformance::access_tests!(MemoryStore::new());
//! redeliver_conformance::campaign_tests!(MemoryStore::new());
//! redeliver_conformance::transport_tests!(MyTransportRig::new().await);
//! redeliver_conformance::intake_tests!(MyIntakeRig::new().await);
//! ```
//!
//! The expression is evaluated anew for every test, on a runtime, so that it may await. Every rule is also a plain
//! function that can be called by its name. A rule panics where it is broken, and never looks behind the port.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a judge panics: that's how a test fails"
)]

pub mod access;
pub mod campaigns;
pub mod intake;
pub mod make;
pub mod store;
pub mod transport;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The longest that one rule may take, all servers included.
pub const RULE_WITHIN: Duration = Duration::from_secs(60);

/// Runs one rule to its end on a runtime of its own.
pub fn judge(rule: impl Future<Output = ()>) {
    judge_boxed(Box::pin(rule));
}

/// Compiled once, and not once for each of the rules.
fn judge_boxed(rule: Pin<Box<dyn Future<Output = ()> + '_>>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime for the test");
    let in_time = runtime.block_on(async { tokio::time::timeout(RULE_WITHIN, rule).await });
    assert!(in_time.is_ok(), "the rule was not done within {RULE_WITHIN:?}");
}

/// Makes one test of each rule: `module { rule rule … }`, the rig being made anew for each.
#[doc(hidden)]
#[macro_export]
macro_rules! each_rule {
    ($kind:ident, $rig:expr, $($module:ident { $($rule:ident)* })*) => {
        $(
            mod $module {
                #[allow(unused_imports, reason = "the rig's expression may need nothing from around it")]
                use super::*;
                $crate::each_rule!(@tests $kind, $module, $rig, $($rule)*);
            }
        )*
    };
    (@tests $kind:ident, $module:ident, $rig:expr, $($rule:ident)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::judge(async {
                    let rig = $rig;
                    $crate::$kind::$module::$rule($crate::$kind::subject(&rig)).await;
                });
            }
        )*
    };
}
