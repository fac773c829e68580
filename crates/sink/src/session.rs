//! One conversation: what the client says, what the script makes of it, and what is answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::command::{Command, read_command};
use crate::control;
use crate::login;
use crate::mailbox::Arrived;
use crate::options::{Seen, Tls};
use crate::script::{Action, Decision, Moment, Stage};
use crate::shared::Shared;
use crate::wire::{Data, Line, Wire};

/// How long whoever has a private command may take to say it before a rule about the greeting has its way.
const PRIVATE_FIRST: Duration = Duration::from_millis(200);

/// What is said where an answer is expected that is none.
const NONSENSE: &[u8] = b"?? 2nd5 this is no answer\r\n";

pub(crate) struct Session {
    pub wire: Wire,
    pub shared: Arc<Shared>,
    pub login: Option<String>,
    tls: bool,
    greeted: bool,
    /// The mail that is being handed over.
    envelope: Option<Envelope>,
}

struct Envelope {
    from: String,
    to: Vec<String>,
    utf8: bool,
}

/// What the script left of a stage.
#[derive(PartialEq, Eq)]
pub(crate) enum Played {
    /// Everything: the sink answers as it would without a script.
    Nothing,
    /// The client has its answer.
    Answered,
    /// The conversation is over.
    Over,
}

#[derive(PartialEq, Eq)]
enum Next {
    Listen,
    Close,
}

/// Talks with one client to the end.
pub(crate) async fn converse(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if is_private(&stream, &shared).await {
        let wire = Wire::new(stream, shared.limits.silence);
        return control::serve(wire, shared).await;
    }
    let mut wire = Wire::new(stream, shared.limits.silence);
    let mut tls = false;
    if let (Tls::Implicit, Some(acceptor)) = (shared.tls, &shared.acceptor) {
        wire.encrypt(acceptor).await?;
        tls = true;
    }
    let mut session = Session { wire, shared, login: None, tls, greeted: false, envelope: None };
    let ended = session.talk().await;
    if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
        return session.wire.say(421, "4.4.2 silent for too long").await;
    }
    ended
}

/// Whether the client begins with a private command. Asked only where it matters, because it takes time.
async fn is_private(stream: &TcpStream, shared: &Shared) -> bool {
    let patience = match shared.tls {
        Tls::Implicit => shared.limits.silence,
        Tls::Off | Tls::StartTls if shared.playing().minds_greeting() => PRIVATE_FIRST,
        Tls::Off | Tls::StartTls => return false,
    };
    let mut first = [0];
    let heard = timeout(patience, stream.peek(&mut first)).await;
    matches!(heard, Ok(Ok(1))) && first[0].eq_ignore_ascii_case(&b'X')
}

impl Session {
    async fn talk(&mut self) -> io::Result<()> {
        match self.play(Stage::Greeting, &[]).await? {
            Played::Nothing => self.wire.say(220, "localhost ESMTP redeliver sink").await?,
            Played::Answered => return self.turn_away().await,
            Played::Over => return Ok(()),
        }
        loop {
            match self.wire.line(self.shared.limits.line_bytes_max).await? {
                Line::End => return Ok(()),
                Line::TooLong => self.wire.say(500, "5.5.2 line too long").await?,
                Line::Said(line) => match read_command(&line) {
                    Err((code, text)) => self.wire.say(code, text).await?,
                    Ok(command) => {
                        if self.obey(command).await? == Next::Close {
                            return Ok(());
                        }
                    }
                },
            }
        }
    }

    /// After a greeting that was none, a client can only leave.
    async fn turn_away(&mut self) -> io::Result<()> {
        while let Line::Said(line) = self.wire.line(self.shared.limits.line_bytes_max).await? {
            if read_command(&line) == Ok(Command::Quit) {
                return self.wire.say(221, "2.0.0 bye").await;
            }
            self.wire.say(503, "5.5.1 there is nothing for you here").await?;
        }
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> io::Result<Next> {
        match command {
            Command::Hello { extended } => return self.hello(extended).await,
            Command::StartTls => self.start_tls().await?,
            Command::Auth { mechanism, initial } => {
                let played = login::log_in(self, &mechanism, initial).await?;
                return Ok(if played == Played::Over { Next::Close } else { Next::Listen });
            }
            Command::Mail { from, bytes, utf8 } => return self.mail(from, bytes, utf8).await,
            Command::Rcpt(to) => return self.rcpt(to).await,
            Command::Data => return self.data().await,
            Command::Rset => {
                self.envelope = None;
                self.wire.say(250, "2.0.0 forgotten").await?;
            }
            Command::Noop => self.wire.say(250, "2.0.0 nothing done").await?,
            Command::Vrfy => self.wire.say(252, "2.0.0 try it").await?,
            Command::Private(private) => control::answer(&mut self.wire, &self.shared, private).await?,
            Command::Quit => {
                self.wire.say(221, "2.0.0 bye").await?;
                return Ok(Next::Close);
            }
        }
        Ok(Next::Listen)
    }

    async fn hello(&mut self, extended: bool) -> io::Result<Next> {
        match self.play(Stage::Ehlo, &[]).await? {
            Played::Nothing => {}
            played => return Ok(after(played)),
        }
        self.greeted = true;
        self.envelope = None;
        if !extended {
            self.wire.say(250, "localhost").await?;
            return Ok(Next::Listen);
        }
        let size = format!("SIZE {}", self.shared.limits.message_bytes_max);
        let mut lines: Vec<String> =
            ["localhost", &size, "8BITMIME", "SMTPUTF8", "PIPELINING", "ENHANCEDSTATUSCODES"]
                .map(str::to_owned)
                .into();
        if self.shared.tls == Tls::StartTls && !self.tls {
            lines.push("STARTTLS".to_owned());
        }
        if self.takes_logins() {
            lines.push("AUTH PLAIN LOGIN".to_owned());
        }
        self.wire.say_lines(250, &lines).await?;
        Ok(Next::Listen)
    }

    /// Whether a login is asked for, and can be given without being overheard.
    pub(crate) fn takes_logins(&self) -> bool {
        self.shared.login.is_some() && (self.tls || self.shared.tls == Tls::Off)
    }

    async fn start_tls(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let Some(acceptor) = shared.acceptor.as_ref().filter(|_| !self.tls) else {
            return self.wire.say(503, "5.5.1 not offered").await;
        };
        self.wire.say(220, "2.0.0 go ahead").await?;
        self.wire.encrypt(acceptor).await?;
        self.tls = true;
        self.greeted = false;
        self.login = None;
        self.envelope = None;
        Ok(())
    }

    async fn mail(&mut self, from: String, bytes: Option<u64>, utf8: bool) -> io::Result<Next> {
        let bytes_max = self.shared.limits.message_bytes_max;
        let wrong = if !self.greeted {
            Some((503, "5.5.1 say EHLO first"))
        } else if self.shared.login.is_some() && self.login.is_none() {
            Some((530, "5.7.0 log in first"))
        } else if self.envelope.is_some() {
            Some((503, "5.5.1 one mail at a time"))
        } else if !from.is_ascii() && !utf8 {
            Some((553, "5.6.7 such an address needs SMTPUTF8"))
        } else if bytes.is_some_and(|bytes| bytes > bytes_max as u64) {
            Some((552, "5.3.4 too big"))
        } else {
            None
        };
        if let Some((code, text)) = wrong {
            self.wire.say(code, text).await?;
            return Ok(Next::Listen);
        }
        self.envelope = Some(Envelope { from, to: Vec::new(), utf8 });
        match self.play(Stage::Mail, &[]).await? {
            Played::Nothing => {
                self.wire.say(250, "2.1.0 sender ok").await?;
                Ok(Next::Listen)
            }
            played => {
                self.envelope = None;
                Ok(after(played))
            }
        }
    }

    async fn rcpt(&mut self, to: String) -> io::Result<Next> {
        let wrong = match &self.envelope {
            None => Some((503, "5.5.1 say MAIL first")),
            Some(envelope) if !to.is_ascii() && !envelope.utf8 => {
                Some((553, "5.6.7 such an address needs SMTPUTF8"))
            }
            Some(envelope) if envelope.to.len() >= self.shared.limits.recipients_max => {
                Some((452, "4.5.3 too many recipients"))
            }
            Some(_) => None,
        };
        if let Some((code, text)) = wrong {
            self.wire.say(code, text).await?;
            return Ok(Next::Listen);
        }
        let to = [to];
        match self.play(Stage::Rcpt, &to).await? {
            Played::Nothing => {}
            played => return Ok(after(played)),
        }
        if let Some(envelope) = &mut self.envelope {
            envelope.to.extend(to);
        }
        self.wire.say(250, "2.1.5 recipient ok").await?;
        Ok(Next::Listen)
    }

    async fn data(&mut self) -> io::Result<Next> {
        let to = self.envelope.as_ref().map(|envelope| envelope.to.clone()).unwrap_or_default();
        if to.is_empty() {
            let (code, text) = match self.envelope {
                Some(_) => (554, "5.5.1 no valid recipients"),
                None => (503, "5.5.1 say MAIL first"),
            };
            self.wire.say(code, text).await?;
            return Ok(Next::Listen);
        }
        match self.play(Stage::Data, &to).await? {
            Played::Nothing => self.wire.say(354, "end with a dot on a line of its own").await?,
            played => return Ok(after(played)),
        }
        match self.wire.data(self.shared.limits.message_bytes_max).await? {
            Data::End => Ok(Next::Close),
            Data::TooBig => {
                self.envelope = None;
                self.wire.say(552, "5.3.4 too big").await?;
                Ok(Next::Listen)
            }
            Data::Whole(data) => self.dot(to, data).await,
        }
    }

    async fn dot(&mut self, to: Vec<String>, data: Vec<u8>) -> io::Result<Next> {
        match self.play(Stage::Dot, &to).await? {
            Played::Nothing => {}
            played => {
                self.envelope = None;
                return Ok(after(played));
            }
        }
        // Asked before the mail is kept, because it is kept with what becomes of the answer.
        let decision = self.ask(Stage::Kept, &to);
        let arrived = Arrived {
            received_at: self.shared.clock.as_ref().map(|clock| clock()),
            from: self.from().to_owned(),
            to: to.clone(),
            data,
            answered: decision.action == Action::Accept,
            login: self.login.clone(),
            tls: self.tls,
        };
        let mail = match self.shared.mailbox.add(arrived) {
            Ok((mail, dropped)) => {
                self.shared.tell_watcher(&Seen::Kept(Arc::clone(&mail)));
                dropped.into_iter().for_each(|number| self.shared.tell_watcher(&Seen::Dropped(number)));
                mail
            }
            Err(_) => {
                self.envelope = None;
                self.wire.say(452, "4.3.1 cannot be kept").await?;
                return Ok(Next::Listen);
            }
        };
        let played = self.perform(Stage::Kept, &to, decision).await?;
        self.envelope = None;
        if played != Played::Nothing {
            return Ok(after(played));
        }
        let said = self.wire.say(250, &format!("2.0.0 kept as {}", mail.number)).await;
        if said.is_err() {
            self.shared.mailbox.mark_unanswered(mail.number)?;
        }
        said.map(|()| Next::Listen)
    }

    /// Does what the script says about this stage, if it says anything.
    pub(crate) async fn play(&mut self, stage: Stage, to: &[String]) -> io::Result<Played> {
        let decision = self.ask(stage, to);
        self.perform(stage, to, decision).await
    }

    fn from(&self) -> &str {
        self.envelope.as_ref().map_or("", |envelope| &envelope.from)
    }

    fn ask(&self, stage: Stage, to: &[String]) -> Decision {
        self.shared.playing().decide(Moment { stage, from: self.from(), to })
    }

    async fn perform(&mut self, stage: Stage, to: &[String], decision: Decision) -> io::Result<Played> {
        let Decision { wait, action } = decision;
        if !wait.is_zero() {
            sleep(wait).await;
        }
        if action != Action::Accept {
            let from = self.envelope.as_ref().map(|envelope| envelope.from.clone());
            let (to, action) = (to.to_vec(), action.to_string());
            self.shared.tell_watcher(&Seen::Played { stage, from, to, action });
        }
        match action {
            // Slow and greylist never come out of a decision.
            Action::Accept | Action::Slow(_) | Action::Greylist => Ok(Played::Nothing),
            Action::Defer(reply) | Action::Refuse(reply) => {
                self.wire.say(reply.code, &reply.text).await?;
                Ok(if reply.code == 421 { Played::Over } else { Played::Answered })
            }
            Action::Garble => {
                self.wire.send(NONSENSE).await?;
                Ok(Played::Answered)
            }
            Action::Hang => {
                self.wire.swallow().await?;
                Ok(Played::Over)
            }
            Action::Cut => Ok(Played::Over),
        }
    }
}

fn after(played: Played) -> Next {
    match played {
        Played::Nothing | Played::Answered => Next::Listen,
        Played::Over => Next::Close,
    }
}
