//! Writes what core decided, all of a change or nothing of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::campaign::EndsMoved;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::{Change, Content, Message, MessageId, State, Timestamp};
use redeliver_engine::store::Applied;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::campaigns::is_text;
use super::columns::{Messages, without_nul};
use super::errors::{Fault, own};
use super::insert::{How, insert_all, put_contents};
use super::line::Line;
use super::read;
use super::rows::get;
use crate::encode::{campaign_of, failure_to_text, to_text};

pub(super) async fn apply(db: &mut Line<'_>, changes: &[Change]) -> Result<Vec<Applied>, Fault> {
    let rounds = rounds(changes);
    if let [round] = &rounds[..]
        && round.iter().all(|(_, change)| is_delivery(change) && brings_nothing(change))
    {
        // What takes one statement is a transaction by itself.
        let db = db.lone().await?;
        let answers = apply_round(&db, round).await?;
        db.finish().await?;
        return Ok(in_order(answers));
    }
    let transaction = db.begin().await?;
    let mut answers = Vec::new();
    for round in &rounds {
        answers.extend(apply_round(transaction.client(), round).await?);
    }
    let applied = answers.iter().filter(|(_, answer)| *answer == Applied::Applied);
    let applied = applied.filter_map(|(place, _)| changes.get(*place));
    let ended: Vec<&Change> = applied.filter(|change| !change.ends.is_nothing()).collect();
    // Last of all, so that whoever waits for these rows has no others to take.
    if !ended.is_empty() {
        count_ends(transaction.client(), &ended).await?;
    }
    transaction.commit().await?;
    Ok(in_order(answers))
}

/// A change with its place among all of them.
type Placed<'a> = (usize, &'a Change);

/// Changes in rounds of which each has a message at most once: those of one message follow each other.
fn rounds(changes: &[Change]) -> Vec<Vec<Placed<'_>>> {
    let mut seen: HashMap<&MessageId, usize> = HashMap::new();
    let mut rounds: Vec<Vec<Placed<'_>>> = Vec::new();
    for (place, change) in changes.iter().enumerate() {
        let round = seen.entry(&change.message.id).or_default();
        if rounds.len() == *round {
            rounds.push(Vec::new());
        }
        rounds[*round].push((place, change));
        *round += 1;
    }
    rounds
}

fn in_order(mut answers: Vec<(usize, Applied)>) -> Vec<Applied> {
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Whether a worker says of its own claim that the other side took it, and nothing else.
fn is_delivery(change: &Change) -> bool {
    matches!(change.message.state, State::Delivered { .. })
        && change.message.recipients.is_empty()
        && change.settles.is_some()
        && change.settles == change.message.settled_claim
}

fn brings_nothing(change: &Change) -> bool {
    change.attempt.is_none()
        && change.content.is_none()
        && change.spawn.is_none()
        && change.edit.is_none()
        && change.audit.is_none()
}

async fn apply_round(db: &Client, round: &[Placed<'_>]) -> Result<Vec<(usize, Applied)>, Fault> {
    let written = write_messages(db, round).await?;
    let is_written = |change: &Change| own(&change.message.id).is_some_and(|id| written.contains(&id));
    let (applied, others): (Vec<Placed<'_>>, Vec<Placed<'_>>) =
        round.iter().partition(|(_, change)| is_written(change));
    write_what_comes_with(db, &applied).await?;
    let mut answers: Vec<(usize, Applied)> =
        applied.iter().map(|(place, _)| (*place, Applied::Applied)).collect();
    if !others.is_empty() {
        answers.extend(superseded(db, &others).await?);
    }
    Ok(answers)
}

/// Writes each message that still has its fence. Says which.
async fn write_messages(db: &Client, round: &[Placed<'_>]) -> Result<HashSet<Uuid>, Fault> {
    let mut written = HashSet::new();
    let changes = round.iter().map(|(_, change)| *change).filter(|change| own(&change.message.id).is_some());
    let mut rest: Vec<&Change> = changes.collect();
    let deliveries: Vec<&Change> = rest.iter().copied().filter(|change| is_delivery(change)).collect();
    if !deliveries.is_empty() {
        written.extend(write_deliveries(db, &deliveries).await?);
    }
    let stays_claimed = |change: &&Change| matches!(change.message.state, State::Claimed(_));
    let claimed: Vec<&Change> = rest.iter().copied().filter(stays_claimed).collect();
    if !claimed.is_empty() {
        written.extend(write_claimed(db, &claimed).await?);
    }
    // The shorter ways write only what is claimed. What they left may have been overtaken, or stand otherwise.
    rest.retain(|change| own(&change.message.id).is_some_and(|id| !written.contains(&id)));
    if !rest.is_empty() {
        written.extend(write_whole(db, &rest).await?);
    }
    Ok(written)
}

async fn write_deliveries(db: &Client, changes: &[&Change]) -> Result<Vec<Uuid>, Fault> {
    let (mut ids, mut attempts, mut ended, mut receipts) = (vec![], vec![], vec![], vec![]);
    for message in changes.iter().map(|change| &change.message) {
        let State::Delivered { at, receipt } = &message.state else { continue };
        ids.push(own(&message.id));
        attempts.push(message.attempts as i32);
        ended.push(at.as_ms());
        receipts.push(receipt.as_deref().map(without_nul));
    }
    let expected = expected_fences(changes);
    let params = [
        (&ids as _, Type::UUID_ARRAY),
        (&expected as _, Type::INT8_ARRAY),
        (&attempts as _, Type::INT4_ARRAY),
        (&ended as _, Type::INT8_ARRAY),
        (&receipts as _, Type::TEXT_ARRAY),
    ];
    let written = db.query_typed_one(include_str!("sql/apply_delivered.sql"), &params).await?;
    Ok(get::<Option<Vec<Uuid>>>(&written, 0)?.unwrap_or_default())
}

async fn write_claimed(db: &Client, changes: &[&Change]) -> Result<Vec<Uuid>, Fault> {
    let ids: Vec<Option<Uuid>> = changes.iter().map(|change| own(&change.message.id)).collect();
    let fences: Vec<i64> = changes.iter().map(|change| change.message.fence as i64).collect();
    let requests: Vec<bool> = changes
        .iter()
        .map(|change| matches!(&change.message.state, State::Claimed(lease) if lease.cancel_requested))
        .collect();
    let expected = expected_fences(changes);
    let params = [
        (&ids as _, Type::UUID_ARRAY),
        (&fences as _, Type::INT8_ARRAY),
        (&requests as _, Type::BOOL_ARRAY),
        (&expected as _, Type::INT8_ARRAY),
    ];
    ids_of(&db.query_typed(include_str!("sql/apply_claimed.sql"), &params).await?)
}

async fn write_whole(db: &Client, changes: &[&Change]) -> Result<Vec<Uuid>, Fault> {
    let mut messages = Messages::default();
    for change in changes {
        messages.push(&change.message)?;
    }
    let expected = expected_fences(changes);
    let mut params = messages.params();
    params.push((&expected, Type::INT8_ARRAY));
    ids_of(&db.query_typed(include_str!("sql/apply.sql"), &params).await?)
}

fn expected_fences(changes: &[&Change]) -> Vec<i64> {
    changes.iter().map(|change| change.expected_fence as i64).collect()
}

fn ids_of(rows: &[tokio_postgres::Row]) -> Result<Vec<Uuid>, Fault> {
    rows.iter().map(|row| get(row, 0)).collect()
}

/// History, contents, dead letters and deeds of changes that are written.
async fn write_what_comes_with(db: &Client, applied: &[Placed<'_>]) -> Result<(), Fault> {
    let changes = || applied.iter().map(|(_, change)| *change);
    let attempts: Vec<(Uuid, &AttemptRecord)> =
        changes().filter_map(|change| Some((own(&change.message.id)?, change.attempt.as_ref()?))).collect();
    if !attempts.is_empty() {
        write_attempts(db, &attempts).await?;
    }
    let contents: Vec<(&Message, &Content)> =
        changes().filter_map(|change| Some((&change.message, change.content.as_deref()?))).collect();
    if !contents.is_empty() {
        put_contents(db, &contents).await?;
    }
    let spawned: Vec<&NewRow> = changes().filter_map(|change| change.spawn.as_deref()).collect();
    if !spawned.is_empty() {
        insert_all(db, &spawned, How::Carefully).await?;
    }
    let edits: Vec<(Uuid, &EditRecord)> =
        changes().filter_map(|change| Some((own(&change.message.id)?, change.edit.as_ref()?))).collect();
    if !edits.is_empty() {
        write_edits(db, &edits).await?;
    }
    let deeds: Vec<&Audit> = changes().filter_map(|change| change.audit.as_ref()).collect();
    if !deeds.is_empty() {
        write_audit(db, &deeds).await?;
    }
    Ok(())
}

/// Counts anew how the mails of campaigns have ended, as far as these messages are such.
async fn count_ends(db: &Client, changes: &[&Change]) -> Result<(), Fault> {
    let ids: Vec<Uuid> = changes.iter().filter_map(|change| own(&change.message.id)).collect();
    let found = db.query_typed(include_str!("sql/attributes.sql"), &[(&ids as _, Type::UUID_ARRAY)]).await?;
    let mut campaigns: HashMap<Uuid, String> = HashMap::new();
    for row in &found {
        if let Some(campaign) = campaign_of(get(row, 1)?).filter(|campaign| is_text(campaign)) {
            campaigns.insert(get(row, 0)?, campaign);
        }
    }
    let mut all: BTreeMap<(&str, &str), EndsMoved> = BTreeMap::new();
    for change in changes {
        if let Some(campaign) = own(&change.message.id).and_then(|id| campaigns.get(&id)) {
            *all.entry((campaign, &change.message.workspace)).or_default() += change.ends;
        }
    }
    all.retain(|_, moved| !moved.is_nothing());
    if all.is_empty() {
        return Ok(());
    }
    let (names, workspaces): (Vec<&str>, Vec<&str>) = all.keys().copied().unzip();
    let dead: Vec<i64> = all.values().map(|moved| moved.dead).collect();
    let dismissed: Vec<i64> = all.values().map(|moved| moved.dismissed).collect();
    let cancelled: Vec<i64> = all.values().map(|moved| moved.cancelled).collect();
    let params = [
        (&names as _, Type::TEXT_ARRAY),
        (&workspaces as _, Type::TEXT_ARRAY),
        (&dead as _, Type::INT8_ARRAY),
        (&dismissed as _, Type::INT8_ARRAY),
        (&cancelled as _, Type::INT8_ARRAY),
    ];
    db.execute_typed(include_str!("sql/count_ends.sql"), &params).await?;
    Ok(())
}

/// What it means that changes found another fence.
async fn superseded(db: &Client, changes: &[Placed<'_>]) -> Result<Vec<(usize, Applied)>, Fault> {
    let ids: Vec<Uuid> = changes.iter().filter_map(|(_, change)| own(&change.message.id)).collect();
    let current = read::get_many(db, &ids).await?;
    let answer = |(place, change): &Placed<'_>| {
        let now = current.get(&change.message.id);
        let settled_before =
            now.is_some_and(|now| change.settles.is_some() && change.settles == now.settled_claim);
        let answer = match settled_before {
            true => Applied::AlreadyMine,
            false => Applied::Superseded(now.cloned().map(Box::new)),
        };
        (*place, answer)
    };
    Ok(changes.iter().map(answer).collect())
}

async fn write_attempts(db: &Client, attempts: &[(Uuid, &AttemptRecord)]) -> Result<(), Fault> {
    let ids: Vec<Uuid> = attempts.iter().map(|(id, _)| *id).collect();
    let records = || attempts.iter().map(|(_, record)| *record);
    let generations: Vec<i32> = records().map(|record| record.generation as i32).collect();
    let numbers: Vec<i32> = records().map(|record| record.attempt as i32).collect();
    let verdicts: Vec<i16> = records().map(|record| record.verdict as i16).collect();
    let times: Vec<i64> = records().map(|record| record.at.as_ms()).collect();
    let instances: Vec<Option<i64>> =
        records().map(|record| record.instance.map(|instance| instance.0 as i64)).collect();
    let failures: Vec<Option<String>> = records()
        .map(|record| Ok(record.failure.as_ref().map(failure_to_text).transpose()?))
        .collect::<Result<_, Fault>>()?;
    let of = |time: fn(&AttemptRecord) -> Option<Timestamp>| -> Vec<Option<i64>> {
        records().map(|record| time(record).map(Timestamp::as_ms)).collect()
    };
    let due = of(|record| record.due_at);
    let claimed = of(|record| record.claimed_at);
    let sent = of(|record| record.sent_at);
    let params = [
        (&ids as _, Type::UUID_ARRAY),
        (&generations as _, Type::INT4_ARRAY),
        (&numbers as _, Type::INT4_ARRAY),
        (&verdicts as _, Type::INT2_ARRAY),
        (&times as _, Type::INT8_ARRAY),
        (&instances as _, Type::INT8_ARRAY),
        (&failures as _, Type::TEXT_ARRAY),
        (&due as _, Type::INT8_ARRAY),
        (&claimed as _, Type::INT8_ARRAY),
        (&sent as _, Type::INT8_ARRAY),
    ];
    db.execute_typed(include_str!("sql/insert_attempts.sql"), &params).await?;
    Ok(())
}

pub(super) async fn note(db: &Client, id: &MessageId, record: &AttemptRecord) -> Result<(), Fault> {
    let Some(id) = own(id) else { return Ok(()) };
    let params = [
        (&id as _, Type::UUID),
        (&(record.generation as i32) as _, Type::INT4),
        (&(record.attempt as i32) as _, Type::INT4),
        (&(record.verdict as i16) as _, Type::INT2),
        (&record.at.as_ms() as _, Type::INT8),
        (&record.instance.map(|instance| instance.0 as i64) as _, Type::INT8),
        (&record.failure.as_ref().map(failure_to_text).transpose()? as _, Type::TEXT),
        (&record.due_at.map(Timestamp::as_ms) as _, Type::INT8),
        (&record.claimed_at.map(Timestamp::as_ms) as _, Type::INT8),
        (&record.sent_at.map(Timestamp::as_ms) as _, Type::INT8),
    ];
    db.execute_typed(include_str!("sql/note.sql"), &params).await?;
    Ok(())
}

async fn write_edits(db: &Client, edits: &[(Uuid, &EditRecord)]) -> Result<(), Fault> {
    let ids: Vec<Uuid> = edits.iter().map(|(id, _)| *id).collect();
    let records = || edits.iter().map(|(_, record)| *record);
    let actors: Vec<String> = records().map(|record| without_nul(&record.actor)).collect();
    let times: Vec<i64> = records().map(|record| record.at.as_ms()).collect();
    let generations: Vec<i32> = records().map(|record| record.generation as i32).collect();
    let differences: Vec<String> =
        records().map(|record| Ok(to_text("edit", &record.differences)?)).collect::<Result<_, Fault>>()?;
    let params = [
        (&ids as _, Type::UUID_ARRAY),
        (&actors as _, Type::TEXT_ARRAY),
        (&times as _, Type::INT8_ARRAY),
        (&generations as _, Type::INT4_ARRAY),
        (&differences as _, Type::TEXT_ARRAY),
    ];
    db.execute_typed(include_str!("sql/insert_edits.sql"), &params).await?;
    Ok(())
}

pub(super) async fn write_audit(db: &Client, deeds: &[&Audit]) -> Result<(), Fault> {
    let actors: Vec<String> = deeds.iter().map(|deed| without_nul(&deed.actor)).collect();
    let actions: Vec<&str> = deeds.iter().map(|deed| deed.action).collect();
    let subjects: Vec<String> = deeds.iter().map(|deed| without_nul(&deed.subject)).collect();
    let times: Vec<i64> = deeds.iter().map(|deed| deed.at.as_ms()).collect();
    let details: Vec<Option<String>> =
        deeds.iter().map(|deed| deed.detail.as_deref().map(without_nul)).collect();
    let params = [
        (&actors as _, Type::TEXT_ARRAY),
        (&actions as _, Type::TEXT_ARRAY),
        (&subjects as _, Type::TEXT_ARRAY),
        (&times as _, Type::INT8_ARRAY),
        (&details as _, Type::TEXT_ARRAY),
    ];
    db.execute_typed(include_str!("sql/insert_audit.sql"), &params).await?;
    Ok(())
}
