//! Takes the dots out of a mail that SMTP put in, and finds the one that ends it.

/// Reads the content of a mail as it comes, in whatever pieces.
#[derive(Debug)]
pub(crate) struct Dots {
    at: At,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum At {
    LineStart,
    Middle,
    Cr,
    /// After a dot that began a line; it may end the mail, or one was put before it.
    Dot,
    DotCr,
}

impl Dots {
    pub fn new() -> Self {
        Self { at: At::LineStart }
    }

    /// Reads a piece into `mail`, and gives how much of it was read if the mail ended in it. Only a dot between two
    /// whole line ends does that: whoever is content with less can be made to see mails that nobody sent.
    pub fn read(&mut self, piece: &[u8], mail: &mut Vec<u8>) -> Option<usize> {
        for (index, &byte) in piece.iter().enumerate() {
            self.at = match (self.at, byte) {
                (At::LineStart, b'.') => {
                    self.at = At::Dot;
                    continue;
                }
                (At::Dot, b'\r') => {
                    self.at = At::DotCr;
                    continue;
                }
                (At::DotCr, b'\n') => {
                    self.at = At::LineStart;
                    return Some(index + 1);
                }
                (At::DotCr, byte) => {
                    mail.push(b'\r');
                    if byte == b'\r' { At::Cr } else { At::Middle }
                }
                (At::Cr, b'\n') => At::LineStart,
                (At::LineStart | At::Middle | At::Cr, b'\r') => At::Cr,
                (At::LineStart | At::Middle | At::Cr | At::Dot, _) => At::Middle,
            };
            mail.push(byte);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_what_was_meant_however_it_is_cut_into_pieces() {
        let check = |sent: &str, meant: &str, rest: &str| {
            for size in 1..=sent.len() {
                let (mut dots, mut mail, mut end) = (Dots::new(), Vec::new(), None);
                for (index, piece) in sent.as_bytes().chunks(size).enumerate() {
                    if let Some(read) = dots.read(piece, &mut mail) {
                        end = Some(index * size + read);
                        break;
                    }
                }
                assert_eq!(String::from_utf8(mail).unwrap(), meant, "{sent:?} by {size}");
                assert_eq!(end, Some(sent.len() - rest.len()), "{sent:?} by {size}");
            }
        };
        check(".\r\n", "", "");
        check("a\r\n.\r\n", "a\r\n", "");
        check("a\r\n.\r\nQUIT\r\n", "a\r\n", "QUIT\r\n");
        check("..\r\n.\r\n", ".\r\n", "");
        check("..a\r\n...\r\n.\r\n", ".a\r\n..\r\n", "");
        check("\r\n\r\n.\r\n", "\r\n\r\n", "");
        check("a.\r\n.b\r\n.\r\n", "a.\r\nb\r\n", "");
        check("a\n.\nb\r\n.\r\n", "a\n.\nb\r\n", "");
        check("a\r\n.\rb\r\n.\r\n", "a\r\n\rb\r\n", "");
        check("a\r\n.\r\r\n.\r\n", "a\r\n\r\r\n", "");
        check("a\n.\r\nb\r\n.\r\n", "a\n.\r\nb\r\n", "");
    }
}
