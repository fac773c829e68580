//! How the mail of an application's row is come to, and what it is as an e-mail.

use redeliver_core::email::{Email, Mailbox};
use redeliver_core::{Content, Failure, Outcome};

use crate::mapping::{TableName, quoted};

/// Where the mail of a row is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailSource {
    /// In columns of the row.
    Columns(MailColumns),
    /// What this query finds for the row's `:id`, in columns called like the fields of a mail.
    Query(String),
}

/// What the columns of a mail are called. Those that aren't there are not read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MailColumns {
    /// To whom: one address, perhaps with a name.
    pub to: String,
    /// The name to that address.
    pub to_name: Option<String>,
    /// Who writes, where it isn't the server's usual sender.
    pub from: Option<String>,
    /// What it is about.
    pub subject: Option<String>,
    /// Its words as plain text.
    pub text: Option<String>,
    /// Its words as HTML.
    pub html: Option<String>,
}

/// The fields of a mail that were found, by name.
pub type Fields = Vec<(String, String)>;

/// What stands for the row's id in a query.
const ID: &str = ":id";

impl MailColumns {
    /// Each field that there is, with the column that it is in.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let to = std::iter::once(("to", self.to.as_str()));
        let others = [
            ("to_name", &self.to_name),
            ("from", &self.from),
            ("subject", &self.subject),
            ("text", &self.text),
            ("html", &self.html),
        ];
        to.chain(others.into_iter().filter_map(|(field, name)| Some((field, name.as_deref()?))))
    }
}

impl MailSource {
    /// The question for the mail of one row, with this in the place of its id.
    pub(crate) fn question(&self, table: &TableName, id: &str, by: &str) -> String {
        match self {
            Self::Columns(columns) => {
                let columns: Vec<String> = columns
                    .named()
                    .map(|(field, name)| format!("{} AS {}", quoted(name), quoted(field)))
                    .collect();
                format!("SELECT {} FROM {} WHERE {} = {by}", columns.join(", "), table.quoted(), quoted(id))
            }
            Self::Query(query) => with_id(query, by),
        }
    }
}

/// Whether a query can be asked for the mail of one row.
pub fn check_query(query: &str) -> Result<&str, String> {
    if with_id(query, "") == query {
        return Err(format!("must have {ID} in the place of the row's id"));
    }
    match query.contains([';', '\0']) {
        true => Err("must be one statement, without a semicolon".to_owned()),
        false => Ok(query),
    }
}

/// A query with something in the place of its id. `::id` and `:identity` are somebody else's.
fn with_id(query: &str, by: &str) -> String {
    let mut filled = String::with_capacity(query.len());
    let mut rest = query;
    while let Some(at) = rest.find(ID) {
        let (before, after) = (&rest[..at], &rest[at + ID.len()..]);
        let is_whole =
            !before.ends_with(':') && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        filled.push_str(before);
        filled.push_str(if is_whole { by } else { ID });
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The mail that these fields make; what its try comes to if they make none.
pub(crate) fn content(fields: Option<&Fields>) -> Result<Content, Outcome> {
    let refused = |why: String| Outcome::Refused(Failure::new(why).with_code("INVALID_MAIL"));
    let Some(fields) = fields else {
        // It may come a moment later than its row.
        return Err(Outcome::Failed(Failure::new("there is no mail for this row").with_code("NO_MAIL")));
    };
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.map(|(_, text)| text.clone()).filter(|text| !text.is_empty())
    };
    let mailbox = |name: &str, text: String| {
        Mailbox::parse(&text).map_err(|wrong| refused(format!("{name} cannot be used: {wrong}")))
    };
    let to = field("to").ok_or_else(|| refused("the mail has no address".to_owned()))?;
    let mut to = mailbox("to", to)?;
    to.name = field("to_name").or(to.name);
    let from = field("from").map(|text| mailbox("from", text)).transpose()?;
    let email = Email {
        from,
        to: vec![to],
        subject: field("subject").unwrap_or_default(),
        text: field("text"),
        html: field("html"),
        ..Email::default()
    };
    if let Some(found) = email.problems().first() {
        return Err(refused(format!("{} {}", found.field, found.problem)));
    }
    email.to_content().map_err(|wrong| refused(format!("the mail cannot be written down: {wrong}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_mail_is_asked_for_by_the_id_of_its_row() {
        let table = TableName { schema: None, table: "EmailLog".to_owned() };
        let columns =
            MailColumns { to: "To\"x".to_owned(), html: Some("Html".to_owned()), ..MailColumns::default() };
        assert_eq!(
            MailSource::Columns(columns).question(&table, "EmailId", "$1"),
            "SELECT \"To\"\"x\" AS \"to\", \"Html\" AS \"html\" FROM \"EmailLog\" WHERE \"EmailId\" = $1"
        );
        let query = MailSource::Query(
            "SELECT a AS \"to\" FROM m WHERE x = :id AND y::id = 1 AND z = :idle".to_owned(),
        );
        assert_eq!(
            query.question(&table, "EmailId", "?1"),
            "SELECT a AS \"to\" FROM m WHERE x = ?1 AND y::id = 1 AND z = :idle"
        );
    }

    #[test]
    fn a_query_is_one_statement_about_one_row() {
        assert!(check_query("SELECT 1 WHERE 1 = :id").is_ok());
        for query in ["", "SELECT 1", "SELECT x::id", "SELECT :id; DROP TABLE x"] {
            assert!(check_query(query).is_err(), "{query}");
        }
    }

    #[test]
    fn fields_make_a_mail_to_one_address() {
        let found =
            fields(&[("to", "ada@example.org"), ("to_name", "Ada"), ("subject", "Hi"), ("text", "Hello")]);
        let email = Email::of_content(&content(Some(&found)).unwrap()).unwrap().unwrap();
        assert_eq!(
            (email.to[0].address.as_str(), email.to[0].name.as_deref()),
            ("ada@example.org", Some("Ada"))
        );
        assert_eq!((email.subject.as_str(), email.text.as_deref(), email.html), ("Hi", Some("Hello"), None));
    }

    #[test]
    fn what_can_never_be_sent_is_refused_and_what_is_not_there_yet_is_tried_again() {
        assert!(matches!(content(None), Err(Outcome::Failed(_))));
        for pairs in [
            &[("subject", "Hi"), ("text", "Hello")][..],
            &[("to", "nobody"), ("text", "Hello")],
            &[("to", "a@example.org, b@example.org"), ("text", "Hello")],
            &[("to", "a@example.org"), ("subject", "Hi\r\nBcc: x@example.org"), ("text", "Hello")],
        ] {
            assert!(matches!(content(Some(&fields(pairs))), Err(Outcome::Refused(_))), "{pairs:?}");
        }
    }
}
