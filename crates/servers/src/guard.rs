//! Keeps a server from outliving whoever needs it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for a word, then ends the server. Where whoever would say one is gone, nobody else will clear up after it.
/// `$1` is the signal that ends the server, `$2` its directory.
const SCRIPT: &str = r#"
signal=$1
directory=$2
shift 2
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(
    read -r word <&3 || : >"$directory/abandoned"
    kill "-$signal" "$server" 2>/dev/null
) &
listener=$!
wait "$server"
kill "$listener" 2>/dev/null
[ ! -e "$directory/abandoned" ] || rm -rf "$directory"
"#;

/// A server that runs, and the shell that ends it when this process is gone.
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    /// Starts a server whose words go to the file `log` in its directory. It ends by this signal.
    pub(crate) fn start(command: &[String], signal: &str, directory: &Path) -> Self {
        let log = File::create(directory.join("log")).expect("the server's directory can be written");
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "guard", signal]).arg(directory).args(command);
        shell.stdin(Stdio::piped()).stdout(log.try_clone().expect("a file can be held twice")).stderr(log);
        Self { shell: shell.spawn().expect("there is a shell") }
    }

    /// Whether the server still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.shell.try_wait().is_ok_and(|ended| ended.is_none())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut words) = self.shell.stdin.take() {
            // One that has ended already hears nothing.
            let _ = words.write_all(b"end\n");
        }
        let _ = self.shell.wait();
    }
}

/// The same command as another user, where this one is root: some servers refuse to run as root.
pub(crate) fn as_user(user: &str, command: Vec<String>) -> Vec<String> {
    if !is_root() {
        return command;
    }
    let ids = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()];
    ["setpriv".to_owned()].into_iter().chain(ids).chain(command).collect()
}

/// Gives a directory to a user, where this one is root.
pub(crate) fn give(directory: &Path, user: &str) {
    if is_root() {
        let status = Command::new("chown").arg(user).arg(directory).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot give {directory:?} to {user}");
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("there is a shell with id");
    id.stdout.trim_ascii() == b"0"
}
