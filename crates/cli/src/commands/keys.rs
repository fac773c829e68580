//! `redeliver keys`: makes, lists and revokes keys by a server, or in the store itself, beside a server that may be
//! running on it.

use std::sync::Arc;

use anyhow::bail;
use redeliver_core::Timestamp;
use redeliver_core::change::Audit;
use redeliver_engine::access::{Access, Role};
use redeliver_engine::clock::Clock;
use redeliver_server::api::keys::{KeyView, MadeKey};
use redeliver_server::auth::secret::{NewKey, check_name};
use serde_json::{Value, json};

use super::show::table;
use super::{load_config, load_config_if_any, print, print_json};
use crate::args::{KeysCommand, ReachArgs};
use crate::config::StoreUrl;
use crate::exit::Usage;
use crate::reach::{self, Missing, Reach, Request, segment};
use crate::wire::wire_access;

/// Who did it, as far as the audit can know.
const ACTOR: &str = "command line";

pub(super) fn run(command: &KeysCommand) -> anyhow::Result<()> {
    reach::run(async {
        match command {
            KeysCommand::Create { name, role, workspace, reach, json } => {
                let made = Keys::open(reach).await?.create(name, role, workspace.as_deref()).await?;
                match json {
                    true => print_json(&made),
                    false => print(&format!("{}\n", word(&made, "key"))),
                }
            }
            KeysCommand::List { reach, json } => show(Keys::open(reach).await?.list().await?, *json),
            KeysCommand::Revoke { id, reach } => {
                Keys::open(reach).await?.revoke(id).await?;
                print(&format!("revoked {id}\n"))
            }
        }
    })
}

/// Where keys are kept.
enum Keys {
    /// With a server.
    Served(Reach),
    /// In a store, beside whoever works on it. That needs no key, and is how the first one is made.
    Here { access: Arc<dyn Access>, clock: Arc<dyn Clock> },
}

impl Keys {
    async fn open(args: &ReachArgs) -> anyhow::Result<Self> {
        if reach::server(args).is_some() {
            return Ok(Self::Served(Reach::open(args, Missing::Refuse).await?));
        }
        let mut store = match args.store {
            Some(_) => load_config_if_any(&args.config)?,
            None => load_config(&args.config)?,
        }
        .config
        .store;
        if let Some(url) = &args.store {
            store.url = url.clone();
        }
        if store.url == StoreUrl::Memory {
            bail!(
                "keys in memory: are only reached through the server that has them: \
                 start it with REDELIVER_ADMIN_KEY, and give its --url with that key in REDELIVER_KEY"
            );
        }
        let (access, clock) = wire_access(&store).await?;
        Ok(Self::Here { access, clock })
    }

    /// Makes a key: what is kept of it, and its text, which is told this once.
    async fn create(&self, name: &str, role: &str, workspace: Option<&str>) -> anyhow::Result<Value> {
        let (access, clock) = match self {
            Self::Served(reach) => {
                let mut wanted = json!({ "name": name, "role": role });
                if let Some(workspace) = workspace {
                    wanted["workspace"] = workspace.into();
                }
                return reach.json(Request::post("/v1/keys").json(&wanted)).await;
            }
            Self::Here { access, clock } => (access, clock),
        };
        let role = Role::from_name(role).ok_or_else(|| Usage(format!("there is no role {role:?}")))?;
        check_name(name).map_err(|wrong| Usage(format!("a key's name {wrong}")))?;
        if let Some(name) = workspace {
            let wrong = |wrong| Usage(format!("a workspace's name {wrong}"));
            redeliver_server::api::messages::check_workspace(name).map_err(wrong)?;
        }
        let now = clock.now();
        let NewKey { text, record } = NewKey::make(name, role, workspace.map(Into::into), now)?;
        let view = KeyView::of(&record);
        if !access.add_key(record, deed("create_key", &view.id, now)).await? {
            bail!("a key with the id {} is there already: try again", view.id);
        }
        Ok(serde_json::to_value(MadeKey { view, key: text })?)
    }

    /// All keys, oldest first.
    async fn list(&self) -> anyhow::Result<Vec<Value>> {
        match self {
            Self::Served(reach) => {
                let mut told = reach.json(Request::get("/v1/keys")).await?;
                Ok(told["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
            }
            Self::Here { access, .. } => {
                let keys = access.keys().await?;
                Ok(keys.iter().map(|key| serde_json::to_value(KeyView::of(key))).collect::<Result<_, _>>()?)
            }
        }
    }

    async fn revoke(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Self::Served(reach) => {
                let request = Request::delete(format!("/v1/keys/{}", segment(id)));
                Ok(reach.call(request).await?.done()?)
            }
            Self::Here { access, clock } => {
                if !access.revoke_key(id, deed("revoke_key", id, clock.now())).await? {
                    bail!("there is no key {id:?}, or it is revoked already: `redeliver keys list` has them");
                }
                Ok(())
            }
        }
    }
}

fn show(keys: Vec<Value>, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&keys);
    }
    if keys.is_empty() {
        return print("there are no keys: `redeliver keys create --name NAME --role ROLE` makes one\n");
    }
    let row = |key: &Value| {
        let or = |name: &str, otherwise: &str| match word(key, name) {
            said if said.is_empty() => otherwise.to_owned(),
            said => said,
        };
        vec![
            word(key, "id"),
            word(key, "name"),
            word(key, "role"),
            or("workspace", "(all)"),
            word(key, "created_at"),
            or("revoked_at", "-"),
        ]
    };
    let header = ["id", "name", "role", "workspace", "created", "revoked"];
    print(&table(&header, &[], keys.iter().map(row).collect()))
}

/// What a field says; nothing if it says nothing.
fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn deed(action: &'static str, subject: &str, at: Timestamp) -> Audit {
    Audit { actor: ACTOR.into(), action, subject: subject.into(), at, detail: None }
}
