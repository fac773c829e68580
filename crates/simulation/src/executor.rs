//! Runs tasks one poll at a time in an order that the seed decides, so that every interleaving can happen.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use crate::clock::SimClock;
use crate::rng::Rng;

/// Which process a task belongs to: a crash takes all tasks of one.
pub type ProcessId = usize;

/// A task's future. Everything runs on one thread.
pub type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    process: ProcessId,
    future: TaskFuture,
    woken: Arc<Flag>,
    waker: Waker,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The tasks of a run.
pub struct Executor {
    tasks: Vec<Task>,
    /// Stopped processes and when they go on, by uptime.
    stopped: Vec<(ProcessId, u64)>,
    /// Polls so far.
    pub polls: u64,
}

impl Executor {
    /// No tasks.
    pub fn new() -> Self {
        Self { tasks: Vec::new(), stopped: Vec::new(), polls: 0 }
    }

    /// Adds a task of a process.
    pub fn spawn(&mut self, process: ProcessId, future: TaskFuture) {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        self.tasks.push(Task { process, future, woken, waker });
    }

    /// Kills a process: its tasks end where they stand.
    pub fn kill(&mut self, process: ProcessId) {
        self.tasks.retain(|task| task.process != process);
        self.stopped.retain(|(stopped, _)| *stopped != process);
    }

    /// Stops a process until this uptime.
    pub fn suspend(&mut self, process: ProcessId, until_ms: u64) {
        self.stopped.push((process, until_ms));
    }

    /// Lets all stopped processes go on.
    pub fn resume_all(&mut self) {
        self.stopped.clear();
    }

    /// Whether a process has tasks.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.tasks.iter().any(|task| task.process == process)
    }

    /// Polls one task that can go on, or else moves the clock. False if neither is possible before `until_ms`.
    pub fn step(&mut self, clock: &SimClock, rng: &mut Rng, until_ms: u64) -> bool {
        let uptime_ms = clock.uptime_ms();
        self.stopped.retain(|(_, until)| *until > uptime_ms);
        let can_go = |task: &Task| {
            task.woken.0.load(Ordering::Relaxed)
                && !self.stopped.iter().any(|(process, _)| *process == task.process)
        };
        let count = self.tasks.iter().filter(|task| can_go(task)).count();
        if count == 0 {
            let wake_ms = self.stopped.iter().map(|(_, until)| *until).min().unwrap_or(u64::MAX);
            // Without a timer before a stopped process goes on, time moves there.
            return clock.advance(until_ms.min(wake_ms))
                || (wake_ms <= until_ms && clock.uptime_ms() >= wake_ms);
        }
        let chosen = rng.draw() as usize % count;
        let Some(index) =
            self.tasks.iter().enumerate().filter(|(_, task)| can_go(task)).nth(chosen).map(|(i, _)| i)
        else {
            return false;
        };
        self.polls += 1;
        let task = &mut self.tasks[index];
        task.woken.0.store(false, Ordering::Relaxed);
        let waker = task.waker.clone();
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.tasks.swap_remove(index);
        }
        true
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self::new()
    }
}
