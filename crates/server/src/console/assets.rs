//! What pages are drawn with: one stylesheet, one script, one picture, all inside the binary.

use axum::http::{HeaderName, header};

type Asset = ([(HeaderName, &'static str); 1], &'static str);

/// How pages look.
pub(super) async fn stylesheet() -> Asset {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../../assets/console.css"))
}

/// What pages can do beyond HTML: the reader's own time zone, and keys.
pub(super) async fn script() -> Asset {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("../../assets/console.js"))
}

/// The picture in a browser's tab.
pub(super) async fn icon() -> Asset {
    ([(header::CONTENT_TYPE, "image/svg+xml")], include_str!("../../assets/icon.svg"))
}
