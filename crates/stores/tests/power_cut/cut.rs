//! One power cut: a child at work, killed after a while.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use redeliver_stores::Durability;

use crate::child::{Acknowledged, Job};
use crate::image::{Image, Random};
use crate::shim::Shim;

/// How long the child works after its first acknowledgement.
const WORK_MS: Range<u64> = 50..400;

/// How many syncs the child gets to.
const SYNCS: Range<u64> = 30..90;

/// How long the child may say nothing, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const SIGKILL: i32 = 9;

/// When the power is cut.
enum Moment {
    /// So long after the first acknowledgement, whatever happens then.
    After(Duration),
    /// When the child is about to sync for the n-th time: everything since the last time is gone.
    BeforeSync(u64),
}

/// What the power cut left, and what had been acknowledged before it.
pub struct Cut {
    pub image: Image,
    pub acknowledged: Vec<Acknowledged>,
    /// Bytes that had been written and were not synced.
    pub discarded_bytes: u64,
}

/// Lets a child work for a while, and cuts its power.
pub fn cut(shim: &Shim, job: Job) -> Cut {
    let image = Image::begin();
    let moment = Moment::of(&job);
    let mut command = job.command();
    command
        .env("LD_PRELOAD", shim.path())
        .env("POWER_CUT_WATCHED", &image.live)
        .env("POWER_CUT_IMAGE", &image.durable)
        .stdout(Stdio::piped());
    if let Moment::BeforeSync(n) = moment {
        command.env("POWER_CUT_BEFORE_SYNC", n.to_string());
    }
    let mut child = command.spawn().unwrap();
    let said = listen(child.stdout.take().unwrap());
    let mut acknowledged: Vec<Acknowledged> = said.recv_timeout(PATIENCE).into_iter().collect();
    match moment {
        Moment::After(span) => std::thread::sleep(span),
        Moment::BeforeSync(_) => {
            acknowledged.extend(std::iter::from_fn(|| said.recv_timeout(PATIENCE).ok()));
        }
    }
    child.kill().unwrap();
    let end = child.wait().unwrap();
    assert_eq!(end.signal(), Some(SIGKILL), "the child of {job:?} ended by itself: {end}");
    acknowledged.extend(said);
    assert!(!acknowledged.is_empty(), "the child of {job:?} acknowledged nothing");
    let discarded_bytes = image.discarded_bytes();
    Cut { image, acknowledged, discarded_bytes }
}

impl Moment {
    fn of(job: &Job) -> Self {
        let mut random = Random(job.seed);
        match job.durability {
            Durability::Full if job.seed.is_multiple_of(3) => Self::BeforeSync(random.within(SYNCS)),
            // Without a sync for each commit there are too few of them to wait for.
            Durability::Full | Durability::Relaxed => {
                Self::After(Duration::from_millis(random.within(WORK_MS)))
            }
        }
    }
}

/// What the child says, line by line, until it is dead and everything that it said is heard.
fn listen(stdout: ChildStdout) -> mpsc::Receiver<Acknowledged> {
    let (heard, said) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.filter_map(|line| Acknowledged::heard(&line)).try_for_each(|thing| heard.send(thing))
    });
    said
}
