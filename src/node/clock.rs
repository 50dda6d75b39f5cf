//! A clock that tests set.

use std::sync::Arc;

use napi::bindgen_prelude::{Env, Unknown};
use napi::{JsValue, Result};
use napi_derive::napi;

use super::arguments::number;
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
    #[napi(constructor, catch_unwind, ts_args_type = "milliseconds?: number | undefined | null")]
    pub fn new(env: Env, milliseconds: Option<Unknown<'_>>) -> Result<Self> {
        let given = milliseconds.map_or(Ok(None), |value| read(env, value));
        let time = given.map(|time| time.unwrap_or(0.0)).and_then(valid);
        let time = time.map_err(|error| throw(env, error))?;
        Ok(Self { clock: Arc::new(Clock::manual(time)) })
    }

    /// Puts the clock to `milliseconds`.
    #[napi(catch_unwind, ts_args_type = "milliseconds: number")]
    pub fn set(&self, env: Env, milliseconds: Unknown<'_>) -> Result<()> {
        self.put(env, milliseconds, 0.0)
    }

    /// Puts the clock forward by `milliseconds`, or back by less than nothing.
    #[napi(catch_unwind, ts_args_type = "milliseconds: number")]
    pub fn advance(&self, env: Env, milliseconds: Unknown<'_>) -> Result<()> {
        self.put(env, milliseconds, self.now())
    }

    /// The clock's time in Unix milliseconds.
    #[napi(catch_unwind)]
    pub fn now(&self) -> f64 {
        self.clock.now() / MILLISECOND
    }

    fn put(&self, env: Env, milliseconds: Unknown<'_>, from: f64) -> Result<()> {
        let missing = || ConfigError::of_type(code::INVALID_CLOCK, "clock", "needs a number");
        let time = read(env, milliseconds).and_then(|time| valid(from + time.ok_or_else(missing)?));
        self.clock.set(time.map_err(|error| throw(env, error))?);
        Ok(())
    }
}

fn read(env: Env, value: Unknown<'_>) -> std::result::Result<Option<f64>, ConfigError> {
    number(env.raw(), Some(value.raw()), code::INVALID_CLOCK, "clock")
}

fn valid(milliseconds: f64) -> std::result::Result<f64, ConfigError> {
    if (0.0..=LATEST_MS).contains(&milliseconds) {
        return Ok(milliseconds);
    }
    let problem = format!("must be from 0 to {LATEST_MS} milliseconds, not {milliseconds}");
    Err(ConfigError::of_range(code::INVALID_CLOCK, "clock", problem))
}
