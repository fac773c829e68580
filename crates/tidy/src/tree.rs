//! The files of the repository, as the rules see them.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// What is built, fetched or git's own.
const SKIPPED: [&str; 4] = [".git", "target", ".build", "node_modules"];

/// Files by their path from the root, with `/` between the parts.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// All text files, sorted by path.
    pub files: Vec<File>,
    /// The paths of all other files, such as pictures.
    pub others: Vec<String>,
}

/// One text file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path from the root.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offence {
    /// In which file.
    pub path: String,
    /// In which line, counted from 1; 0 where it is the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Tree {
    /// Reads everything under a directory. A file that isn't UTF-8 is known by its path only.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        collect(root, "", &mut tree)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// A tree of these files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        Self { files: files.iter().map(file).collect(), others: Vec::new() }
    }

    /// The file at this path.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Files whose name ends like this.
    pub fn ending(&self, end: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.path.ends_with(end))
    }

    /// Whether something is at this path: a file, or a directory with files in it.
    pub fn has(&self, path: &str) -> bool {
        let inside = format!("{}/", path.trim_end_matches('/'));
        let mut paths = self.files.iter().map(|file| &file.path).chain(&self.others);
        path.is_empty() || paths.any(|known| known == path || known.starts_with(&inside))
    }
}

impl File {
    /// Its lines with their numbers, counted from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// A breach in one of its lines.
    pub fn offence(&self, line: usize, what: impl Into<String>) -> Offence {
        Offence { path: self.path.clone(), line, what: what.into() }
    }

    /// A breach in every line that this finds something wrong with.
    pub fn offences<'a>(
        &'a self,
        wrong: impl Fn(&str) -> Option<String> + 'a,
    ) -> impl Iterator<Item = Offence> + 'a {
        self.lines().filter_map(move |(number, line)| Some(self.offence(number, wrong(line)?)))
    }

    /// Its name without the directories.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it serves tests only.
    pub fn is_test(&self) -> bool {
        ["/tests/", "/examples/", "/benches/"].iter().any(|part| self.path.contains(part))
            || ["tests/", "examples/"].iter().any(|place| self.path.starts_with(place))
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

fn collect(directory: &Path, prefix: &str, tree: &mut Tree) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // In a second working tree, .git is a file.
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), tree)?;
        } else if kind.is_file() {
            match String::from_utf8(fs::read(entry.path())?) {
                Ok(text) => tree.files.push(File { path, text }),
                Err(_) => tree.others.push(path),
            }
        }
    }
    Ok(())
}
