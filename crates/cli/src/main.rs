//! `redeliver`, the one binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A message over HTTP makes and frees many small things (docs/decisions/0020).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    redeliver_cli::run()
}
