//! The server as it is written in a config.

use std::path::PathBuf;
use std::time::Duration;

pub use crate::address::Secret;
use crate::address::{parse_address, show_address, unescape};

/// How a server is come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The server, the cluster, or whoever knows where it is; without any, messages wait.
    pub servers: Option<Servers>,
    /// A file of certificates (PEM) that are trusted beside the usual ones.
    pub ca_file: Option<PathBuf>,
    /// How long connecting may take, encryption and login included.
    pub connect_timeout: Duration,
    /// How long a server may take to answer before it counts as gone.
    pub reply_timeout: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            servers: None,
            ca_file: None,
            connect_timeout: Duration::from_secs(5),
            reply_timeout: Duration::from_secs(9),
        }
    }
}

/// How messages are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisConfig {
    /// The server.
    pub server: ServerConfig,
    /// What the target names.
    pub structure: Structure,
    /// About how many entries a stream keeps, the oldest going first; all of them if it doesn't say.
    pub entries_max: Option<u64>,
    /// What it means that the server has it.
    pub on_confirm: OnConfirm,
}

impl RedisConfig {
    /// The time-outs that one send can use up one after another, by their keys.
    pub fn timeouts(&self) -> Vec<(&'static str, Duration)> {
        vec![("connect_timeout", self.server.connect_timeout), ("reply_timeout", self.server.reply_timeout)]
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            server: ServerConfig::default(),
            structure: Structure::Stream,
            entries_max: None,
            on_confirm: OnConfirm::Delivered,
        }
    }
}

/// What messages are written to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// A stream: an entry with fields for each.
    Stream,
    /// A list: an object of JSON for each, at its end.
    List,
    /// A sorted set: an object of JSON for each, by the time at which it was due.
    SortedSet,
}

impl Structure {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 3] =
        [("stream", Self::Stream), ("list", Self::List), ("sorted_set", Self::SortedSet)];
}

/// What it means for a message that the server has it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnConfirm {
    /// It has arrived.
    Delivered,
    /// An outside worker will take it, and report.
    HandedOff,
}

impl OnConfirm {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 2] = [("delivered", Self::Delivered), ("handed_off", Self::HandedOff)];
}

/// Servers and how to come to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// What they are to each other.
    pub kind: Kind,
    /// Their names or addresses, without brackets, and ports.
    pub hosts: Vec<(String, u16)>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Whom to log in as; where only a password is asked for, nobody in particular.
    pub user: Option<String>,
    /// The password, where one is asked for.
    pub password: Option<Secret>,
    /// Which of the server's databases.
    pub database: u16,
}

/// What several servers are to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is one only.
    One,
    /// Nodes of a cluster, which share the keys among them.
    Cluster,
    /// Sentinels, which know where the server is that has this name.
    Sentinel(String),
}

/// The ports that servers and sentinels have where nobody says another.
const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

impl Servers {
    /// Reads `redis://user:password@host:6379/0`, `redis-cluster://host1,host2`, or
    /// `redis-sentinel://host1,host2/NAME/0`; `rediss` instead of `redis` where connections are encrypted.
    ///
    /// Errors never repeat the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted = "such as redis://user:password@host:6379/0, redis-cluster://host1,host2 or \
                      redis-sentinel://host1,host2/NAME, with rediss for encryption";
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("a server is written {wanted}"));
        };
        let scheme = scheme.to_ascii_lowercase();
        let (tls, kind) = match scheme.split_once('-').unwrap_or((&scheme, "")) {
            ("redis", kind) => (false, kind),
            ("rediss", kind) => (true, kind),
            _ => return Err(format!("a server is written {wanted}, not {scheme}://")),
        };
        if rest.contains(['?', '#']) {
            return Err("nothing follows the path; ? and # in a password are written %3F %23".to_owned());
        }
        let (login, rest) = match rest.rsplit_once('@') {
            // A / in a password is most likely one that should have been written %2F.
            Some((login, _)) if login.contains('/') => {
                return Err("/ in a password is written %2F".to_owned());
            }
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (user, password) = login.map_or(Ok((None, None)), parse_login)?;
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (kind, database) = match kind {
            "" => (Kind::One, path),
            "cluster" if path.is_empty() => (Kind::Cluster, ""),
            "cluster" => return Err("a cluster has one database only: nothing follows its hosts".to_owned()),
            "sentinel" => {
                let (name, database) = path.split_once('/').unwrap_or((path, ""));
                match unescape(name).filter(|name| !name.is_empty()) {
                    Some(name) => (Kind::Sentinel(name), database),
                    None => {
                        return Err("after the sentinels comes the name that they know, as /NAME".to_owned());
                    }
                }
            }
            _ => return Err(format!("a server is written {wanted}, not {scheme}://")),
        };
        let usual_port = if matches!(kind, Kind::Sentinel(_)) { SENTINEL_PORT } else { PORT };
        let hosts: Vec<(String, u16)> =
            hosts.split(',').map(|text| host_and_port(text, usual_port)).collect::<Result<_, _>>()?;
        if kind == Kind::One && hosts.len() > 1 {
            return Err("several hosts are a redis-cluster:// or behind a redis-sentinel://".to_owned());
        }
        let database = match database {
            "" => 0,
            text => text.parse().map_err(|_| "a database is a number from 0 to 65535".to_owned())?,
        };
        Ok(Self { kind, hosts, tls, user, password: password.map(Secret::new), database })
    }

    /// Whether both lead to the same database of the same server.
    pub fn shares_database_with(&self, other: &Self) -> bool {
        let is_same = |(ours, theirs): (&(String, u16), &(String, u16))| {
            ours.1 == theirs.1 && ours.0.eq_ignore_ascii_case(&theirs.0)
        };
        let is_same_name = match (&self.kind, &other.kind) {
            (Kind::Sentinel(ours), Kind::Sentinel(theirs)) => ours == theirs,
            // Sentinels and servers never have the same address.
            _ => true,
        };
        is_same_name
            && self.database == other.database
            && self.hosts.iter().any(|ours| other.hosts.iter().any(|theirs| is_same((ours, theirs))))
    }

    /// The servers as people know them, without their login.
    pub fn name(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| show_address(host, *port)).collect();
        let mut name = hosts.join(",");
        if let Kind::Sentinel(master) = &self.kind {
            name = format!("{name}/{master}");
        }
        match self.database {
            0 => name,
            database => format!("{name}/{database}"),
        }
    }
}

fn parse_login(text: &str) -> Result<(Option<String>, Option<String>), String> {
    let wrong = || {
        "a login is written user:password or :password, with % and two digits for what is no letter"
            .to_owned()
    };
    let (user, password) = text.split_once(':').ok_or_else(wrong)?;
    let (user, password) = (unescape(user).ok_or_else(wrong)?, unescape(password).ok_or_else(wrong)?);
    match password.is_empty() {
        true => Err(wrong()),
        false => Ok((Some(user).filter(|user| !user.is_empty()), Some(password))),
    }
}

fn host_and_port(text: &str, usual_port: u16) -> Result<(String, u16), String> {
    let (host, port) = parse_address(text)?;
    Ok((host, port.unwrap_or(usual_port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_and_as_whom() {
        let check = |url: &str, name: &str, tls: bool, user: Option<&str>, password: Option<&str>| {
            let servers = Servers::parse(url).unwrap();
            let said = servers.password.as_ref().map(Secret::reveal);
            let seen = (servers.name(), servers.tls, servers.user.as_deref(), said);
            assert_eq!(seen, (name.to_owned(), tls, user, password), "{url}");
        };
        check("redis://localhost", "localhost:6379", false, None, None);
        check("redis://localhost:6380/3", "localhost:6380/3", false, None, None);
        check("redis://[::1]/", "[::1]:6379", false, None, None);
        check("rediss://:p%2Fw@cache", "cache:6379", true, None, Some("p/w"));
        check("REDIS://ada:p%40w@cache:1", "cache:1", false, Some("ada"), Some("p@w"));
        check("redis-cluster://a,b:7000", "a:6379,b:7000", false, None, None);
        check("rediss-cluster://:x@a", "a:6379", true, None, Some("x"));
        check("redis-sentinel://s1,s2:1/main", "s1:26379,s2:1/main", false, None, None);
        check("rediss-sentinel://u:x@s1/main/2", "s1:26379/main/2", true, Some("u"), Some("x"));
    }

    #[test]
    fn what_is_no_server_is_said_to_be_none_without_its_password() {
        for url in [
            "",
            "localhost",
            "http://ada:secret@cache",
            "redis-ring://ada:secret@cache",
            "redis://",
            "redis://:secret@",
            "redis://secret@cache",
            "redis://ada:secret%zz@cache",
            "redis://ada:sec/ret@cache",
            "redis://ada:secret@cache:none",
            "redis://ada:secret@cache:0",
            "redis://ada:secret@cache/x",
            "redis://ada:secret@cache/-1",
            "redis://ada:secret@cache?db=1",
            "redis://ada:secret@a,b",
            "redis-cluster://ada:secret@a/1",
            "redis-sentinel://ada:secret@a",
            "redis://a b",
        ] {
            let wrong = Servers::parse(url).unwrap_err();
            assert!(!wrong.contains("secret"), "{url}: {wrong}");
        }
        assert!(!format!("{:?}", Servers::parse("redis://ada:secret@cache")).contains("secret"));
    }
}
