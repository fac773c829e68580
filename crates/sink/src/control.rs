//! What only a sink understands: the commands with which a running one is told, asked and emptied.
//!
//! They may come at any time of a conversation, from anybody, without login or encryption: the sink is on loopback
//! and what it keeps is for tests. Whoever says one first, before the sink has said anything, is let in past every
//! rule about the greeting, and in the clear where everything else is encrypted.

use std::io;
use std::sync::Arc;

use crate::command::{Command, Private, read_command};
use crate::script::Script;
use crate::shared::Shared;
use crate::wire::{Line, Wire};

/// A conversation of nothing else.
pub(crate) async fn serve(mut wire: Wire, shared: Arc<Shared>) -> io::Result<()> {
    loop {
        let Line::Said(line) = wire.line(shared.limits.line_bytes_max).await? else { return Ok(()) };
        match read_command(&line) {
            Ok(Command::Private(private)) => answer(&mut wire, &shared, private).await?,
            Ok(Command::Quit) => return wire.say(221, "2.0.0 bye").await,
            _ => return wire.say(503, "5.5.1 begun with a private command, so only those").await,
        }
    }
}

/// Does one of them.
pub(crate) async fn answer(wire: &mut Wire, shared: &Shared, private: Private) -> io::Result<()> {
    match private {
        Private::Tell(text) => match text.parse::<Script>() {
            Ok(script) => {
                let now = if script.rules.is_empty() { "accept".to_owned() } else { script.to_string() };
                shared.playing().tell(script);
                wire.say(250, &format!("2.0.0 {now}")).await
            }
            Err(error) => wire.say(501, &format!("5.5.4 {error}")).await,
        },
        Private::List(count) => {
            let mails = shared.mailbox.list(count.unwrap_or(usize::MAX));
            let count = mails.len();
            let mut lines = Vec::with_capacity(count + 1);
            for mail in mails {
                lines.push(serde_json::to_string(&mail)?);
            }
            lines.push(format!("2.0.0 {count} listed"));
            wire.say_lines(250, &lines).await
        }
        Private::Show(number) => match shared.mailbox.get(number) {
            Some(mail) => {
                let lines = [
                    serde_json::to_string(&mail.listed())?,
                    format!("2.0.0 {} bytes follow", mail.data.len()),
                ];
                wire.say_lines(250, &lines).await?;
                wire.send(&mail.data).await
            }
            None => wire.say(550, &format!("5.1.1 there is no mail {number}")).await,
        },
        Private::Clear => {
            let count = shared.mailbox.clear();
            wire.say(250, &format!("2.0.0 {count} forgotten")).await
        }
    }
}
