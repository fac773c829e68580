//! `redeliver keys`: makes, lists and revokes keys in the store itself, beside a server that may be running on it.

use std::sync::Arc;

use anyhow::bail;
use redeliver_core::Timestamp;
use redeliver_core::change::Audit;
use redeliver_engine::access::{Access, KeyRecord, Role};
use redeliver_engine::clock::Clock;
use redeliver_server::api::keys::{KeyView, MadeKey};
use redeliver_server::auth::secret::{NewKey, check_name};

use super::show::table;
use super::{load_config, print, print_json};
use crate::args::{ConfigArgs, KeysCommand};
use crate::config::StoreUrl;
use crate::exit::Usage;
use crate::reach;
use crate::wire::wire_access;

/// Who did it, as far as the audit can know.
const ACTOR: &str = "command line";

pub(super) fn run(command: &KeysCommand) -> anyhow::Result<()> {
    reach::run(async {
        match command {
            KeysCommand::Create { name, role, workspace, config, json } => {
                let role =
                    Role::from_name(role).ok_or_else(|| Usage(format!("there is no role {role:?}")))?;
                create(&Keys::open(config).await?, name, role, workspace.as_deref(), *json).await
            }
            KeysCommand::List { config, json } => list(&Keys::open(config).await?, *json).await,
            KeysCommand::Revoke { id, config } => revoke(&Keys::open(config).await?, id).await,
        }
    })
}

/// What a store knows of keys, beside whoever works on it.
struct Keys {
    access: Arc<dyn Access>,
    clock: Arc<dyn Clock>,
}

impl Keys {
    async fn open(args: &ConfigArgs) -> anyhow::Result<Self> {
        let store = load_config(args)?.config.store;
        if store.url == StoreUrl::Memory {
            bail!(
                "keys in memory: are only reached through the server that has them: \
                 start it with REDELIVER_ADMIN_KEY, and ask it with that key (POST /v1/keys)"
            );
        }
        let (access, clock) = wire_access(&store).await?;
        Ok(Self { access, clock })
    }
}

async fn create(
    keys: &Keys,
    name: &str,
    role: Role,
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
    let now = keys.clock.now();
    let NewKey { text, record } = NewKey::make(name, role, workspace, now)?;
    let view = KeyView::of(&record);
    if !keys.access.add_key(record, deed("create_key", &view.id, now)).await? {
        bail!("a key with the id {} is there already: try again", view.id);
    }
    match json {
        true => print_json(&MadeKey { view, key: text }),
        false => print(&format!("{text}\n")),
    }
}

async fn list(keys: &Keys, json: bool) -> anyhow::Result<()> {
    let keys = keys.access.keys().await?;
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

async fn revoke(keys: &Keys, id: &str) -> anyhow::Result<()> {
    if !keys.access.revoke_key(id, deed("revoke_key", id, keys.clock.now())).await? {
        bail!("there is no key {id:?}, or it is revoked already: `redeliver keys list` has them");
    }
    print(&format!("revoked {id}\n"))
}

fn deed(action: &'static str, subject: &str, at: Timestamp) -> Audit {
    Audit { actor: ACTOR.into(), action, subject: subject.into(), at, detail: None }
}
