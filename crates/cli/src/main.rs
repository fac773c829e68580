//! `redeliver`, the one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    redeliver_cli::run()
}
