//! Servers that say anything at all: nobody falls over, and nothing is called delivered that wasn't.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod peer;

use std::time::Duration;

use proptest::prelude::*;
use redeliver_core::Outcome;
use redeliver_transports::smtp::SmtpConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use peer::{carry_within, claimed, config, email, transport_with};

/// Carries a mail to a server that answers each thing it hears with the next of these, and then leaves.
async fn carry_to(answers: Vec<Vec<u8>>) -> Outcome {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = config(&format!("smtp://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 65_536];
            for answer in &answers {
                if stream.write_all(answer).await.is_err() {
                    break;
                }
                if !matches!(stream.read(&mut buffer).await, Ok(1..)) {
                    break;
                }
            }
        }
    });
    let config = SmtpConfig { command_timeout: Duration::from_millis(200), ..config };
    let content = email(&["ada@example.org", "bob@example.org"]).to_content().unwrap();
    let outcome = carry_within(&transport_with(config), &claimed(1), &content, Duration::from_secs(3)).await;
    server.abort();
    outcome
}

fn answer() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(b"250 ok\r\n".to_vec()),
        2 => Just(b"220 hello\r\n".to_vec()),
        2 => Just(b"354 go\r\n".to_vec()),
        3 => ("[2-5][0-9]{2}", "[ -]", "[ -~]{0,40}").prop_map(|(code, between, text)| format!("{code}{between}{text}\r\n").into_bytes()),
        1 => Just(b"250-\r\n250-STARTTLS\r\n250-SIZE x\r\n250 SMTPUTF8\r\n".to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 1..60),
        1 => Just(vec![b'9'; 20_000]),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_server_says_comes_to_an_outcome(answers in proptest::collection::vec(answer(), 0..10)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let agreed = answers.iter().filter(|answer| answer.starts_with(b"2")).count();
        match runtime.block_on(carry_to(answers)) {
            // A greeting, EHLO, MAIL, a recipient and the mail itself need a yes each.
            Outcome::Delivered { .. } | Outcome::Partial(_) => prop_assert!(agreed >= 1),
            Outcome::Failed(failure) | Outcome::Refused(failure) => prop_assert!(!failure.text.is_empty()),
            Outcome::Lost { reason } => prop_assert!(!reason.is_empty()),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_agrees_in_advance_is_not_believed() {
    let ahead = b"220 hi\r\n250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 kept\r\n".to_vec();
    let outcome = carry_to(vec![ahead]).await;
    assert!(!matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_endless_answer_is_cut_short() {
    let endless = vec![b'2'; 10 << 20];
    let outcome = carry_to(vec![endless]).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}
