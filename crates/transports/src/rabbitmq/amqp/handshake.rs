//! The first words on a connection: who we are, and what both sides can bear.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::closed::Closed;
use super::connection::{CHANNELS_MAX, Options, Stream};
use super::frame::{Frame, GREETING, put_method};
use super::method::Method;
use super::table::{Field, Table};
use super::wire::{Long, Malformed, Short};

/// The largest frame that we ask for; what a broker allows by default.
pub const FRAME_BYTES_MAX: usize = 131_072;
/// The smallest that every peer must allow.
const FRAME_BYTES_MIN: u32 = 4_096;

/// What was agreed on.
pub(super) struct Agreed {
    pub(super) frame_max: usize,
    /// How long either side may be silent; `None`: for ever.
    pub(super) heartbeat: Option<Duration>,
    /// What was read beyond the last word.
    pub(super) rest: BytesMut,
}

/// Greets, logs in and opens the connection.
pub(super) async fn greet(stream: &mut dyn Stream, options: &Options) -> Result<Agreed, Closed> {
    let mut talk = Talk { stream, read: BytesMut::new() };
    talk.stream.write_all(GREETING).await?;
    let Method::ConnectionStart { mechanisms, .. } = talk.hear().await? else { return Err(unexpected()) };
    if !mechanisms.0.split(|byte| *byte == b' ').any(|word| word == b"PLAIN") {
        return Err(Closed::said(0, "the broker takes no login by name and password (PLAIN)"));
    }
    talk.say(&start_ok(options)).await?;
    let Method::ConnectionTune { channel_max, frame_max, heartbeat } = talk.hear().await? else {
        return Err(unexpected());
    };
    let frame_max = match frame_max {
        0 => FRAME_BYTES_MAX,
        theirs if theirs < FRAME_BYTES_MIN => return Err(Malformed("frames that are too small").into()),
        theirs => FRAME_BYTES_MAX.min(theirs as usize),
    };
    let ours = u16::try_from(options.heartbeat.as_secs().max(1)).unwrap_or(u16::MAX);
    let heartbeat = if heartbeat == 0 { ours } else { ours.min(heartbeat) };
    // To a broker with a limit, none is more than that.
    let channel_max = if channel_max == 0 { CHANNELS_MAX } else { CHANNELS_MAX.min(channel_max) };
    let tune_ok = Method::ConnectionTuneOk { channel_max, frame_max: frame_max as u32, heartbeat };
    let open = Method::ConnectionOpen {
        virtual_host: Short::cut(&options.virtual_host),
        reserved_1: Short::default(),
        reserved_2: 0,
    };
    talk.say(&tune_ok).await?;
    talk.say(&open).await?;
    let Method::ConnectionOpenOk { .. } = talk.hear().await? else { return Err(unexpected()) };
    let heartbeat = Some(Duration::from_secs(u64::from(heartbeat)));
    Ok(Agreed { frame_max, heartbeat, rest: talk.read })
}

fn start_ok(options: &Options) -> Method {
    // Without these, a broker hangs up where it could say why.
    let capabilities =
        ["authentication_failure_close", "connection.blocked", "basic.nack", "consumer_cancel_notify"]
            .into_iter()
            .fold(Table::default(), |table, name| table.with(name, Field::flag(true)))
            .with("publisher_confirms", Field::flag(true));
    let properties = Table::default()
        .with("product", Field::string("Redeliver"))
        .with("version", Field::string(env!("CARGO_PKG_VERSION")))
        .with("connection_name", Field::string(Bytes::from(options.name.clone())))
        .with("capabilities", Field::table(&capabilities));
    let response = format!("\0{}\0{}", options.user, options.password);
    Method::ConnectionStartOk {
        properties,
        mechanism: Short::cut("PLAIN"),
        response: Long(response.into()),
        locale: Short::cut("en_US"),
    }
}

fn unexpected() -> Closed {
    Malformed("the broker greets in another order").into()
}

struct Talk<'a> {
    stream: &'a mut dyn Stream,
    read: BytesMut,
}

impl Talk<'_> {
    async fn say(&mut self, method: &Method) -> Result<(), Closed> {
        let mut bytes = BytesMut::new();
        put_method(0, method, &mut bytes);
        Ok(self.stream.write_all(&bytes).await?)
    }

    async fn hear(&mut self) -> Result<Method, Closed> {
        loop {
            match Frame::take(&mut self.read, FRAME_BYTES_MAX)? {
                Some(Frame::Method(0, Method::ConnectionClose { code, text, .. })) => {
                    // It is leaving; whether it hears this changes nothing.
                    let _ = self.say(&Method::ConnectionCloseOk {}).await;
                    return Err(Closed::said(code, text.as_str()));
                }
                Some(Frame::Method(0, method)) => return Ok(method),
                Some(Frame::Heartbeat) => {}
                Some(_) => return Err(unexpected()),
                None => {
                    if self.stream.read_buf(&mut self.read).await? == 0 {
                        return Err(Closed::Broken("the broker hung up".into()));
                    }
                }
            }
        }
    }
}
