//! Which node of a cluster has which key.

use ::redis::Value;

use super::dial::{Address, text};

/// Slots that the nodes of a cluster share.
const SLOTS: u16 = 16_384;

/// The nodes of a cluster by the first and last slot that they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots(Vec<(u16, u16, Address)>);

impl Slots {
    /// Reads what a node answers to `CLUSTER SLOTS`; a node that doesn't know its own name is the one that was asked.
    pub(super) fn read(answer: &Value, asked: &Address) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let range = |range: &Value| {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(node), ..] = &parts[..] else {
                return None;
            };
            let [host, Value::Int(port), ..] = &node[..] else { return None };
            let host = text(host).filter(|host| !host.is_empty() && *host != "?").unwrap_or(&asked.0);
            let address = (host.to_owned(), u16::try_from(*port).ok()?);
            Some((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?, address))
        };
        let all: Option<Vec<_>> = ranges.iter().map(range).collect();
        all.filter(|all| !all.is_empty()).map(Self)
    }

    /// The node that has a key, if any has.
    pub(super) fn node_of(&self, key: &str) -> Option<&Address> {
        let slot = slot_of(key);
        let (.., address) = self.0.iter().find(|(first, last, _)| (*first..=*last).contains(&slot))?;
        Some(address)
    }
}

/// The slot of a key: that of what stands between its first braces, if anything does, so that keys can be kept together.
fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let part = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16(part.as_bytes()) % SLOTS
}

/// The checksum that Redis uses: the polynomial 0x1021, from 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_slots_that_redis_gives_them() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // As CLUSTER KEYSLOT says.
        for (key, slot) in [("foo", 12_182), ("{foo}.bar", 12_182), ("x{foo}{bar}", 12_182), ("{}foo", 9_500)]
        {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn nodes_are_found_by_the_slots_that_they_say() {
        let node = |host: &str, port| {
            Value::Array(vec![Value::BulkString(host.as_bytes().to_vec()), Value::Int(port)])
        };
        let range = |first, last, node| Value::Array(vec![Value::Int(first), Value::Int(last), node]);
        let answer =
            Value::Array(vec![range(0, 9_999, node("", 1)), range(10_000, 16_383, node("10.0.0.2", 2))]);
        let slots = Slots::read(&answer, &("10.0.0.1".to_owned(), 9)).unwrap();
        assert_eq!(slots.node_of("foo"), Some(&("10.0.0.2".to_owned(), 2)));
        assert_eq!(slots.node_of("{}foo"), Some(&("10.0.0.1".to_owned(), 1)));
        for odd in [Value::Nil, Value::Array(vec![]), Value::Array(vec![Value::Int(1)])] {
            assert_eq!(Slots::read(&odd, &("x".to_owned(), 1)), None);
        }
    }
}
