//! Which publishing a word of the broker is about. Any number of them are under way at once: a word may be about one or
//! about all before it, and a return names none of them, so each is known by a name that travels in its headers.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::wire::Malformed;

/// What the broker said about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// It has it, and answers for it.
    Taken,
    /// It could not take it.
    NotTaken,
    /// It leads nowhere, and nobody has it.
    Returned {
        /// The broker's code.
        code: u16,
        /// Its words.
        text: Arc<str>,
    },
}

/// The messages on one channel that the broker has not spoken about.
#[derive(Debug, Default)]
pub struct Confirms {
    /// The number of the first in the queue, less one: numbers begin at 1.
    before: u64,
    /// One place for each number; empty where the word has come.
    waiting: VecDeque<Option<Waiting>>,
    /// How many have not heard yet.
    count: usize,
}

#[derive(Debug)]
struct Waiting {
    name: Arc<str>,
    returned: Option<(u16, Arc<str>)>,
    tell: oneshot::Sender<Confirm>,
}

impl Confirms {
    /// Notes one more message under its name; what is said about it comes to the receiver.
    pub fn publish(&mut self, name: Arc<str>) -> oneshot::Receiver<Confirm> {
        let (tell, told) = oneshot::channel();
        self.waiting.push_back(Some(Waiting { name, returned: None, tell }));
        self.count += 1;
        told
    }

    /// How many the broker has not spoken about.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The broker gave a message back. It says yes to it next, as to any that it has dealt with.
    pub fn on_return(&mut self, name: &str, code: u16, text: Arc<str>) -> Result<(), Malformed> {
        let fits = |waiting: &&mut Waiting| *waiting.name == *name && waiting.returned.is_none();
        let waiting = self.waiting.iter_mut().flatten().find(fits);
        let waiting = waiting.ok_or(Malformed("a message came back that nobody sent"))?;
        waiting.returned = Some((code, text));
        Ok(())
    }

    /// The broker said yes or no, to one message or to all up to it; number 0 with `multiple` means all there are.
    pub fn on_word(&mut self, number: u64, multiple: bool, confirm: &Confirm) -> Result<(), Malformed> {
        let number = match (number, multiple) {
            (0, true) => self.before + self.waiting.len() as u64,
            _ => number,
        };
        let index = number.checked_sub(self.before + 1).and_then(|index| usize::try_from(index).ok());
        let index = match (index, multiple) {
            (Some(index), _) if index < self.waiting.len() => index,
            // All up to one that has been spoken about already: nothing new.
            (None, true) => return Ok(()),
            _ => return Err(Malformed("a word about a message that was never sent")),
        };
        let first = if multiple { 0 } else { index };
        for place in self.waiting.range_mut(first..=index) {
            let Some(waiting) = place.take() else { continue };
            self.count -= 1;
            let confirm = match waiting.returned {
                Some((code, text)) => Confirm::Returned { code, text },
                None => confirm.clone(),
            };
            // Whoever gave up waiting needs no word.
            let _ = waiting.tell.send(confirm);
        }
        while matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop_front();
            self.before += 1;
        }
        Ok(())
    }

    /// Nothing more will be said.
    pub fn end(&mut self) {
        self.before += self.waiting.len() as u64;
        self.waiting.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(count: usize) -> (Confirms, Vec<oneshot::Receiver<Confirm>>) {
        let mut confirms = Confirms::default();
        let told = (1..=count).map(|n| confirms.publish(format!("m{n}").into())).collect();
        (confirms, told)
    }

    fn heard(told: &mut [oneshot::Receiver<Confirm>]) -> Vec<Option<Confirm>> {
        told.iter_mut().map(|told| told.try_recv().ok()).collect()
    }

    fn returned() -> Confirm {
        Confirm::Returned { code: 312, text: "NO_ROUTE".into() }
    }

    #[test]
    fn a_word_about_many_tells_the_returned_from_the_taken() {
        let (mut confirms, mut told) = published(5);
        confirms.on_return("m4", 312, "NO_ROUTE".into()).unwrap();
        confirms.on_return("m2", 312, "NO_ROUTE".into()).unwrap();
        confirms.on_word(4, true, &Confirm::Taken).unwrap();
        let taken = Some(Confirm::Taken);
        let lost = Some(returned());
        assert_eq!(heard(&mut told), [taken.clone(), lost.clone(), taken, lost, None]);
        assert_eq!(confirms.count(), 1);
    }

    #[test]
    fn words_come_in_any_order() {
        let (mut confirms, mut told) = published(4);
        confirms.on_word(3, false, &Confirm::NotTaken).unwrap();
        confirms.on_word(1, false, &Confirm::Taken).unwrap();
        assert_eq!(heard(&mut told), [Some(Confirm::Taken), None, Some(Confirm::NotTaken), None]);
        confirms.on_word(3, true, &Confirm::Taken).unwrap();
        let mut late = confirms.publish("m5".into());
        confirms.on_word(0, true, &Confirm::Taken).unwrap();
        assert_eq!(told[1].try_recv(), Ok(Confirm::Taken));
        assert_eq!(told[3].try_recv(), Ok(Confirm::Taken));
        assert_eq!(late.try_recv(), Ok(Confirm::Taken));
        assert_eq!(confirms.count(), 0);
    }

    #[test]
    fn a_word_about_what_was_never_sent_is_nonsense() {
        let (mut confirms, _told) = published(2);
        assert!(confirms.on_word(3, false, &Confirm::Taken).is_err());
        assert!(confirms.on_word(3, true, &Confirm::Taken).is_err());
        assert!(confirms.on_word(0, false, &Confirm::Taken).is_err());
        assert!(confirms.on_return("m7", 312, "".into()).is_err());
        confirms.on_word(2, true, &Confirm::Taken).unwrap();
        assert_eq!(confirms.on_word(1, true, &Confirm::Taken), Ok(()), "said again");
        assert!(confirms.on_word(1, false, &Confirm::Taken).is_err());
    }

    #[test]
    fn whoever_gave_up_waiting_spoils_nothing() {
        let (mut confirms, mut told) = published(3);
        drop(told.remove(0));
        confirms.on_word(2, true, &Confirm::Taken).unwrap();
        assert_eq!(heard(&mut told), [Some(Confirm::Taken), None]);
        confirms.end();
        assert!(told[1].try_recv().is_err());
        assert_eq!(confirms.count(), 0);
    }

    #[test]
    fn two_of_one_name_come_back_one_by_one() {
        let mut confirms = Confirms::default();
        let mut told = [confirms.publish("m".into()), confirms.publish("m".into())];
        confirms.on_return("m", 312, "NO_ROUTE".into()).unwrap();
        confirms.on_word(2, true, &Confirm::Taken).unwrap();
        assert_eq!(heard(&mut told), [Some(returned()), Some(Confirm::Taken)]);
    }
}
