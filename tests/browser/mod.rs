//! Somebody before a real browser: goes where a person goes, reads what they read, and looks at every page as readers of each
//! kind see it. Leaves pictures in `target/tmp/console/`, to be looked at.
#![allow(dead_code, reason = "each story uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a story that can't go on has failed"
)]

mod chromium;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub use chromium::Chromium;

/// Worked out in the browser: texts whose colour is too near to what is behind them.
const PALE: &str = r#"(() => {
  const parts = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const light = (c) => { const [r, g, b] = parts(c).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const p = parts(c);
    if (p.length === 3 || p[3] > 0) return c; } return "rgb(255, 255, 255)"; };
  const pale = [];
  for (const e of document.querySelectorAll("body *")) {
    const hasText = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!hasText || !e.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) pale.push(`${e.tagName}.${e.className} ${contrast.toFixed(2)} ${e.textContent.trim().slice(0, 30)}`);
  }
  return pale;
})()"#;

/// Worked out in the browser: what can be used and has no name for whoever can't see it.
const NAMELESS: &str = r#"[...document.querySelectorAll("a, button, summary, input:not([type=hidden]), select, svg, nav, section, iframe")]
  .filter((e) => e.checkVisibility())
  .filter((e) => !(e.innerText?.trim() || e.textContent.trim() || e.ariaLabel || e.title || e.labels?.length || e.getAttribute("aria-labelledby")))
  .map((e) => e.outerHTML.slice(0, 80))"#;

/// The pages of which the docs have pictures.
const KEPT: [&str; 17] = [
    "login",
    "overview",
    "queue",
    "messages",
    "waiting",
    "carries",
    "edit",
    "edit-plan",
    "dead-letters",
    "bulk-plan",
    "bulk",
    "bulks",
    "campaigns",
    "campaign",
    "routes",
    "audit",
    "keys-made",
];

/// How often something is waited for, 20 seconds each time.
const WAITS_MAX: usize = 5;

/// A browser at a server.
pub struct Visit {
    pub browser: Chromium,
    pub address: String,
    pictures: PathBuf,
}

impl Visit {
    /// Starts a browser for this server.
    pub fn begin(address: &str) -> Self {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let pictures = place.join("console");
        std::fs::create_dir_all(&pictures).unwrap();
        let browser = Chromium::start(&place.join(format!("chromium-{}-{number}", std::process::id())));
        Self { browser, address: address.to_owned(), pictures }
    }

    /// Goes to a page of the server.
    pub fn go(&mut self, path: &str) {
        let url = format!("{}{path}", self.address);
        self.browser.go(&url);
    }

    /// Leaves the server alone: no page of it is open any more. Where time leaps, a page that is being fetched takes too long.
    pub fn leave(&mut self) {
        self.browser.go("about:blank");
    }

    /// Logs in with a key.
    pub fn log_in(&mut self, key: &str) {
        self.go("/login");
        self.browser.click("#key");
        self.browser.write(key);
        self.browser.click_through("button.primary");
        assert_eq!(self.path(), "/admin");
    }

    /// Where it is.
    pub fn path(&mut self) -> String {
        self.browser.ask("location.pathname + location.search").as_str().unwrap().to_owned()
    }

    /// What the first thing of this kind says; nothing if there is none.
    pub fn text(&mut self, selector: &str) -> String {
        let selector = json!(selector);
        let said = self.browser.ask(&format!("document.querySelector({selector})?.innerText ?? ''"));
        said.as_str().unwrap().to_owned()
    }

    /// How many of this kind there are.
    pub fn count(&mut self, selector: &str) -> usize {
        let counted = self.browser.ask(&format!("document.querySelectorAll({}).length", json!(selector)));
        counted.as_u64().unwrap() as usize
    }

    /// Waits until something is so on the page, which finds out by itself. Whoever waits in vain is told what the page says.
    pub fn until(&mut self, is_so: &str) {
        let mut seen = json!("");
        // A question that stays open for too long is one that the browser has forgotten.
        for _ in 0..WAITS_MAX {
            seen = self.browser.ask(&format!(
                "new Promise((done) => {{ const end = Date.now() + 20000; \
                   const look = () => ({is_so}) ? done(true) : Date.now() > end ? done(document.body.innerText) : setTimeout(look, 20); \
                   look(); }})"
            ));
            if seen == json!(true) {
                return;
            }
        }
        panic!("waited in vain: {is_so}: {seen}");
    }

    /// Chooses, by its label and the keyboard, what begins with these letters.
    pub fn choose(&mut self, id: &str, letters: &str) {
        self.browser.click(&format!("label[for='{id}']"));
        for letter in letters.chars() {
            self.browser.press(&letter.to_string());
        }
        let chosen =
            self.browser.ask(&format!("document.getElementById('{id}').selectedOptions[0].innerText"));
        assert!(chosen.as_str().unwrap().starts_with(letters), "{id}: {chosen}");
    }

    /// Opens the question behind a form's button, says yes, and is on the page that follows.
    pub fn confirm(&mut self, action: &str) {
        let form = format!("form[action='{action}']");
        self.browser.click(&format!("details:has({form}) summary"));
        self.browser.click_through(&format!("{form} button"));
    }

    /// Looks at the page as a reader of each kind, keeps the pictures, and finds nothing wrong with any of them.
    pub fn look(&mut self, name: &str) {
        for (view, scheme, width) in [
            ("light", "light", 1280),
            ("dark", "dark", 1280),
            ("tablet", "light", 768),
            ("phone", "light", 390),
        ] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            self.browser.tell("Emulation.setEmulatedMedia", json!({ "features": features }));
            let screen =
                json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
            self.browser.tell("Emulation.setDeviceMetricsOverride", screen);
            // A frame that is out of sight is not painted.
            let high = self.browser.ask("Math.max(800, document.documentElement.scrollHeight)");
            let screen =
                json!({ "width": width, "height": high, "deviceScaleFactor": 1, "mobile": width < 500 });
            self.browser.tell("Emulation.setDeviceMetricsOverride", screen);
            // A colour that is on its way is not there yet.
            self.browser
                .ask("Promise.allSettled(document.getAnimations().map((a) => a.finished)).then(() => 0)");
            assert_eq!(self.browser.ask(PALE), json!([]), "too pale on {name}, {view}");
            assert_eq!(self.browser.ask(NAMELESS), json!([]), "without a name on {name}, {view}");
            let too_wide = self.browser.ask("document.documentElement.scrollWidth - innerWidth");
            assert!(too_wide.as_f64().unwrap() <= 0.0, "{name}, {view} is {too_wide} px too wide");
            let bytes = self.shot(json!({ "format": "png", "captureBeyondViewport": true }));
            std::fs::write(self.pictures.join(format!("{name}-{view}.png")), bytes).unwrap();
            self.keep(name, view);
        }
        self.browser.tell("Emulation.clearDeviceMetricsOverride", json!({}));
        self.browser.tell("Emulation.setEmulatedMedia", json!({ "features": [] }));
    }

    /// The browser itself found nothing wrong.
    pub fn is_content(&self) {
        assert_eq!(self.browser.complaints, Vec::<String>::new(), "the browser found something wrong");
    }

    /// Keeps a small picture for the docs, where `make screenshots` says that it is wanted.
    fn keep(&mut self, name: &str, view: &str) {
        let Some(place) = std::env::var_os("REDELIVER_SCREENSHOTS") else { return };
        if !KEPT.contains(&name) || view == "tablet" {
            return;
        }
        let bytes = self.shot(json!({ "format": "webp", "quality": 70, "captureBeyondViewport": true }));
        std::fs::write(Path::new(&place).join(format!("{name}-{view}.webp")), bytes).unwrap();
    }

    fn shot(&mut self, how: Value) -> Vec<u8> {
        let picture = self.browser.tell("Page.captureScreenshot", how)["data"].clone();
        STANDARD.decode(picture.as_str().unwrap()).unwrap()
    }
}
