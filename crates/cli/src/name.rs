//! What this process is called.

/// Where this process runs, as people know it.
pub(crate) fn instance_name() -> String {
    let said = std::env::var("HOSTNAME").ok();
    let read = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = said.filter(|name| !name.trim().is_empty()).or_else(read).unwrap_or_default();
    let host = if host.trim().is_empty() { "this machine" } else { host.trim() };
    format!("{host}, process {}", std::process::id())
}
