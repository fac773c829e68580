//! The mails that a sink has kept, never more than its bounds allow, and waiting for them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::keep::Keep;
use crate::mail::{Listed, Mail, header};
use crate::options::Limits;

pub(crate) struct Mailbox {
    kept: Mutex<Kept>,
    keep: Option<Keep>,
    mails_max: usize,
    kept_bytes_max: usize,
    /// Says that there is something new; what it is, is asked for.
    changed: watch::Sender<()>,
}

struct Kept {
    mails: VecDeque<Arc<Mail>>,
    bytes: usize,
    next: u64,
}

/// A mail that has come, and has no number yet.
pub(crate) struct Arrived {
    pub received_at: Option<i64>,
    pub from: String,
    pub to: Vec<String>,
    pub data: Vec<u8>,
    pub answered: bool,
    pub login: Option<String>,
    pub tls: bool,
}

impl Mailbox {
    /// A mailbox with what was kept before.
    pub fn open(keep: Option<Keep>, limits: &Limits) -> io::Result<Self> {
        let mails: VecDeque<Arc<Mail>> = match &keep {
            Some(keep) => keep.read()?.into_iter().map(Arc::new).collect(),
            None => VecDeque::new(),
        };
        let bytes = mails.iter().map(|mail| mail.data.len()).sum();
        let next = mails.back().map_or(1, |mail| mail.number.saturating_add(1));
        let kept = Mutex::new(Kept { mails, bytes, next });
        let (mails_max, kept_bytes_max) = (limits.mails_max, limits.kept_bytes_max);
        let mailbox = Self { kept, keep, mails_max, kept_bytes_max, changed: watch::Sender::new(()) };
        mailbox.shrink(&mut mailbox.lock());
        Ok(mailbox)
    }

    /// Keeps a mail, and gives it back with the numbers of those that had to go for it.
    pub fn add(&self, arrived: Arrived) -> io::Result<(Arc<Mail>, Vec<u64>)> {
        let mut kept = self.lock();
        let message_id = header(&arrived.data, "message-id");
        let Arrived { received_at, from, to, data, answered, login, tls } = arrived;
        let mail = Mail { number: kept.next, received_at, from, to, data, answered, login, tls, message_id };
        if let Some(keep) = &self.keep {
            keep.write(&mail)?;
        }
        let mail = Arc::new(mail);
        kept.next += 1;
        kept.bytes += mail.data.len();
        kept.mails.push_back(Arc::clone(&mail));
        let dropped = self.shrink(&mut kept);
        drop(kept);
        self.changed.send_replace(());
        Ok((mail, dropped))
    }

    /// Notes that the answer never arrived.
    pub fn mark_unanswered(&self, number: u64) -> io::Result<()> {
        let mut kept = self.lock();
        let Some(mail) = kept.mails.iter_mut().find(|mail| mail.number == number) else { return Ok(()) };
        Arc::make_mut(mail).answered = false;
        match &self.keep {
            Some(keep) => keep.write_listed(&mail.listed()),
            None => Ok(()),
        }
    }

    pub fn mails(&self) -> Vec<Arc<Mail>> {
        self.lock().mails.iter().cloned().collect()
    }

    /// The last so many, oldest first, without their contents.
    pub fn list(&self, count: usize) -> Vec<Listed> {
        let kept = self.lock();
        kept.mails.iter().skip(kept.mails.len().saturating_sub(count)).map(|mail| mail.listed()).collect()
    }

    pub fn get(&self, number: u64) -> Option<Arc<Mail>> {
        self.lock().mails.iter().find(|mail| mail.number == number).cloned()
    }

    /// Forgets all of them. Their numbers are not given again.
    pub fn clear(&self) -> usize {
        let mut kept = self.lock();
        let mails = std::mem::take(&mut kept.mails);
        kept.bytes = 0;
        if let Some(keep) = &self.keep {
            mails.iter().for_each(|mail| keep.remove(mail.number));
        }
        mails.len()
    }

    /// Ends when there are at least so many.
    pub async fn wait_for(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        while self.lock().mails.len() < count {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn shrink(&self, kept: &mut Kept) -> Vec<u64> {
        let mut dropped = Vec::new();
        while kept.mails.len() > self.mails_max || kept.bytes > self.kept_bytes_max {
            let Some(oldest) = kept.mails.pop_front() else { break };
            kept.bytes -= oldest.data.len();
            if let Some(keep) = &self.keep {
                keep.remove(oldest.number);
            }
            dropped.push(oldest.number);
        }
        dropped
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
