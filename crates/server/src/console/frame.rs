//! What surrounds every page: the navigation, who is logged in, what was just done, what to be warned of.

use redeliver_engine::access::Role;

use super::emails::visible;
use super::flash::Flash;
use super::guard::Visitor;
use super::{Console, link};
use crate::Durability;

/// A page of the navigation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Queue,
    Messages,
    Dead,
    Bulk,
    Campaigns,
    Routes,
    Audit,
    Keys,
    /// None of them.
    Elsewhere,
}

/// The navigation, and the role that each page takes. A page that comes new adds its line.
pub(super) const PAGES: [(Place, &str, &str, Role); 9] = [
    (Place::Overview, link::OVERVIEW, "Overview", Role::Viewer),
    (Place::Queue, link::QUEUE, "E-mail queue", Role::Viewer),
    (Place::Messages, link::MESSAGES, "Messages", Role::Viewer),
    (Place::Dead, link::DEAD, "Dead letters", Role::Viewer),
    (Place::Bulk, link::BULK, "Bulk", Role::Viewer),
    (Place::Campaigns, link::CAMPAIGNS, "Campaigns", Role::Viewer),
    (Place::Routes, link::ROUTES, "Routes", Role::Viewer),
    (Place::Audit, link::AUDIT, "Audit", Role::Viewer),
    (Place::Keys, link::KEYS, "Keys", Role::Admin),
];

/// One entry of the navigation.
pub(super) struct Entry {
    pub(super) href: &'static str,
    pub(super) name: &'static str,
    pub(super) is_here: bool,
}

/// Who is logged in.
pub(super) struct Who {
    pub(super) name: String,
    pub(super) role: &'static str,
    pub(super) workspace: Option<String>,
    pub(super) csrf: String,
}

/// What surrounds a page.
pub(super) struct Frame {
    /// The time by the server's clock, for whoever counts down.
    pub(super) now: Option<String>,
    pub(super) who: Option<Who>,
    pub(super) entries: Vec<Entry>,
    pub(super) flash: Option<Flash>,
    pub(super) warning: Option<&'static str>,
}

impl Frame {
    /// The frame of nobody's page.
    pub(super) fn bare() -> Self {
        Self { now: None, who: None, entries: Vec::new(), flash: None, warning: None }
    }

    /// The frame of a page at this place for this visitor.
    pub(super) fn around(console: &Console, visitor: &Visitor, place: Place) -> Self {
        let caller = &visitor.caller;
        let seen = PAGES.into_iter().filter(|(_, _, _, least)| caller.role >= *least);
        let entry = |(at, href, name, _)| Entry { href, name, is_here: at == place };
        Self {
            now: Some(console.server.engine.clock().now().to_string()),
            who: Some(Who {
                name: visible(&caller.name),
                role: caller.role.name(),
                workspace: caller.workspace.as_deref().map(visible),
                csrf: visitor.csrf.clone(),
            }),
            entries: seen.map(entry).collect(),
            flash: visitor.flash.clone(),
            warning: warning(console.server.durability),
        }
    }
}

fn warning(durability: Durability) -> Option<&'static str> {
    match durability {
        Durability::Full => None,
        Durability::Relaxed => Some("Durability is relaxed: a power cut can lose accepted messages."),
        Durability::Memory => Some("The store is in memory: everything is lost when the server stops."),
    }
}
