//! `redeliver version`

use super::print;

pub(super) fn run() -> anyhow::Result<()> {
    print(&format!("redeliver {}\n", env!("CARGO_PKG_VERSION")))
}
