//! What is turned away, at once and in words for whoever can change it.

use redeliver::profile::email_policy;
use redeliver::{
    Content, Error, Mail, Outgoing, Redeliver, RedeliverBuilder, Route, Sent, Timestamp, rusqlite,
};

use crate::stage::{Stage, mail};

#[tokio::test]
async fn an_outbox_that_cannot_work_is_not_opened() {
    let check = async |builder: RedeliverBuilder, words: &str| {
        let said = builder.open().await.unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    };
    let memory = || Redeliver::builder("memory:");
    let route = |transport: &str| Route::new("paper", transport, email_policy());
    check(Redeliver::builder("mysql://db"), "stores are sqlite:PATH, postgres://… and memory:").await;
    check(Redeliver::builder("sqlite:"), "needs a path").await;
    check(Redeliver::builder("sqlite:no/such/directory/x.db"), "there is no directory").await;
    check(memory().accept_only(), "store in memory").await;
    check(memory().route(route("desk")), "the transport desk, which isn't there").await;
    check(memory().route(route("smtp")), "send_timeout (10s) of the route paper is too short").await;
    let twice = route("desk");
    check(memory().route(twice.clone()).route(twice), "two routes are called paper").await;
    check(memory().smtp("localhost"), "the mail server: ").await;
    check(memory().from("desk"), "the sender: ").await;
}

#[tokio::test]
async fn a_mail_that_could_do_harm_is_not_accepted() {
    let redeliver = Redeliver::builder("memory:").from("desk@example.org").open().await.unwrap();
    let check = async |mail: Mail, field: &str| match redeliver.send_or_queue(mail).await {
        Err(Error::Unsendable(problems)) => {
            assert!(problems.iter().any(|found| found.field.starts_with(field)), "{problems:?}");
        }
        other => panic!("{field}: {other:?}"),
    };
    check(mail().subject("Hello\r\nBcc: eve@example.org"), "subject").await;
    check(mail().bcc("eve@example.org>\r\nRCPT TO:<mallory@example.org"), "bcc").await;
    check(Mail::to("nobody").text("Hello."), "to").await;
}

#[tokio::test]
async fn a_mail_that_nobody_writes_is_not_accepted() {
    let redeliver = Redeliver::builder("memory:").open().await.unwrap();

    let nobodys = redeliver.send_or_queue(mail()).await;
    assert!(matches!(&nobodys, Err(Error::Unsendable(found)) if found[0].field == "from"), "{nobodys:?}");

    redeliver.send_or_queue(mail().from("ada@example.org")).await.unwrap();
}

#[tokio::test]
async fn what_has_no_route_or_comes_too_late_is_said_so() {
    let redeliver = Redeliver::builder("memory:").from("desk@example.org").open().await.unwrap();

    let astray = redeliver.send_or_queue(Outgoing::new("pigeon", Content::default())).await;
    assert!(matches!(astray, Err(Error::Misused(said)) if said.contains("no route pigeon")));

    let past = Timestamp::from_ms(1);
    let late = || redeliver.send_or_queue(Outgoing::from(mail()).expires_at(past));
    for sent in [late().await.unwrap(), late().without_waiting().await.unwrap()] {
        assert!(matches!(&sent, Sent::Refused { reason, .. } if reason == "expired"), "{sent:?}");
    }
}

#[tokio::test]
async fn a_store_in_memory_shares_no_transaction() {
    let redeliver = Redeliver::builder("memory:").from("desk@example.org").open().await.unwrap();
    let stage = Stage::new();
    let mut db: rusqlite::Connection = stage.connection();
    let booking = db.transaction().unwrap();

    assert!(matches!(redeliver.accept_in(&booking, mail()), Err(Error::Misused(_))));
}

#[test]
fn outside_a_runtime_nothing_panics() {
    let open = || Redeliver::builder("memory:").from("desk@example.org").open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let redeliver = runtime.block_on(open()).unwrap();
    drop(runtime);

    assert!(matches!(redeliver.start(), Err(Error::Misused(said)) if said.contains("tokio runtime")));
}
