//! How a command ends that didn't go well: what people read, and the code that scripts read.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::config::problem::Problems;

/// The command could not do what it was asked.
pub const FAILED: u8 = 1;
/// It was asked wrongly: the command line or the config.
pub const USAGE: u8 = 2;

/// The caller asked for something that isn't there.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// It went wrong, and whoever listens was told already; only the shell still has to be.
#[derive(Debug)]
pub struct Told(pub u8);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended with {}", self.0)
    }
}

impl std::error::Error for Told {}

/// Tells standard error what went wrong, and the shell how badly.
pub fn tell(error: &anyhow::Error) -> ExitCode {
    if let Some(Told(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    if let Some(problems) = error.downcast_ref::<Problems>() {
        print_aside(problems);
        return ExitCode::from(USAGE);
    }
    if let Some(error) = error.downcast_ref::<io::Error>()
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        // Whoever reads us has read enough.
        return ExitCode::SUCCESS;
    }
    print_aside(format_args!("redeliver: {error:#}"));
    ExitCode::from(if error.is::<Usage>() { USAGE } else { FAILED })
}

/// Writes a line to standard error. If nobody listens there, there is nobody to tell.
pub fn print_aside(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
