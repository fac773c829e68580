//! Reads large inputs aside, so that the threads that keep heartbeats and answer health checks are not held up.

use tokio::runtime::{Handle, RuntimeFlavor};

/// The most that is read where it came in: a fraction of a millisecond.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Runs what reads so many bytes. If they are many, the other tasks of this thread move to another one first, where the
/// runtime has others.
pub fn run<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    let is_shared =
        || Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > INLINE_BYTES_MAX && is_shared() { tokio::task::block_in_place(read) } else { read() }
}
