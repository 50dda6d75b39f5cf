//! Rust's errors as JavaScript's: a [`ConfigError`] becomes a `TypeError` or `RangeError` with `code` and `field`.

use napi::bindgen_prelude::{Env, Object};
use napi::{Error, JsError, JsRangeError, JsTypeError, JsValue, Result, Status, sys};

use crate::error::{ConfigError, Kind, code};

/// Throws the error in `env`; what is returned tells napi-rs that it is already thrown.
pub(super) fn throw(env: Env, error: ConfigError) -> Error {
    match try_throw(env, error) {
        Ok(()) => Error::new(Status::PendingException, String::new()),
        Err(error) => error,
    }
}

fn try_throw(env: Env, error: ConfigError) -> Result<()> {
    let reason = Error::new(error.code, error.to_string());
    let thrown = match (error.kind, error.code) {
        (_, code::CLOSED | code::INTERNAL) => JsError::from(reason).into_unknown(env),
        (Kind::Type, _) => JsTypeError::from(reason).into_unknown(env),
        (Kind::Range, _) => JsRangeError::from(reason).into_unknown(env),
    };
    let mut object = Object::from_raw(env.raw(), thrown.raw());
    object.set("field", error.field)?;
    if let Some(line) = error.line {
        object.set("line", u32::try_from(line).unwrap_or(u32::MAX))?;
    }
    env.throw(thrown)
}

/// Runs a callback's body so that neither an error nor a panic leaves it: both are thrown in JavaScript.
pub(super) fn guarded(
    env: sys::napi_env,
    body: impl FnOnce() -> std::result::Result<sys::napi_value, ConfigError>,
) -> sys::napi_value {
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let error = match answer {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error,
        Err(_) => panicked(),
    };
    let error = throw(Env::from_raw(env), error);
    if error.status != Status::PendingException {
        // SAFETY: `env` is that of the running callback.
        unsafe { JsError::from(error).throw_into(env) };
    }
    std::ptr::null_mut()
}

/// What a caught panic becomes. Its text is on standard error already, by the standard library's hook.
pub(super) fn panicked() -> ConfigError {
    ConfigError::of_type(code::INTERNAL, "", "a fault inside sluicegate; please report it")
}

/// What a closed limiter answers.
pub(super) fn closed() -> ConfigError {
    ConfigError::of_type(code::CLOSED, "", "the limiter is closed")
}
