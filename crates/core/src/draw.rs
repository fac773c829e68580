//! Chance that can be repeated: even draws from a hash of what they are for.

use std::time::Duration;

/// The share `draw / 2^64` of a span, in whole milliseconds, so that both ends can be reached.
pub(crate) fn part(span: Duration, draw: u64) -> Duration {
    let steps = span.as_millis() as u64 as u128 + 1;
    Duration::from_millis(((steps * u128::from(draw)) >> 64) as u64)
}

/// The draw for a text.
pub(crate) fn of_text(text: &str) -> u64 {
    mix(text.bytes().fold(0, |state, byte| mix(state ^ u64::from(byte))))
}

/// One round of the splitmix64 finaliser: every input bit reaches every output bit.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
