//! A conversation with a server, from its greeting on. It never says anything twice.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::classify::Meaning;
use redeliver_core::{Failure, Outcome};
use tokio::net::TcpStream;

use super::classify::{classify, is_out_of_step};
use super::config::{Login, Server, SmtpConfig, Tls};
use super::deadline::Deadline;
use super::features::Features;
use super::line::{Line, stuffed};
use super::mime::Written;
use super::reply::{Reply, Stage};
use super::tls::Encryption;
use super::trouble::Trouble;

/// A conversation that is ready for mails.
pub(super) struct Session {
    line: Line,
    features: Features,
    command_timeout: Duration,
    data_timeout: Duration,
    /// Whether the server has agreed to a mail's sender since the session was taken up.
    pub(super) has_begun: bool,
    /// Whether the next mail can go over it.
    pub(super) is_usable: bool,
}

/// What was said about one mail.
#[derive(Debug)]
pub(super) struct Handed {
    /// The answer to each address, in order.
    pub(super) answers: Vec<Reply>,
    /// What was said about the mail as a whole.
    pub(super) end: End,
}

/// How the handing over of a mail ended.
#[derive(Debug)]
pub(super) enum End {
    /// No address was taken, so the mail was not sent.
    Nobody,
    /// The server's last word.
    Said(Stage, Reply),
    /// The whole mail was sent and no word came back: nobody knows.
    Unknown(String),
}

impl Session {
    /// Connects, encrypts and logs in, as the config wants it.
    pub(super) async fn open(
        config: &SmtpConfig,
        server: &Server,
        encryption: &Encryption,
        deadline: &Deadline,
    ) -> Result<Self, Trouble> {
        let (stream, own) = connect(config, server, deadline).await?;
        let tls = config.tls();
        let mut line = Line::new(Box::new(stream));
        if tls == Tls::Implicit {
            line = encrypt(line, config, encryption, deadline).await?;
        }
        let (command_timeout, data_timeout) = (config.command_timeout, config.data_timeout);
        let features = Features::default();
        let mut session =
            Self { line, features, command_timeout, data_timeout, has_begun: false, is_usable: true };
        let greeting = session.read(Stage::Greeting, command_timeout, deadline).await?;
        wanted(Stage::Greeting, greeting)?;
        let name = if config.helo.is_empty() { literal(own) } else { config.helo.clone() };
        session.hello(&name, deadline).await?;
        let mut is_secret = tls == Tls::Implicit;
        let wants_tls = match tls {
            Tls::None | Tls::Implicit => false,
            Tls::Opportunistic => session.features.starttls,
            Tls::Required => true,
        };
        if wants_tls && !session.features.starttls {
            return Err(Trouble::no_encryption());
        }
        if wants_tls {
            session.command(Stage::StartTls, "STARTTLS", deadline).await?;
            session.line = encrypt(session.line, config, encryption, deadline).await?;
            session.hello(&name, deadline).await?;
            is_secret = true;
        }
        match &server.login {
            Some(_) if !is_secret && !config.auth_without_tls => Err(Trouble::no_login(
                "the login is not sent over a connection that anybody can read: use smtps:// or smtp+starttls://",
            )),
            Some(login) => session.log_in(login, deadline).await.map(|()| session),
            None => Ok(session),
        }
    }

    /// Hands a mail over for these addresses. What fails before the mail as a whole was sent is an error; what comes
    /// after is an end.
    pub(super) async fn hand_over(
        &mut self,
        mail: &Written,
        to: &[&str],
        deadline: &Deadline,
    ) -> Result<Handed, Trouble> {
        let data = stuffed(&mail.bytes);
        let parameters = self.features.mail_parameters(mail).ok_or_else(|| {
            let text = "an address has letters that the server does not know (SMTPUTF8)";
            Trouble::Unable(Outcome::Refused(Failure::new(text).with_code("553")))
        })?;
        self.is_usable = false;
        self.command(Stage::Mail, &format!("MAIL FROM:<{}>{parameters}", mail.from), deadline).await?;
        self.has_begun = true;
        let mut answers = Vec::with_capacity(to.len());
        for address in to {
            let answer = self.command(Stage::Rcpt, &format!("RCPT TO:<{address}>"), deadline).await;
            answers.push(own_answer(answer)?);
        }
        if !answers.iter().any(Reply::is_positive) {
            self.reset(deadline).await;
            return Ok(Handed { answers, end: End::Nobody });
        }
        match self.command(Stage::Data, "DATA", deadline).await {
            Ok(_) => {}
            Err(Trouble::Said(Stage::Data, reply)) if reply.code != 421 => {
                self.reset(deadline).await;
                return Ok(Handed { answers, end: End::Said(Stage::Data, reply) });
            }
            Err(trouble) => return Err(trouble),
        }
        let end = self.send(&data, deadline).await?;
        self.is_usable = matches!(&end, End::Said(_, reply) if reply.code != 421);
        Ok(Handed { answers, end })
    }

    /// The mail, then the dot. Until the dot is sent, the server can't have taken it.
    async fn send(&mut self, data: &[u8], deadline: &Deadline) -> Result<End, Trouble> {
        let sent = deadline.wait(self.data_timeout, self.line.write(data)).await;
        sent.map_err(|_| Trouble::too_late(Stage::Data))?
            .map_err(|hitch| Trouble::hitch(Stage::Data, hitch))?;
        if self.line.has_news().await {
            let reply = self.read(Stage::Data, self.command_timeout, deadline).await?;
            return Err(Trouble::Said(Stage::Dot, reply));
        }
        let unknown = |why: String| Ok(End::Unknown(format!("the mail was sent, but {why}")));
        match deadline.wait_for_answer(self.command_timeout, self.line.write(b".\r\n")).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return unknown("the connection broke at its end".to_owned()),
        }
        match deadline.wait_for_answer(self.data_timeout, self.line.read_reply()).await {
            Ok(Ok(reply)) if reply.is_intermediate() => {
                unknown(format!("the answer makes no sense: {reply}"))
            }
            Ok(Ok(reply)) => Ok(End::Said(Stage::Dot, reply)),
            Ok(Err(super::line::Hitch::Nonsense)) => unknown("the answer makes no sense".to_owned()),
            Ok(Err(super::line::Hitch::Broken(error))) => unknown(format!("no answer came: {error}")),
            Err(_) => unknown("no answer came in time".to_owned()),
        }
    }

    /// Makes the session ready for the next mail after one that was not sent.
    async fn reset(&mut self, deadline: &Deadline) {
        self.is_usable = self.command(Stage::Rset, "RSET", deadline).await.is_ok();
    }

    async fn hello(&mut self, name: &str, deadline: &Deadline) -> Result<(), Trouble> {
        self.features = match self.command(Stage::Ehlo, &format!("EHLO {name}"), deadline).await {
            Ok(reply) => Features::of(&reply),
            // A server from before extensions.
            Err(Trouble::Said(_, reply)) if matches!(reply.code, 500 | 502) => {
                self.command(Stage::Ehlo, &format!("HELO {name}"), deadline).await?;
                Features::default()
            }
            Err(trouble) => return Err(trouble),
        };
        Ok(())
    }

    async fn log_in(&mut self, login: &Login, deadline: &Deadline) -> Result<(), Trouble> {
        let (user, password) = (&login.user, login.password.reveal());
        if self.features.auth_plain {
            let word = STANDARD.encode(format!("\0{user}\0{password}"));
            return self.command(Stage::Auth, &format!("AUTH PLAIN {word}"), deadline).await.map(drop);
        }
        if !self.features.auth_login {
            return Err(Trouble::no_login("the server offers no login that we know (PLAIN, LOGIN)"));
        }
        for (word, is_last) in [
            ("AUTH LOGIN".to_owned(), false),
            (STANDARD.encode(user), false),
            (STANDARD.encode(password), true),
        ] {
            let reply = self.say(Stage::Auth, &word, deadline).await?;
            match (is_last, reply.code) {
                (false, 334) => {}
                _ => return wanted(Stage::Auth, reply).map(drop),
            }
        }
        Ok(())
    }

    /// Says something and takes only the hoped-for answer for one.
    async fn command(&mut self, stage: Stage, command: &str, deadline: &Deadline) -> Result<Reply, Trouble> {
        let reply = self.say(stage, command, deadline).await?;
        wanted(stage, reply)
    }

    async fn say(&mut self, stage: Stage, command: &str, deadline: &Deadline) -> Result<Reply, Trouble> {
        let command = format!("{command}\r\n");
        let said = deadline.wait(self.command_timeout, self.line.write(command.as_bytes())).await;
        said.map_err(|_| Trouble::too_late(stage))?.map_err(|hitch| Trouble::hitch(stage, hitch))?;
        self.read(stage, self.command_timeout, deadline).await
    }

    async fn read(&mut self, stage: Stage, at_most: Duration, deadline: &Deadline) -> Result<Reply, Trouble> {
        let read = deadline.wait(at_most, self.line.read_reply()).await;
        read.map_err(|_| Trouble::too_late(stage))?.map_err(|hitch| Trouble::hitch(stage, hitch))
    }
}

/// The hoped-for reply, or what is wrong with it.
fn wanted(stage: Stage, reply: Reply) -> Result<Reply, Trouble> {
    if is_out_of_step(stage, &reply) {
        return Err(Trouble::Nonsense(stage, reply.to_string()));
    }
    if reply.code >= 400 { Err(Trouble::Said(stage, reply)) } else { Ok(reply) }
}

/// An answer about one recipient alone; what concerns the whole conversation is trouble.
fn own_answer(answer: Result<Reply, Trouble>) -> Result<Reply, Trouble> {
    match answer {
        Err(Trouble::Said(stage, reply))
            if reply.code != 421 && classify(stage, &reply) != Meaning::LoginRefused =>
        {
            Ok(reply)
        }
        other => other,
    }
}

async fn connect(
    config: &SmtpConfig,
    server: &Server,
    deadline: &Deadline,
) -> Result<(TcpStream, Option<IpAddr>), Trouble> {
    let connecting = TcpStream::connect((server.host.as_str(), server.port));
    let stream = deadline
        .wait(config.connect_timeout, connecting)
        .await
        .map_err(|_| Trouble::too_late(Stage::Connect))?
        .map_err(|error| Trouble::broken(Stage::Connect, &error))?;
    // Commands are short and each waits for its answer.
    let _ = stream.set_nodelay(true);
    let own = stream.local_addr().ok().map(|address| address.ip());
    Ok((stream, own))
}

async fn encrypt(
    line: Line,
    config: &SmtpConfig,
    encryption: &Encryption,
    deadline: &Deadline,
) -> Result<Line, Trouble> {
    let Some(stream) = line.into_stream() else {
        return Err(Trouble::Nonsense(Stage::StartTls, "the server spoke before it was asked".to_owned()));
    };
    let wrapped = deadline.wait(config.connect_timeout, encryption.wrap(stream)).await;
    let stream = wrapped
        .map_err(|_| Trouble::too_late(Stage::StartTls))?
        .map_err(|error| Trouble::broken(Stage::StartTls, &error))?;
    Ok(Line::new(stream))
}

/// Our own address, in the form that stands for a name.
fn literal(own: Option<IpAddr>) -> String {
    match own {
        Some(IpAddr::V4(address)) => format!("[{address}]"),
        Some(IpAddr::V6(address)) => format!("[IPv6:{address}]"),
        None => "localhost".to_owned(),
    }
}
