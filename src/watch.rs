//! Watches a rules file: its path enters, and each new content leaves as a [`Document`], or as the error that it is.
//!
//! The directory is watched and not the file, for most writers put a new file in the place of the old one; so is the
//! directory that a symbolic link leads to, for Kubernetes swaps the link. What is not reported from there (network
//! file systems, no watches left) is found by looking four times a second. What the rules mean is not known here: the
//! caller keeps the last good ones.

mod file;
#[cfg(test)]
mod tests;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

pub use file::{Fingerprint, RulesFile};

use crate::document::Document;
use crate::error::ConfigError;
use file::State;

/// How often the file is looked at when nothing was reported.
const POLL: Duration = Duration::from_millis(250);
/// A writer that is silent for this long is taken to be done.
const QUIET: Duration = Duration::from_millis(30);
/// How long a writer that is never silent is waited for.
const MOST_SETTLING: Duration = Duration::from_millis(200);
/// How long a bad content may last before it is reported: many writers empty the file before they fill it.
const GRACE: Duration = Duration::from_millis(150);

/// A file being watched, until this is dropped. A call of `on_change` that is under way may outlast it.
#[derive(Debug)]
pub struct Watch {
    stopped: Arc<AtomicBool>,
    wake: SyncSender<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // A full channel holds a wake-up already.
        let _ = self.wake.try_send(());
    }
}

/// Calls `on_change`, on a thread of its own, with each content of the file that differs from the one before it,
/// good or bad. `first` is the content that the caller has read, so that no change between is lost.
pub fn watch(
    path: &Path,
    first: Fingerprint,
    on_change: impl Fn(Result<Document, ConfigError>) + Send + 'static,
) -> io::Result<Watch> {
    start(path, first, on_change, true)
}

fn start(
    path: &Path,
    first: Fingerprint,
    on_change: impl Fn(Result<Document, ConfigError>) + Send + 'static,
    listens: bool,
) -> io::Result<Watch> {
    // The process may change its directory later.
    let path = std::path::absolute(path)?;
    let (wake, signs) = sync_channel(1);
    let stopped = Arc::new(AtomicBool::new(false));
    let watch = Watch { stopped: Arc::clone(&stopped), wake: wake.clone() };
    thread::Builder::new().name("sluicegate-rules".into()).spawn(move || {
        let listener = if listens { listener(wake) } else { None };
        let places = Places { listener, watched: Vec::new() };
        Watcher { path, seen: first, state: None, places, signs, stopped, on_change }.run();
    })?;
    Ok(watch)
}

/// Where changes are reported from, if the system can.
fn listener(wake: SyncSender<()>) -> Option<RecommendedWatcher> {
    let heard = move |event: notify::Result<notify::Event>| {
        // Reading the file is reported too, and must not make it be read again.
        let is_reading = event.is_ok_and(|event| match event.kind {
            EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
            _ => false,
        });
        if !is_reading {
            let _ = wake.try_send(());
        }
    };
    notify::recommended_watcher(heard).ok()
}

/// The directories that are listened to.
struct Places {
    listener: Option<RecommendedWatcher>,
    /// With what each of them was: a directory of the same name may be another one by now.
    watched: Vec<(PathBuf, Option<State>)>,
}

impl Places {
    /// Listens where the file is now. What cannot be listened to is left to polling.
    fn follow(&mut self, path: &Path) {
        let Some(listener) = &mut self.listener else { return };
        let target = path.canonicalize().ok();
        let mut wanted: Vec<(PathBuf, Option<State>)> = [Some(path), target.as_deref()]
            .into_iter()
            .filter_map(|path| path?.parent())
            .map(|directory| (directory.to_owned(), State::identity(directory)))
            .collect();
        wanted.dedup();
        if wanted == self.watched {
            return;
        }
        for (directory, _) in self.watched.drain(..) {
            // One that is gone is not watched any more anyway.
            let _ = listener.unwatch(&directory);
        }
        for (directory, identity) in wanted {
            if listener.watch(&directory, RecursiveMode::NonRecursive).is_ok() {
                self.watched.push((directory, identity));
            }
        }
    }
}

/// Why a wait ended.
#[derive(PartialEq)]
enum Wake {
    Stopped,
    Sign,
    Silence,
}

struct Watcher<F> {
    path: PathBuf,
    /// The last content that the caller knows of.
    seen: Fingerprint,
    /// What the file system said of the file just before it was last read.
    state: Option<State>,
    places: Places,
    signs: Receiver<()>,
    stopped: Arc<AtomicBool>,
    on_change: F,
}

impl<F: Fn(Result<Document, ConfigError>)> Watcher<F> {
    fn run(mut self) {
        self.places.follow(&self.path);
        // Since when the content is bad without having been reported.
        let mut doubt: Option<Instant> = None;
        // The first look is at once: the file may have changed, or gone, since the caller read it.
        let (mut wait, mut must_look) = (Duration::ZERO, true);
        loop {
            if self.wait(wait) == Wake::Stopped {
                return;
            }
            wait = POLL;
            if !must_look && !self.may_have_changed() {
                continue;
            }
            must_look = false;
            if self.settle() == Wake::Stopped {
                return;
            }
            self.state = State::of(&self.path);
            self.places.follow(&self.path);
            let (content, fingerprint) = file::read(&self.path);
            if fingerprint == self.seen {
                doubt = None;
                continue;
            }
            let document = content.and_then(|content| file::parse(content, &self.path));
            if document.is_err() {
                let left = GRACE.saturating_sub(doubt.get_or_insert_with(Instant::now).elapsed());
                if !left.is_zero() {
                    (wait, must_look) = (left, true);
                    continue;
                }
            }
            doubt = None;
            self.seen = fingerprint;
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            // What the caller does with it must not end the watching.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.on_change)(document)));
        }
    }

    fn may_have_changed(&self) -> bool {
        let state = State::of(&self.path);
        // A clock tick may hold two writes, and the file be read between them.
        state != self.state || state.is_some_and(|state| state.is_recent())
    }

    /// Waits for the writer to be done.
    fn settle(&self) -> Wake {
        let start = Instant::now();
        loop {
            let left = MOST_SETTLING.saturating_sub(start.elapsed());
            match self.wait(QUIET.min(left)) {
                Wake::Sign if !left.is_zero() => {}
                other => return other,
            }
        }
    }

    fn wait(&self, time: Duration) -> Wake {
        let wake = match self.signs.recv_timeout(time) {
            Ok(()) => Wake::Sign,
            Err(RecvTimeoutError::Timeout) => Wake::Silence,
            Err(RecvTimeoutError::Disconnected) => Wake::Stopped,
        };
        if self.stopped.load(Ordering::Acquire) { Wake::Stopped } else { wake }
    }
}
