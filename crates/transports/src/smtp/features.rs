//! What a server can do, as it says in its answer to EHLO.

use super::mime::Written;
use super::reply::Reply;

/// The extensions that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) starttls: bool,
    pub(super) auth_plain: bool,
    pub(super) auth_login: bool,
    size: bool,
    eight_bit: bool,
    smtputf8: bool,
}

impl Features {
    pub(super) fn of(reply: &Reply) -> Self {
        let mut features = Self::default();
        for line in reply.lines.iter().skip(1) {
            // Some old servers write AUTH=LOGIN.
            let line = line.to_ascii_uppercase().replace('=', " ");
            let mut words = line.split_whitespace();
            match words.next() {
                Some("STARTTLS") => features.starttls = true,
                Some("SIZE") => features.size = true,
                Some("8BITMIME") => features.eight_bit = true,
                Some("SMTPUTF8") => features.smtputf8 = true,
                Some("AUTH") => {
                    for mechanism in words {
                        features.auth_plain |= mechanism == "PLAIN";
                        features.auth_login |= mechanism == "LOGIN";
                    }
                }
                _ => {}
            }
        }
        features
    }

    /// What stands behind the sender of a mail; `None` if the server can't take it at all.
    pub(super) fn mail_parameters(&self, mail: &Written) -> Option<String> {
        let mut parameters = String::new();
        if self.size {
            parameters.push_str(&format!(" SIZE={}", mail.bytes.len()));
        }
        if !mail.bytes.is_ascii() && self.eight_bit {
            parameters.push_str(" BODY=8BITMIME");
        }
        if mail.needs_smtputf8 {
            if !self.smtputf8 {
                return None;
            }
            parameters.push_str(" SMTPUTF8");
        }
        Some(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sent_only_where_they_are_needed_and_offered() {
        let of = |lines: &[&str]| Features::of(&Reply::parse(lines.iter().copied()).unwrap());
        let all = of(&[
            "250-mx",
            "250-size 1000",
            "250-8BITMIME",
            "250-AUTH=LOGIN",
            "250-auth PLAIN X",
            "250 SMTPUTF8",
        ]);
        assert!(all.auth_plain && all.auth_login && !all.starttls);
        assert_eq!(of(&["250 STARTTLS"]), Features::default(), "the first line is a name");
        let mail = |text: &str, needs_smtputf8| Written {
            from: "a@b".to_owned(),
            to: vec![],
            bytes: text.into(),
            needs_smtputf8,
        };
        assert_eq!(all.mail_parameters(&mail("x", false)).unwrap(), " SIZE=1");
        assert_eq!(all.mail_parameters(&mail("é", true)).unwrap(), " SIZE=2 BODY=8BITMIME SMTPUTF8");
        assert_eq!(Features::default().mail_parameters(&mail("x", false)).unwrap(), "");
        assert_eq!(Features::default().mail_parameters(&mail("é", true)), None);
    }
}
