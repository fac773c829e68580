//! `redeliver keys`: makes, lists and revokes keys in the store itself, beside a server that may be running on it.

use anyhow::{anyhow, bail};
use redeliver_core::Timestamp;
use redeliver_core::change::Audit;
use redeliver_engine::access::{Access, KeyRecord, Role};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_server::api::keys::{KeyView, MadeKey};
use redeliver_server::auth::secret::{NewKey, check_name};
use redeliver_stores::{OpenOptions, Role as Opened, SyncSqlite};

use super::show::table;
use super::{load_config, print, print_json};
use crate::args::{ConfigArgs, KeysCommand};
use crate::config::StoreUrl;
use crate::exit::Usage;

/// Who did it, as far as the audit can know.
const ACTOR: &str = "command line";

pub(super) fn run(command: &KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::Create { name, role, workspace, config, json } => {
            create(&open(config)?, name, role, workspace.as_deref(), *json)
        }
        KeysCommand::List { config, json } => list(&open(config)?, *json),
        KeysCommand::Revoke { id, config } => revoke(&open(config)?, id),
    }
}

/// The store, beside whoever works on it.
fn open(args: &ConfigArgs) -> anyhow::Result<SyncSqlite> {
    match load_config(args)?.config.store.url {
        StoreUrl::Memory => bail!(
            "keys in memory: are only reached through the server that has them: \
             start it with REDELIVER_ADMIN_KEY, and ask it with that key (POST /v1/keys)"
        ),
        StoreUrl::Sqlite(path) => {
            Ok(SyncSqlite::open(path, OpenOptions { role: Opened::Client, ..OpenOptions::default() })?)
        }
    }
}

fn create(
    store: &SyncSqlite,
    name: &str,
    role: &str,
    workspace: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    check_name(name).map_err(|wrong| Usage(format!("a key's name {wrong}")))?;
    let workspace = match workspace {
        Some(name) => {
            let wrong = |wrong| Usage(format!("a workspace's name {wrong}"));
            redeliver_server::api::messages::check_workspace(name).map_err(wrong)?;
            Some(name.into())
        }
        None => None,
    };
    let role = Role::from_name(role).ok_or_else(|| Usage(format!("there is no role {role:?}")))?;
    let now = now(store);
    let NewKey { text, record } = NewKey::make(name, role, workspace, now)?;
    let view = KeyView::of(&record);
    if !wait(store.add_key(record, deed("create_key", &view.id, now)))? {
        bail!("a key with the id {} is there already: try again", view.id);
    }
    match json {
        true => print_json(&MadeKey { view, key: text }),
        false => print(&format!("{text}\n")),
    }
}

fn list(store: &SyncSqlite, json: bool) -> anyhow::Result<()> {
    let keys = wait(store.keys())?;
    if json {
        return print_json(&keys.iter().map(KeyView::of).collect::<Vec<_>>());
    }
    if keys.is_empty() {
        return print("there are no keys: `redeliver keys create --name NAME --role ROLE` makes one\n");
    }
    let row = |key: &KeyRecord| {
        vec![
            key.id.to_string(),
            key.name.to_string(),
            key.role.name().to_owned(),
            key.workspace.as_deref().unwrap_or("(all)").to_owned(),
            key.created_at.to_string(),
            key.revoked_at.map_or_else(|| "-".to_owned(), |at| at.to_string()),
        ]
    };
    let header = ["id", "name", "role", "workspace", "created", "revoked"];
    print(&table(&header, &[], keys.iter().map(row).collect()))
}

fn revoke(store: &SyncSqlite, id: &str) -> anyhow::Result<()> {
    if !wait(store.revoke_key(id, deed("revoke_key", id, now(store))))? {
        bail!("there is no key {id:?}, or it is revoked already: `redeliver keys list` has them");
    }
    print(&format!("revoked {id}\n"))
}

fn now(store: &SyncSqlite) -> Timestamp {
    WallClock::new(store.last_time().unwrap_or_default()).now()
}

fn deed(action: &'static str, subject: &str, at: Timestamp) -> Audit {
    Audit { actor: ACTOR.into(), action, subject: subject.into(), at }
}

/// Waits for a store that does everything where it is called.
fn wait<T, E: std::error::Error + Send + Sync + 'static>(
    call: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.map_err(|error| anyhow!("cannot wait for the store: {error}"))?.block_on(call).map_err(Into::into)
}
