//! Who may do what: one line for each route. Each role may also do what those before it may.

use axum::http::Method;
use redeliver_engine::access::Role;

/// What a route asks of whoever comes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nobody,
    /// Nothing, once there is a key at all.
    AnyKeyToExist,
    /// This role, or one that may do more.
    AtLeast(Role),
}

use Need::{AnyKeyToExist, AtLeast, Nobody};
use Role::{Admin, Operator, Sender, Viewer};

/// The table.
pub const RIGHTS: &[(&str, &str, Need)] = &[
    ("GET", "/healthz", Nobody),
    ("GET", "/readyz", Nobody),
    ("GET", "/metrics", Nobody),
    ("GET", "/openapi.json", AnyKeyToExist),
    ("GET", "/v1/messages", AtLeast(Viewer)),
    ("POST", "/v1/messages", AtLeast(Sender)),
    ("GET", "/v1/messages/{id}", AtLeast(Viewer)),
    ("GET", "/v1/messages/{id}/attempts", AtLeast(Viewer)),
    ("GET", "/v1/messages/{id}/explain", AtLeast(Viewer)),
    ("POST", "/v1/messages/{id}/retry", AtLeast(Operator)),
    ("POST", "/v1/messages/{id}/cancel", AtLeast(Operator)),
    ("POST", "/v1/messages/{id}/dismiss", AtLeast(Operator)),
    ("POST", "/v1/messages/{id}/restore", AtLeast(Operator)),
    ("POST", "/v1/messages/{id}/edit", AtLeast(Operator)),
    ("GET", "/v1/messages/{id}/edits", AtLeast(Viewer)),
    ("POST", "/v1/messages/{id}/report", AtLeast(Operator)),
    ("GET", "/v1/routes", AtLeast(Viewer)),
    ("POST", "/v1/routes/{name}/pause", AtLeast(Operator)),
    ("POST", "/v1/routes/{name}/resume", AtLeast(Operator)),
    ("GET", "/v1/destinations", AtLeast(Viewer)),
    ("POST", "/v1/destinations/{destination}/pause", AtLeast(Operator)),
    ("POST", "/v1/destinations/{destination}/resume", AtLeast(Operator)),
    ("GET", "/v1/campaigns", AtLeast(Viewer)),
    ("POST", "/v1/campaigns", AtLeast(Operator)),
    ("GET", "/v1/campaigns/{campaign}", AtLeast(Viewer)),
    ("POST", "/v1/campaigns/{campaign}/prospects", AtLeast(Operator)),
    ("GET", "/v1/campaigns/{campaign}/prospects/{prospect}", AtLeast(Viewer)),
    ("POST", "/v1/campaigns/{campaign}/prospects/{prospect}/pause", AtLeast(Operator)),
    ("POST", "/v1/campaigns/{campaign}/prospects/{prospect}/resume", AtLeast(Operator)),
    ("POST", "/v1/campaigns/{campaign}/prospects/{prospect}/stop", AtLeast(Operator)),
    ("GET", "/v1/campaigns/{campaign}/forecast", AtLeast(Viewer)),
    ("GET", "/v1/campaigns/{campaign}/days", AtLeast(Viewer)),
    ("POST", "/v1/campaigns/{campaign}/launch", AtLeast(Operator)),
    ("POST", "/v1/campaigns/{campaign}/pause", AtLeast(Operator)),
    ("POST", "/v1/campaigns/{campaign}/resume", AtLeast(Operator)),
    ("POST", "/v1/campaigns/{campaign}/cancel", AtLeast(Operator)),
    ("GET", "/v1/campaigns/{campaign}/schedule", AtLeast(Viewer)),
    ("GET", "/api/campaigns/{campaign}/schedule", AtLeast(Viewer)),
    ("POST", "/api/campaigns/{campaign}/schedule", AtLeast(Operator)),
    ("GET", "/v1/workspaces/{workspace}/settings", AtLeast(Viewer)),
    ("PUT", "/v1/workspaces/{workspace}/settings", AtLeast(Operator)),
    ("GET", "/v1/quotas", AtLeast(Viewer)),
    ("GET", "/v1/suppressions", AtLeast(Viewer)),
    ("POST", "/v1/suppressions", AtLeast(Operator)),
    ("DELETE", "/v1/suppressions/{address}", AtLeast(Operator)),
    ("GET", "/v1/senders", AtLeast(Viewer)),
    ("POST", "/v1/senders/{sender}/pause", AtLeast(Operator)),
    ("POST", "/v1/senders/{sender}/resume", AtLeast(Operator)),
    ("GET", "/v1/stats", AtLeast(Viewer)),
    ("GET", "/v1/stats/minutes", AtLeast(Viewer)),
    ("GET", "/v1/instances", AtLeast(Viewer)),
    ("GET", "/v1/dead-letters/groups", AtLeast(Viewer)),
    ("GET", "/v1/bulk", AtLeast(Viewer)),
    ("POST", "/v1/bulk", AtLeast(Operator)),
    ("GET", "/v1/bulk/{bulk}", AtLeast(Viewer)),
    ("POST", "/v1/bulk/{bulk}/pause", AtLeast(Operator)),
    ("POST", "/v1/bulk/{bulk}/resume", AtLeast(Operator)),
    ("POST", "/v1/bulk/{bulk}/stop", AtLeast(Operator)),
    ("GET", "/v1/audit", AtLeast(Viewer)),
    ("GET", "/v1/keys", AtLeast(Admin)),
    ("POST", "/v1/keys", AtLeast(Admin)),
    ("DELETE", "/v1/keys/{id}", AtLeast(Admin)),
    ("GET", "/api/admin/outbox", AtLeast(Viewer)),
    ("POST", "/api/admin/outbox/{id}/retry", AtLeast(Operator)),
    ("DELETE", "/api/admin/outbox/{id}", AtLeast(Operator)),
    ("GET", "/api/admin/dashboard", AtLeast(Viewer)),
];

/// What a route needs; `None` if the table doesn't have it.
pub fn need(method: &Method, path: &str) -> Option<Need> {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    RIGHTS.iter().find(|(known, route, _)| *known == method && *route == path).map(|(_, _, need)| *need)
}
