//! The directory in which mails are kept: `000001.eml` is the mail, `000001.json` one line about it.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::mail::{Listed, Mail};

pub(crate) struct Keep {
    directory: PathBuf,
}

impl Keep {
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&directory).map_err(|error| about(&directory, "create", error))?;
        Ok(Self { directory })
    }

    /// All that are there, oldest first. Files that are called otherwise are somebody else's.
    pub fn read(&self) -> io::Result<Vec<Mail>> {
        let mut numbers: Vec<u64> = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(|error| about(&self.directory, "read", error))? {
            let name = entry?.file_name();
            let stem =
                name.to_str().and_then(|name| name.strip_suffix(".json")).filter(|stem| stem.len() >= 6);
            numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        numbers.into_iter().map(|number| self.read_one(number)).collect()
    }

    fn read_one(&self, number: u64) -> io::Result<Mail> {
        let (about_it, mail) = (self.path(number, "json"), self.path(number, "eml"));
        let text = fs::read_to_string(&about_it).map_err(|error| about(&about_it, "read", error))?;
        let listed: Listed =
            serde_json::from_str(&text).map_err(|error| about(&about_it, "read", io::Error::other(error)))?;
        let data = fs::read(&mail).map_err(|error| about(&mail, "read", error))?;
        Ok(Listed { number, ..listed }.with_data(data))
    }

    /// Writes both; the line comes last, so that whoever finds it finds the mail as well.
    pub fn write(&self, mail: &Mail) -> io::Result<()> {
        let path = self.path(mail.number, "eml");
        fs::write(&path, &mail.data).map_err(|error| about(&path, "write", error))?;
        self.write_listed(&mail.listed())
    }

    pub fn write_listed(&self, listed: &Listed) -> io::Result<()> {
        let path = self.path(listed.number, "json");
        let line = format!("{}\n", serde_json::to_string(listed)?);
        fs::write(&path, line).map_err(|error| about(&path, "write", error))
    }

    /// Removes both. What can't be removed is found again at the next start, and dropped again then.
    pub fn remove(&self, number: u64) {
        let _ = fs::remove_file(self.path(number, "json"));
        let _ = fs::remove_file(self.path(number, "eml"));
    }

    fn path(&self, number: u64, ending: &str) -> PathBuf {
        self.directory.join(format!("{number:06}.{ending}"))
    }
}

fn about(path: &std::path::Path, what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {}: {error}", path.display()))
}
