//! The story of an operator in a real browser: logs in, sees what is wrong, retries one mail and dismisses another.
//! Leaves pictures of every page in `target/tmp/console/`, to be looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::accept::NewMessage;
use redeliver_core::bulk::Bulk;
use redeliver_core::email::{Email, Ics};
use redeliver_core::gate::Scope;
use redeliver_core::{Message, MessageId, State};
use redeliver_engine::access::Role;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::Store;
use redeliver_server::limits::Limits;
use redeliver_server::serve::serve;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::chromium::Chromium;
use crate::hostile::{NASTY, hostile_bulk, mail_saying};
use crate::stage::{Stage, mail};

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

/// The pages of which the docs have pictures.
const KEPT: [&str; 12] = [
    "login",
    "overview",
    "queue",
    "messages",
    "waiting",
    "carries",
    "dead-letters",
    "bulk-plan",
    "bulk",
    "routes",
    "audit",
    "keys-made",
];

struct Story {
    runtime: Runtime,
    stage: Stage,
    browser: Chromium,
    pictures: PathBuf,
    address: String,
}

impl Story {
    fn begin() -> Self {
        let runtime = Runtime::new().unwrap();
        let stage = Stage::new();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stopper, stop) = stop_pair();
        runtime.spawn(serve(listener, stage.router.clone(), Arc::new(Limits::default()), stop.clone()));
        runtime.spawn(Arc::clone(&stage.engine).bulks(stop.clone()));
        let engine = Arc::clone(&stage.engine).run(stop);
        runtime.spawn(async move {
            engine.await;
            drop(stopper);
        });
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let pictures = place.join("console");
        std::fs::create_dir_all(&pictures).unwrap();
        let browser = Chromium::start(&place.join(format!(
            "chromium-{}-{}",
            std::process::id(),
            address.rsplit(':').next().unwrap_or_default()
        )));
        Self { runtime, stage, browser, pictures, address }
    }

    /// Waits until a message stands as it should.
    fn await_message(&self, id: &MessageId, fits: impl Fn(&Message) -> bool) {
        let wait = async {
            while !fits(&self.stage.get(id).await) {
                self.stage.engine.clock().sleep(Duration::from_millis(10)).await;
            }
        };
        let waited =
            self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), wait).await });
        waited.unwrap_or_else(|_| panic!("{id} never came to it"));
    }

    /// Waits until nothing is being done to many messages any more.
    fn await_bulk(&self) {
        let wait = async {
            while self.stage.store.bulks(1).await.unwrap().iter().any(|bulk| !bulk.standing.has_ended()) {
                self.stage.engine.clock().sleep(Duration::from_millis(10)).await;
            }
        };
        let waited =
            self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), wait).await });
        waited.unwrap_or_else(|_| panic!("it never ended"));
    }

    /// Looks at the page as a reader of each kind, keeps the pictures, and finds nothing wrong with any of them.
    fn look(&mut self, name: &str) {
        for (view, scheme, width) in
            [("light", "light", 1280), ("dark", "dark", 1280), ("phone", "light", 390)]
        {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            self.browser.tell("Emulation.setEmulatedMedia", json!({ "features": features }));
            let screen =
                json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
            self.browser.tell("Emulation.setDeviceMetricsOverride", screen);
            // A colour that is on its way is not there yet.
            self.browser.ask("Promise.all(document.getAnimations().map((a) => a.finished)).then(() => 0)");
            assert_eq!(self.browser.ask(PALE), json!([]), "too pale on {name}, {view}");
            let too_wide = self.browser.ask("document.documentElement.scrollWidth - innerWidth");
            assert!(too_wide.as_f64().unwrap() <= 0.0, "{name}, {view} is {too_wide} px too wide");
            let shot = json!({ "format": "png", "captureBeyondViewport": true });
            let picture = self.browser.tell("Page.captureScreenshot", shot)["data"].clone();
            let bytes = STANDARD.decode(picture.as_str().unwrap()).unwrap();
            std::fs::write(self.pictures.join(format!("{name}-{view}.png")), bytes).unwrap();
            self.keep(name, view);
        }
        self.browser.tell("Emulation.clearDeviceMetricsOverride", json!({}));
        self.browser.tell("Emulation.setEmulatedMedia", json!({ "features": [] }));
    }

    /// Keeps a small picture for the docs, where `make screenshots` says that it is wanted.
    fn keep(&mut self, name: &str, view: &str) {
        let Some(place) = std::env::var_os("REDELIVER_SCREENSHOTS") else { return };
        if !KEPT.contains(&name) {
            return;
        }
        let shot = json!({ "format": "webp", "quality": 70, "captureBeyondViewport": true });
        let picture = self.browser.tell("Page.captureScreenshot", shot)["data"].clone();
        let bytes = STANDARD.decode(picture.as_str().unwrap()).unwrap();
        std::fs::write(Path::new(&place).join(format!("{name}-{view}.webp")), bytes).unwrap();
    }

    fn path(&mut self) -> String {
        self.browser.ask("location.pathname + location.search").as_str().unwrap().to_owned()
    }

    fn text(&mut self, selector: &str) -> String {
        let selector = json!(selector);
        let said = self.browser.ask(&format!("document.querySelector({selector})?.innerText ?? ''"));
        said.as_str().unwrap().to_owned()
    }
}

#[test]
fn an_operator_mends_in_a_browser_what_has_failed() {
    let mut story = Story::begin();
    let key = story.runtime.block_on(story.stage.key("ada", Role::Operator, None)).text;
    let address = story.address.clone();

    // In.
    story.browser.tell("Emulation.setTimezoneOverride", json!({ "timezoneId": "Asia/Kathmandu" }));
    story.browser.go(&format!("{address}/"));
    assert_eq!(story.path(), "/login");
    story.look("login");
    story.browser.click("#key");
    story.browser.write(&key);
    story.browser.click_through("button.primary");
    assert_eq!(story.path(), "/admin");
    assert_eq!(story.browser.ask("document.cookie"), json!(""), "no script can read the session");

    // Who has nothing yet is told how to begin.
    story.browser.go(&format!("{address}/admin/email-queue"));
    assert!(story.text(".empty pre").starts_with("redeliver send"));
    story.look("empty");

    // What is wrong is seen at once.
    let accept = |subject: &str| story.runtime.block_on(story.stage.accept(mail(subject)));
    let (booking, reminder) =
        (accept("Your booking of 1 December"), accept("Reminder: the tour begins at nine"));
    let (invoice, letter) = (accept("Invoice 17, lost on its way"), accept("A lost letter"));
    for id in [&booking, &reminder] {
        story.await_message(id, |message| message.attempts == 1);
    }
    for id in [&invoice, &letter] {
        story.await_message(id, |message| matches!(message.state, State::Dead { .. }));
    }
    story.browser.go(&format!("{address}/admin"));
    assert!(story.text(".card.warning").contains("2"), "pending");
    assert!(story.text(".card.alarm").contains("2"), "failed");
    let lately = story.text("#lately + .charts");
    assert!(lately.contains("2 tried again") && lately.contains("2 given up"), "{lately}");

    // Whoever listens is told that something has changed, and the page finds out by itself.
    story.browser.ask(
        "window.heard = 0; new EventSource('/admin/live').addEventListener('changed', () => window.heard++), 0",
    );
    let hears = |story: &mut Story, count: usize| {
        story.browser.ask(&format!(
            "new Promise((done) => {{ const look = () => window.heard >= {count} ? done(0) : setTimeout(look, 20); look(); }})"
        ));
    };
    hears(&mut story, 1);
    let note = story.runtime.block_on(story.stage.accept(mail("A note")));
    hears(&mut story, 2);
    story.browser.ask(
        "new Promise((done) => { const look = () => document.querySelector('.card.warning .number').innerText === '3' ? done(0) : setTimeout(look, 20); look(); })",
    );
    story.await_message(&note, |message| message.attempts == 1);
    story.look("overview");
    story.browser.click_through(".card.alarm a");
    assert_eq!(story.path(), "/admin/email-queue?show=failed");
    story.browser.click_through("#filter a");
    story.look("queue");

    // Times are the reader's own, and exact on hover.
    let created = story.browser.ask("document.querySelector('td.when[data-label=Created] time').title");
    assert!(created.as_str().unwrap().contains("GMT+5:45"), "{created}");

    // Keys.
    story.browser.press("j");
    story.browser.press("j");
    story.browser.press("k");
    let first = story.text("a.row");
    assert_eq!(story.browser.ask("document.activeElement.innerText"), json!(first));
    story.browser.press("/");
    assert_eq!(story.browser.ask("document.activeElement.innerText"), json!("All open"));
    story.browser.press("?");
    assert_eq!(story.browser.ask("document.getElementById('keys').open"), json!(true));
    story.look("keys");
    story.browser.click("#keys button");

    // The relay is mended, and a failed mail goes out.
    story.stage.relay.is_mended.store(true, Ordering::Relaxed);
    let form = format!("form[action='/admin/messages/{invoice}/retry']");
    story.browser.click(&format!("details:has({form}) summary"));
    story.look("retry");
    story.browser.click_through(&format!("{form} button"));
    assert!(story.text("[role=status]").starts_with("Retried"), "{}", story.text("main"));
    story.await_message(&invoice, |message| matches!(message.state, State::Delivered { .. }));
    assert_eq!(story.runtime.block_on(story.stage.deeds(&invoice)), [("ada".to_owned(), "retry")]);

    // The other one is put away, without script.
    story.browser.go(&format!("{address}/admin/messages/{letter}"));
    story.look("message");
    story.browser.tell("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    story.browser.go(&format!("{address}/admin/email-queue?show=failed"));
    assert!(story.text("td.when").contains("none") && story.text("td[data-label=Created]").ends_with("UTC"));
    let form = format!("form[action='/admin/messages/{letter}/dismiss']");
    story.browser.click(&format!("details:has({form}) summary"));
    story.browser.click_through(&format!("{form} button"));
    assert!(story.text("[role=status]").starts_with("Dismissed"));
    story
        .await_message(&letter, |message| matches!(message.state, State::Dead { dismissed_at: Some(_), .. }));
    assert_eq!(story.text(".empty h2"), "Nothing has failed");
    story.look("nothing-failed");
    story.browser.tell("Emulation.setScriptExecutionDisabled", json!({ "value": false }));

    // Whatever mails, people and other sides say, nothing of it runs.
    for (number, nasty) in NASTY.into_iter().enumerate() {
        let bulk = Bulk { id: format!("nasty-{number}").into(), ..hostile_bulk(nasty) };
        story.runtime.block_on(async {
            story.stage.key(nasty, Role::Viewer, None).await;
            assert!(story.stage.store.put_bulk(bulk, None).await.unwrap());
            story.stage.engine.pause(Scope::Destination, nasty, &nasty.into()).await.unwrap();
        });
        story.browser.go(&format!("{address}/admin/bulk/nasty-{number}"));
        assert_eq!(story.browser.ask("typeof window.hacked"), json!("undefined"), "{nasty}");
        let id = story.runtime.block_on(story.stage.accept(mail_saying(nasty)));
        story.browser.go(&format!("{address}/admin/messages/{id}"));
        assert_eq!(story.browser.ask("typeof window.hacked"), json!("undefined"), "{nasty}");
    }
    for page in [
        "",
        "/messages",
        "/dead-letters",
        "/bulk",
        "/routes",
        "/audit",
        "/email-queue?show=failed",
        "/email-queue",
    ] {
        story.browser.go(&format!("{address}/admin{page}"));
        // What would run by a mouse or a focus has had its chance.
        story.browser.ask(
            "document.querySelectorAll('*').forEach((e) => ['mouseover', 'focus', 'load', 'error'].forEach((k) => e.dispatchEvent(new Event(k)))), 0",
        );
        assert_eq!(story.browser.ask("typeof window.hacked"), json!("undefined"), "{page}");
    }
    story.look("hostile");

    assert_eq!(story.browser.complaints, Vec::<String>::new(), "the browser found something wrong");

    // What is not there is said, and then out.
    story.browser.go(&format!("{address}/admin/nothing"));
    story.look("refusal");
    story.browser.go(&format!("{address}/admin"));
    story.browser.click_through(".who button");
    assert_eq!(story.path(), "/login");
}

#[test]
fn an_admin_finds_a_message_pauses_a_route_and_makes_a_key_in_a_browser() {
    let mut story = Story::begin();
    let key = story.runtime.block_on(story.stage.key("grace", Role::Admin, None)).text;
    let address = story.address.clone();
    let accept = |new| story.runtime.block_on(story.stage.accept(new));
    let reminder = accept(mail("Reminder: the tour begins at nine"));
    let letter = accept(mail("A lost letter"));
    let mut invitation = Email::of_content(&mail("Invitation").content).unwrap().unwrap();
    invitation.html =
        Some("<h1>Come</h1><script>parent.hacked=1</script><img src=x onerror=parent.hacked=1>".into());
    invitation.ics =
        Some(Ics { content: "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n".into(), method: "REQUEST".into() });
    let invitation = accept(NewMessage::new("email", invitation.to_content().unwrap()));
    story.await_message(&reminder, |message| message.attempts == 1);
    story.await_message(&letter, |message| matches!(message.state, State::Dead { .. }));
    story.await_message(&invitation, |message| message.attempts == 1);
    story.browser.go(&format!("{address}/login"));
    story.browser.click("#key");
    story.browser.write(&key);
    story.browser.click_through("button.primary");

    // By an error, from the keyboard.
    story.browser.go(&format!("{address}/admin/messages"));
    assert_eq!(story.browser.ask("document.querySelectorAll('tbody tr').length"), json!(3));
    story.look("messages");
    story.browser.press("/");
    assert_eq!(story.browser.ask("document.activeElement.id"), json!("recipient"));
    story.browser.click("#error");
    story.browser.write("no such user");
    story.browser.click_through("#filter button");
    assert_eq!(story.browser.ask("document.querySelectorAll('tbody tr').length"), json!(1));
    assert_eq!(story.text("a.row"), "A lost letter");
    story.browser.click_through("a.row");
    assert_eq!(story.path(), format!("/admin/messages/{letter}"));

    // All that match are retried, carefully, and it stops by itself: the relay still refuses.
    story.browser.go(&format!("{address}/admin/messages?status=dead"));
    story.browser.ask("document.getElementById('all').value = 'yes'");
    story.browser.click_through("#chosen button[value=retry]");
    assert_eq!(story.text("#count"), "1");
    story.look("bulk-plan");
    story.browser.click_through(".sure button");
    story.await_message(&letter, |message| {
        message.generation == 1 && matches!(message.state, State::Dead { .. })
    });
    let bulk = story.path();
    story.await_bulk();
    // The page finds out by itself.
    story.browser.ask(
        "new Promise((done) => { const look = () => document.getElementById('standing').innerText === 'running' ? setTimeout(look, 50) : done(0); look(); })",
    );
    assert_eq!(story.path(), bulk);
    story.look("bulk");
    story.browser.go(&format!("{address}/admin/bulk"));
    story.look("bulks");

    story.browser.go(&format!("{address}/admin/dead-letters"));
    assert!(story.text("a.row").contains("no such user"));
    story.look("dead-letters");

    // What comes is drawn ahead.
    story.browser.go(&format!("{address}/admin/messages/{reminder}"));
    assert_eq!(story.browser.ask("document.querySelectorAll('li.ahead').length"), json!(4));
    story.look("waiting");
    assert_eq!(story.browser.complaints, Vec::<String>::new(), "the browser found something wrong");

    // A mail's HTML is seen and does nothing.
    story.browser.go(&format!("{address}/admin/messages/{invitation}"));
    story.browser.click("details.frame summary");
    story.browser.ask(
        "new Promise((done) => { const look = () => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/body')) ? done(0) : setTimeout(look, 20); look(); })",
    );
    story.look("carries");
    assert_eq!(story.browser.ask("typeof window.hacked"), json!("undefined"));
    let is_blocked = |said: &String| {
        ["sandbox", "Content Security Policy", "frame"].iter().any(|word| said.contains(word))
    };
    let others: Vec<&String> = story.browser.complaints.iter().filter(|said| !is_blocked(said)).collect();
    assert_eq!(others, Vec::<&String>::new());
    story.browser.complaints.clear();

    // A route is stopped and goes on, and both are written down.
    story.browser.go(&format!("{address}/admin/routes"));
    story.browser.click("details:has(form[action='/admin/routes/email/pause']) summary");
    story.browser.click_through("form[action='/admin/routes/email/pause'] button");
    assert!(story.text(".note.warning").starts_with("paused by grace"), "{}", story.text("main"));
    story.look("routes");
    story.browser.click_through("form[action='/admin/routes/email/resume'] button");
    story.browser.go(&format!("{address}/admin/audit"));
    assert_eq!(story.text("td.deed"), "resume");
    story.look("audit");

    // A key is made and shown once.
    story.browser.go(&format!("{address}/admin/keys"));
    story.browser.click("#name");
    story.browser.write("booking");
    story.browser.click_through(".fields button");
    assert!(story.text("#made").starts_with("rdk_"));
    story.look("keys-made");
    story.browser.go(&format!("{address}/admin/keys"));
    assert_eq!(story.text("#made"), "");
    assert_eq!(story.browser.complaints, Vec::<String>::new(), "the browser found something wrong");
}
