//! The days of history: a table for each, made ahead, dropped when nothing of it is asked for any more.
//!
//! History of a day goes when its messages are gone. The few that are still there then, dead and before nobody's eyes
//! yet, take theirs along to the table for all other days.

use redeliver_core::Timestamp;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::errors::Fault;
use super::line::Line;
use super::rows::get;

const DAY_MS: i64 = 86_400_000;

/// Days that have their table before they begin, today included.
const DAYS_AHEAD: i64 = 3;

/// Rows that are taken along when their day goes, at most. A day with more of them stays.
const TAKEN_ALONG_MAX: i64 = 1_000;

/// Makes the tables of the days to come, and drops the oldest one before `before` if it is no longer needed.
pub(super) async fn keep_days(db: &mut Line<'_>, now: Timestamp, before: Timestamp) -> Result<(), Fault> {
    let asked = db.lone().await?;
    let there = days(&asked).await?;
    asked.finish().await?;
    let today = now.as_ms().div_euclid(DAY_MS);
    for day in (today..today + DAYS_AHEAD).filter(|day| !there.contains(day)) {
        add(db, day).await?;
    }
    let is_past = |day: &&i64| (**day + 1) * DAY_MS <= before.as_ms() && **day < today;
    if let Some(oldest) = there.iter().filter(is_past).min() {
        remove(db, *oldest).await?;
    }
    Ok(())
}

/// The days that have a table, counted from 1970.
pub(super) async fn days(db: &Client) -> Result<Vec<i64>, Fault> {
    let found = db.query_typed(include_str!("sql/days.sql"), &[]).await?;
    let names: Vec<&str> = found.iter().map(|row| get(row, 0)).collect::<Result<_, Fault>>()?;
    Ok(names.into_iter().filter_map(|name| name.rsplit('_').next()?.parse().ok()).collect())
}

async fn add(db: &mut Line<'_>, day: i64) -> Result<(), Fault> {
    let transaction = db.begin().await?;
    if alone(transaction.client()).await? && !days(transaction.client()).await?.contains(&day) {
        let (from, to) = (day * DAY_MS, (day + 1) * DAY_MS);
        let params = [(&from as _, Type::INT8), (&to as _, Type::INT8)];
        let has_rows = transaction.query_typed_opt(include_str!("sql/has_others.sql"), &params).await?;
        // A day that has begun among the others stays there.
        if has_rows.is_none() {
            let fill = |sql: &str| {
                sql.replace("{day}", &day.to_string())
                    .replace("{from}", &from.to_string())
                    .replace("{to}", &to.to_string())
            };
            transaction.batch_execute(&fill(include_str!("sql/add_day.sql"))).await?;
            transaction.batch_execute(&fill(include_str!("sql/attach_day.sql"))).await?;
        }
    }
    transaction.commit().await?;
    Ok(())
}

async fn remove(db: &mut Line<'_>, day: i64) -> Result<(), Fault> {
    let fill = |sql: &str| sql.replace("{day}", &day.to_string());
    let transaction = db.begin().await?;
    if alone(transaction.client()).await? && days(transaction.client()).await?.contains(&day) {
        let params = [(&(TAKEN_ALONG_MAX + 1) as _, Type::INT8)];
        let wanted =
            transaction.query_typed_one(&fill(include_str!("sql/wanted_of_day.sql")), &params).await?;
        if get::<i64>(&wanted, 0)? <= TAKEN_ALONG_MAX {
            transaction.batch_execute(&fill(include_str!("sql/detach_day.sql"))).await?;
            transaction.batch_execute(&fill(include_str!("sql/keep_of_day.sql"))).await?;
            transaction.batch_execute(&fill(include_str!("sql/drop_day.sql"))).await?;
        }
    }
    transaction.commit().await?;
    Ok(())
}

/// Whether this is the only one that looks after days at this moment. It waits for nobody long: whoever writes history
/// would wait behind it.
async fn alone(db: &Client) -> Result<bool, Fault> {
    db.batch_execute("SET LOCAL lock_timeout = 200").await?;
    let row = db.query_typed_one(include_str!("sql/lock_days.sql"), &[]).await?;
    get(&row, 0)
}
