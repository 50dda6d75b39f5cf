//! A clock that tests set.

use std::sync::Arc;

use napi::Result;
use napi::bindgen_prelude::Env;
use napi_derive::napi;

use super::fault::throw;
use crate::clock::{Clock, LATEST_MS, MILLISECOND};
use crate::error::{ConfigError, code};

/// A clock that stands where it is put, for tests: give it to a limiter as `clock`. Times are Unix milliseconds and may be
/// fractions; a microsecond is the smallest step. It can be set to 0 and backwards.
#[napi]
pub struct ManualClock {
    pub(super) clock: Arc<Clock>,
}

#[napi]
impl ManualClock {
    /// A clock that stands at `milliseconds`, 0 by default.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, milliseconds: Option<f64>) -> Result<Self> {
        let time = valid(milliseconds.unwrap_or(0.0)).map_err(|error| throw(env, error))?;
        Ok(Self { clock: Arc::new(Clock::manual(time)) })
    }

    /// Puts the clock to `milliseconds`.
    #[napi(catch_unwind)]
    pub fn set(&self, env: Env, milliseconds: f64) -> Result<()> {
        let time = valid(milliseconds).map_err(|error| throw(env, error))?;
        self.clock.set(time);
        Ok(())
    }

    /// Puts the clock forward by `milliseconds`, or back by less than nothing.
    #[napi(catch_unwind)]
    pub fn advance(&self, env: Env, milliseconds: f64) -> Result<()> {
        self.set(env, self.now() + milliseconds)
    }

    /// The clock's time in Unix milliseconds.
    #[napi(catch_unwind)]
    pub fn now(&self) -> f64 {
        self.clock.now() / MILLISECOND
    }
}

fn valid(milliseconds: f64) -> std::result::Result<f64, ConfigError> {
    if (0.0..=LATEST_MS).contains(&milliseconds) {
        return Ok(milliseconds);
    }
    let problem = format!("must be from 0 to {LATEST_MS} milliseconds, not {milliseconds}");
    Err(ConfigError::of_range(code::INVALID_CLOCK, "clock", problem))
}
