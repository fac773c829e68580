//! How a sink is set up, and the bounds that it keeps to.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::mail::Mail;
use crate::script::{Script, Stage};

/// How a sink is set up. The default accepts everything, on a port that the system chooses.
#[derive(Clone)]
pub struct Options {
    /// Where it listens: an address of this machine's loopback, no other.
    pub listen: SocketAddr,
    /// What it does to whom; can be changed while it runs, see [`crate::Sink::tell`].
    pub script: Script,
    /// Whether recipients such as `defer@…` and `lose@…` get what they are called after, where the script says
    /// nothing about them.
    pub magic: bool,
    /// A directory to keep mails in. What is there already is read at the start.
    pub keep: Option<PathBuf>,
    /// Whether and when the connection is encrypted.
    pub tls: Tls,
    /// The user and the password without which it takes no mail.
    pub login: Option<(String, String)>,
    /// The bounds.
    pub limits: Limits,
    /// Tells the time of day in milliseconds since 1970; without it, mails have no time.
    pub clock: Option<ClockFn>,
    /// Is told what happens, as it happens.
    pub watcher: Option<WatcherFn>,
}

/// Tells the time of day in milliseconds since 1970.
pub type ClockFn = Arc<dyn Fn() -> i64 + Send + Sync>;
/// Is told what happens. It is called between two lines of a conversation, so it must be quick.
pub type WatcherFn = Arc<dyn Fn(&Seen) + Send + Sync>;

/// Something that happened at a sink.
#[derive(Debug)]
pub enum Seen {
    /// A mail was kept.
    Kept(Arc<Mail>),
    /// A rule had its way.
    Played {
        /// When in the conversation.
        stage: Stage,
        /// The sender, if it was known by then.
        from: Option<String>,
        /// The recipients that it was about.
        to: Vec<String>,
        /// What was done, as a script would write it.
        action: String,
    },
    /// The oldest mail had to go, for a bound would have been broken; its number.
    Dropped(u64),
}

/// Whether and when the connection is encrypted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Never.
    Off,
    /// When the client asks for it. Logins are taken only afterwards.
    StartTls,
    /// From the first byte.
    Implicit,
}

/// The bounds that a sink keeps to, whatever is done to it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one mail.
    pub message_bytes_max: usize,
    /// Mails kept; the oldest goes first.
    pub mails_max: usize,
    /// Bytes of all mails kept; the oldest goes first.
    pub kept_bytes_max: usize,
    /// Recipients of one mail.
    pub recipients_max: usize,
    /// Bytes of a command.
    pub line_bytes_max: usize,
    /// Connections at a time.
    pub connections_max: usize,
    /// How long a client may be silent.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 10 << 20,
            mails_max: 10_000,
            kept_bytes_max: 256 << 20,
            recipients_max: 1_000,
            line_bytes_max: 12 << 10,
            connections_max: 100,
            silence: Duration::from_secs(300),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            script: Script::default(),
            magic: false,
            keep: None,
            tls: Tls::Off,
            login: None,
            limits: Limits::default(),
            clock: None,
            watcher: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        f.debug_struct("Options")
            .field("listen", &self.listen)
            .field("script", &self.script)
            .field("magic", &self.magic)
            .field("keep", &self.keep)
            .field("tls", &self.tls)
            .field("login", &self.login.as_ref().map(|(user, _)| user))
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
