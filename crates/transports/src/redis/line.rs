//! One connection to one server, which any number of callers share: what they ask goes out at once, and is answered in
//! its order.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

/// Commands that wait to be written, at most; whoever comes then waits too.
const WAITING_MAX: usize = 1_000;

/// Anything that bytes go over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// A connection to one server.
pub(super) struct Line {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    /// Whether whoever comes now takes another.
    is_left: AtomicBool,
}

/// Why there is no answer, or none that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The server can't be reached, or is gone; nobody knows what became of what it was told last.
    Away(String),
    /// The server says no.
    Said {
        /// The first word of it, such as `WRONGTYPE`.
        code: String,
        /// The rest.
        text: String,
    },
}

impl Trouble {
    /// The first word of a server's no.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::Away(_) => None,
            Self::Said { code, .. } => Some(code),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => f.write_str(why),
            Self::Said { code, text } => write!(f, "{code} {text}"),
        }
    }
}

impl From<::redis::RedisError> for Trouble {
    fn from(error: ::redis::RedisError) -> Self {
        match error.code() {
            Some(code) => {
                Self::Said { code: code.to_owned(), text: error.detail().unwrap_or_default().to_owned() }
            }
            None => Self::Away(error.to_string().trim().replace('\n', ", ")),
        }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Away(error.to_string())
    }
}

impl Line {
    /// Begins to talk on a stream.
    pub(super) async fn open(stream: impl Stream) -> Result<Self, Trouble> {
        // Who we are is said later, so that a server's no can be told from others.
        let nobody = RedisConnectionInfo::default().set_skip_set_lib_name();
        // How long an answer may take is for whoever asks to say.
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(WAITING_MAX);
        let (connection, driver) = MultiplexedConnection::new_with_config(&nobody, stream, config).await?;
        Ok(Self { connection, driver: tokio::spawn(driver), is_left: AtomicBool::new(false) })
    }

    /// Whether it is of no more use.
    pub(super) fn is_over(&self) -> bool {
        self.driver.is_finished() || self.is_left.load(Ordering::Relaxed)
    }

    /// Leads to the wrong server by now. What was asked is still answered.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Ends it. What was asked and not answered never will be.
    fn close(&self) {
        self.leave();
        self.driver.abort();
    }

    /// Says a command, and answers with what the server says to it. Answers come in their order: where one doesn't come
    /// in time, no other will, and the connection is closed.
    pub(super) async fn ask(&self, command: &Cmd, within: Duration) -> Result<Value, Trouble> {
        let mut connection = self.connection.clone();
        match tokio::time::timeout(within, connection.send_packed_command(command)).await {
            Ok(answer) => {
                let answer = answer.map_err(Trouble::from).inspect_err(|trouble| {
                    if trouble.code().is_none() {
                        self.leave();
                    }
                });
                Ok(answer?.extract_error()?)
            }
            Err(_) => {
                self.close();
                Err(Trouble::Away("it did not answer in time".to_owned()))
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close();
    }
}
