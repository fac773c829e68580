//! What can go wrong with a database, in words for whoever has to do something about it.
//!
//! A place is told without its password, and what a statement was about is not told at all: an error goes into logs.

use redeliver_core::MessageId;
use redeliver_engine::store::StoreError;
use tokio_postgres::Error as SqlError;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::encode::Unreadable;

/// Why a call came to nothing, before anybody has said which database it was about.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// PostgreSQL said so, or nobody did.
    #[error("{}", words(.0))]
    Sql(#[from] SqlError),
    /// A row holds what no version of ours wrote.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A row holds what no version of ours wrote.
    #[error("{0}")]
    Odd(String),
    /// The call makes no sense here.
    #[error("{0}")]
    Unfit(String),
    /// Nobody answered in time.
    #[error("no answer within {0:?}")]
    TimedOut(std::time::Duration),
    /// There is no connection to be had.
    #[error("{0}")]
    NoConnection(String),
    /// A row never found its key in one state for long enough.
    #[error("a key comes and goes; try again")]
    Unsettled,
}

/// Why a store could not be opened. The variants say what can be done.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Correct the address.
    #[error("cannot read the address of the store: {why}")]
    BadAddress {
        /// What is wrong with it, without the address, which may hold a password.
        why: String,
    },
    /// Start the database, or correct its address, user or password.
    #[error("cannot open store {place}: {why}")]
    Unreachable {
        /// The database.
        place: String,
        /// What stands in the way.
        why: String,
    },
    /// Make room.
    #[error("cannot open store {place}: the disk is full")]
    Full {
        /// The database.
        place: String,
    },
    /// Repair it.
    #[error("cannot open store {place}: {why}; restore it from a backup, or see `redeliver doctor`")]
    Damaged {
        /// The database.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// Use the version of redeliver that made it, or set the database right.
    #[error("cannot open store {place}: {why}")]
    Unfit {
        /// The database.
        place: String,
        /// How it differs from what is needed.
        why: String,
    },
}

impl Fault {
    /// Whether two got into each other's way, so that the same once more is likely to work.
    pub(super) fn is_a_clash(&self) -> bool {
        let code = match self {
            Self::Sql(error) => error.code(),
            _ => None,
        };
        code.is_some_and(|code| {
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code)
        })
    }

    /// Whether one row is to blame, so that others would have been written without it, and can be said again.
    pub(super) fn is_of_a_row(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::Odd(_) | Self::Unfit(_) | Self::Unsettled => true,
            Self::Sql(error) => error.code().is_some_and(is_of_values),
            Self::TimedOut(_) | Self::NoConnection(_) => false,
        }
    }

    /// Whether the connection can't be trusted to be as a call expects it.
    pub(super) fn spoils(&self) -> bool {
        match self {
            // It can only be read, or the database is about to close it.
            Self::Sql(error) => error.code().is_none_or(|code| {
                error.is_closed()
                    || ["25006", "25P03"].contains(&code.code())
                    || code.code().starts_with("57P")
            }),
            Self::TimedOut(_) | Self::NoConnection(_) => true,
            Self::Unreadable(_) | Self::Odd(_) | Self::Unfit(_) | Self::Unsettled => false,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Unfit(_) => Kind::Unfit,
            Self::Unreadable(_) | Self::Odd(_) => Kind::Damaged,
            Self::TimedOut(_) | Self::NoConnection(_) | Self::Unsettled => Kind::Unavailable,
            Self::Sql(error) => match error.code() {
                Some(code) => by_code(code),
                None if is_of_a_value(error) => Kind::Damaged,
                None => Kind::Unavailable,
            },
        }
    }
}

/// The id's bits, if it is one of ours.
pub(super) fn own(id: &MessageId) -> Option<Uuid> {
    match id {
        MessageId::Own(uuid) => Some(*uuid),
        MessageId::Row(_) => None,
    }
}

/// The id's bits; a row of an application's table makes no sense here.
pub(super) fn own_or_unfit(id: &MessageId) -> Result<Uuid, Fault> {
    own(id).ok_or_else(|| Fault::Unfit(format!("{id} is a row of another table")))
}

/// A number that means nothing.
pub(super) fn odd(column: &str, number: impl std::fmt::Display) -> Fault {
    Fault::Odd(format!("{column} is {number}, which means nothing"))
}

/// What a caller of the store is told.
pub(super) fn store_error(place: &str, fault: &Fault) -> StoreError {
    match fault.kind() {
        Kind::Full => StoreError::Full(format!("no room for {place}; nothing that was accepted is lost")),
        Kind::Damaged => StoreError::Damaged(format!(
            "{place}: {fault}; restore it from a backup, or see `redeliver doctor`"
        )),
        Kind::Unfit => StoreError::Unfit(fault.to_string()),
        Kind::Unavailable => StoreError::Unavailable(format!("{place}: {fault}")),
    }
}

/// What whoever opens the store is told.
pub(super) fn open_error(place: &str, fault: &Fault) -> OpenError {
    let (place, why) = (place.to_owned(), fault.to_string());
    match fault.kind() {
        Kind::Full => OpenError::Full { place },
        Kind::Damaged => OpenError::Damaged { place, why },
        Kind::Unfit => OpenError::Unfit { place, why },
        Kind::Unavailable => OpenError::Unreachable { place, why },
    }
}

enum Kind {
    Unavailable,
    Full,
    Damaged,
    Unfit,
}

fn by_code(code: &SqlState) -> Kind {
    match code.code() {
        "53100" => Kind::Full,
        "XX001" | "XX002" => Kind::Damaged,
        // Our own tables are not there, or not as this version left them.
        "42P01" | "42703" | "3F000" => Kind::Damaged,
        // A right that the user doesn't have.
        "42501" => Kind::Unfit,
        // What others have already may be gone in a moment.
        "23505" => Kind::Unavailable,
        _ if is_of_values(code) => Kind::Unfit,
        _ => Kind::Unavailable,
    }
}

/// Whether a value is to blame: one that no column can have, such as a text with a NUL, that a rule of the table forbids, that
/// others have already, or that is larger than can be kept.
fn is_of_values(code: &SqlState) -> bool {
    ["22", "23", "54"].iter().any(|class| code.code().starts_with(class))
}

/// Whether a value that was asked for is none that its type has.
pub(super) fn is_of_a_type(error: &SqlError) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("22"))
}

/// Whether a value was not what its column says.
fn is_of_a_value(error: &SqlError) -> bool {
    // The library has no other way to tell.
    let words = error.to_string();
    words.starts_with("error deserializing column") || words.starts_with("invalid column")
}

/// PostgreSQL's own words, without details, which may quote what was stored.
fn words(error: &SqlError) -> String {
    let Some(said) = error.as_db_error() else {
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            words.push_str(": ");
            words.push_str(&error.to_string());
            cause = error.source();
        }
        return words;
    };
    match said.code().code() {
        "22021" => "a text has a NUL character, which PostgreSQL cannot keep".to_owned(),
        code => format!("{} ({code})", said.message()),
    }
}
