//! Where the memory store's time comes from: microseconds since the Unix epoch, as whole numbers in an `f64`.
//!
//! The system clock is a wall-clock anchor, taken once in the process, plus monotonic time: a step of the wall clock
//! (NTP, an administrator) neither gives quota away nor locks anybody out. A manual clock stands where it is put, so
//! that tests need no sleep; it can be set to 0 and backwards.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds in a millisecond.
pub const MILLISECOND: f64 = 1e3;
/// Microseconds in a second.
pub const SECOND: f64 = 1e6;
/// Microseconds in a day.
pub const DAY: f64 = 86_400.0 * SECOND;
/// The latest time of a manual clock, in milliseconds: far enough from 2^53 microseconds for any window to be added.
pub const LATEST_MS: f64 = 8e12;

/// A source of time.
#[derive(Debug)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A clock that a test sets, in microseconds.
    Manual(AtomicU64),
}

impl Clock {
    /// A clock that stands at `milliseconds`.
    pub fn manual(milliseconds: f64) -> Self {
        let clock = Self::Manual(AtomicU64::new(0));
        clock.set(milliseconds);
        clock
    }

    /// Puts a manual clock to `milliseconds` (cut to whole microseconds from 0 to [`LATEST_MS`]); the system clock stays.
    pub fn set(&self, milliseconds: f64) {
        if let Self::Manual(micros) = self {
            let time = (milliseconds.clamp(0.0, LATEST_MS) * MILLISECOND).round();
            micros.store(time.to_bits(), Ordering::Relaxed);
        }
    }

    /// Now, in microseconds.
    #[inline]
    pub fn now(&self) -> f64 {
        match self {
            Self::System => system_now(),
            Self::Manual(micros) => f64::from_bits(micros.load(Ordering::Relaxed)),
        }
    }
}

/// The anchor: one pair of wall-clock and monotonic time for the whole process, so that all limiters agree.
#[inline]
fn system_now() -> f64 {
    static ANCHOR: OnceLock<(f64, Start)> = OnceLock::new();
    let (wall, start) = ANCHOR.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (micros(wall), Start::now())
    });
    wall + start.micros()
}

/// A duration in whole microseconds, which stay below 2^53 until the year 2255 even when counted from 1970.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 need 31 bits")]
fn micros(duration: Duration) -> f64 {
    duration.as_secs() as f64 * SECOND + f64::from(duration.subsec_micros())
}

/// An instant of the monotonic clock, in nanoseconds. [`std::time::Instant`] takes 72 of 677 instructions of a check more,
/// for what a clock cannot do: seconds and nanoseconds checked, subtracted and carried apart.
#[cfg(unix)]
struct Start(i64);

#[cfg(unix)]
impl Start {
    #[inline]
    fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(now.tv_sec * 1_000_000_000 + now.tv_nsec)
    }

    /// Whole microseconds since.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 for 285 years")]
    fn micros(&self) -> f64 {
        ((Self::now().0 - self.0) / 1000) as f64
    }
}

#[cfg(not(unix))]
struct Start(std::time::Instant);

#[cfg(not(unix))]
impl Start {
    fn now() -> Self {
        Self(std::time::Instant::now())
    }

    fn micros(&self) -> f64 {
        micros(self.0.elapsed())
    }
}
