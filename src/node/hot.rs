//! The functions that every request crosses, as plain N-API callbacks: `napi-derive` wraps a class method in bookkeeping
//! that costs more than the decision itself. Each function carries the limiter as its data pointer.

use std::ffi::c_void;
use std::rc::Rc;

use napi::bindgen_prelude::{Env, JsObjectValue, Object, Unknown};
use napi::{Result, check_status, sys};

use super::arguments::{USUAL_KEY, key, kind, number, usual_key, utf8, utf16};
use super::fault::{closed, guarded};
use super::limiter::{Inner, handle_of};
use crate::error::{ConfigError, code};
use crate::key::{Extraction, Extractor, Given, KeyRef, Request, Source};
use crate::limiter::{ActiveRules, Answer, Ask, RuleHandle, Undecided};

/// Nothing was decided: the address has to be read.
const NEEDS_ADDRESS: i32 = 1;
/// Nothing was decided: what was given is no address.
const INVALID_ADDRESS: i32 = 2;
/// Nothing was decided: the token's signing key is not here.
const NEEDS_KEYS: i32 = 4;
/// Decided in the bucket of clients without an address.
const NO_ADDRESS: i32 = 8;
/// Nothing was decided: the rule is not in force any more.
const STALE_RULE: i32 = 32;
/// Decided by the address, because the extractor gave nothing.
const BLANK_KEY: i32 = 64;

type Answered = std::result::Result<sys::napi_value, ConfigError>;
type Body = fn(&Inner, sys::napi_env, &[sys::napi_value]) -> Answered;

/// Sets the functions on `object`.
pub(super) fn define(env: &Env, object: &mut Object<'_>, inner: &Rc<Inner>) -> Result<()> {
    define_one(env, object, inner, "checkPlain", callback::<CheckPlain>)?;
    define_one(env, object, inner, "checkKey", callback::<CheckKey>)?;
    define_one(env, object, inner, "peekKey", callback::<PeekKey>)?;
    define_one(env, object, inner, "checkRequest", callback::<CheckRequest>)?;
    define_one(env, object, inner, "keyOf", callback::<KeyOf>)?;
    #[cfg(debug_assertions)]
    define_one(env, object, inner, "panicForTest", callback::<Panics>)?;
    Ok(())
}

/// A body, known at compile time so that the callback around it is specific to it.
trait Hot {
    const BODY: Body;
}

struct CheckPlain;
impl Hot for CheckPlain {
    const BODY: Body = check_plain;
}

struct CheckKey;
impl Hot for CheckKey {
    const BODY: Body = check_key;
}

struct PeekKey;
impl Hot for PeekKey {
    const BODY: Body = peek_key;
}

struct CheckRequest;
impl Hot for CheckRequest {
    const BODY: Body = check_request;
}

struct KeyOf;
impl Hot for KeyOf {
    const BODY: Body = key_of;
}

/// A check that panics where the others decide, so that a test sees what becomes of it.
#[cfg(debug_assertions)]
struct Panics;
#[cfg(debug_assertions)]
impl Hot for Panics {
    const BODY: Body = |inner, env, _| answered(inner, env, |_, _| panic!("as a test"), None);
}

type Callback = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

fn define_one(
    env: &Env,
    object: &mut Object<'_>,
    inner: &Rc<Inner>,
    name: &str,
    callback: Callback,
) -> Result<()> {
    let data = Rc::into_raw(Rc::clone(inner)).cast_mut().cast::<c_void>();
    let mut function = std::ptr::null_mut();
    // SAFETY: `data` is a counted reference that only the finalizer gives back, so it outlives the function.
    unsafe {
        let length = name.len().cast_signed();
        let made = sys::napi_create_function(
            env.raw(),
            name.as_ptr().cast(),
            length,
            Some(callback),
            data,
            &raw mut function,
        );
        check_status!(made)?;
        let owner = std::ptr::null_mut();
        check_status!(sys::napi_add_finalizer(
            env.raw(),
            function,
            data,
            Some(release),
            std::ptr::null_mut(),
            owner
        ))?;
        object.set_named_property(name, Unknown::from_raw_unchecked(env.raw(), function))
    }
}

unsafe extern "C" fn release(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: made by `Rc::into_raw` in `define_one`, on this thread, and given back once.
    drop(unsafe { Rc::from_raw(data.cast_const().cast::<Inner>()) });
}

/// Most arguments that any of the functions takes.
const MOST_ARGUMENTS: usize = 6;

unsafe extern "C" fn callback<H: Hot>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let mut count = MOST_ARGUMENTS;
    let mut arguments = [std::ptr::null_mut(); MOST_ARGUMENTS];
    let mut data = std::ptr::null_mut();
    guarded(env, || {
        // SAFETY: `arguments` has room for `count`, and `data` is the `Inner` of `define_one`, alive as long as the function.
        let inner = unsafe {
            let this = std::ptr::null_mut();
            sys::napi_get_cb_info(
                env,
                info,
                &raw mut count,
                arguments.as_mut_ptr(),
                this,
                &raw mut data,
            );
            &*data.cast::<Inner>()
        };
        if inner.closed.get() {
            return Err(closed());
        }
        H::BODY(inner, env, &arguments[..count.min(MOST_ARGUMENTS)])
    })
}

/// [`check_key`] of the only rule, without cost and limit.
fn check_plain(inner: &Inner, env: sys::napi_env, arguments: &[sys::napi_value]) -> Answered {
    let ask = Ask { rule: RuleHandle { version: 0, index: 0 }, cost: None, limit: None };
    with_key(inner, env, argument(arguments, 0)?, ask, |answer, rules, key, ask| {
        inner.limiter.check_key(answer, rules, key, ask)
    })
}

fn check_key(inner: &Inner, env: sys::napi_env, arguments: &[sys::napi_value]) -> Answered {
    let ask = ask(env, arguments, 2)?;
    with_key(inner, env, argument(arguments, 1)?, ask, |answer, rules, key, ask| {
        inner.limiter.check_key(answer, rules, key, ask)
    })
}

fn peek_key(inner: &Inner, env: sys::napi_env, arguments: &[sys::napi_value]) -> Answered {
    let ask = ask(env, arguments, 2)?;
    with_key(inner, env, argument(arguments, 1)?, ask, |answer, rules, key, ask| {
        inner.limiter.peek_key(answer, rules, key, ask)
    })
}

#[inline]
fn with_key(
    inner: &Inner,
    env: sys::napi_env,
    value: sys::napi_value,
    ask: Ask,
    check: impl Fn(&mut Answer, &ActiveRules, KeyRef<'_>, Ask) -> std::result::Result<(), Undecided>,
) -> Answered {
    let mut bytes = [0; USUAL_KEY];
    if let Some(key) = usual_key(env, value, &mut bytes) {
        return answered(inner, env, |answer, rules| check(answer, rules, key, ask), None);
    }
    let key = key(env, value)?;
    answered(inner, env, |answer, rules| check(answer, rules, key.by_ref(), ask), None)
}

fn check_request(inner: &Inner, env: sys::napi_env, arguments: &[sys::napi_value]) -> Answered {
    let ask = ask(env, arguments, 3)?;
    let extraction = extract(inner, env, arguments, 1, arguments.get(5).copied());
    let check = |answer: &mut Answer, rules: &ActiveRules| {
        inner.limiter.check_request(answer, rules, &extraction, ask)
    };
    answered(inner, env, check, Some(&extraction))
}

/// Decides, writes the decision for JavaScript, and gives the flags. `extraction` is that of a request, whose response
/// has headers.
#[inline]
fn answered(
    inner: &Inner,
    env: sys::napi_env,
    check: impl FnOnce(&mut Answer, &ActiveRules) -> std::result::Result<(), Undecided>,
    extraction: Option<&Extraction>,
) -> Answered {
    let mut answer = inner.last.borrow_mut();
    let flags = match check(&mut answer, inner.rules.borrow_mut().load()) {
        Ok(()) => {
            inner.write(&answer, extraction.is_some());
            extraction.map_or(0, noteworthy)
        }
        Err(undecided) => decided(Err(undecided))?,
    };
    Ok(flags_value(env, flags))
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every body")]
fn key_of(inner: &Inner, env: sys::napi_env, arguments: &[sys::napi_value]) -> Answered {
    if inner.limiter.extractor().source() == Source::Custom {
        let units = arguments.get(1).and_then(|value| utf16(env, *value));
        if let Some(text) = units.and_then(|units| Extractor::custom_text(&units)) {
            let mut value = std::ptr::null_mut();
            // SAFETY: the text is alive during the call, which copies it.
            unsafe {
                let length = text.len().cast_signed();
                sys::napi_create_string_utf16(env, text.as_ptr(), length, &raw mut value);
            }
            return Ok(value);
        }
    }
    let flags = match extract(inner, env, arguments, 0, arguments.get(2).copied()) {
        Extraction::Found(identity) => {
            let text = identity.key.text();
            let mut value = std::ptr::null_mut();
            // SAFETY: the text is alive during the call, which copies it.
            unsafe {
                sys::napi_create_string_utf8(
                    env,
                    text.as_ptr().cast(),
                    text.len().cast_signed(),
                    &raw mut value,
                );
            }
            return Ok(value);
        }
        Extraction::NeedsAddress => NEEDS_ADDRESS,
        Extraction::InvalidAddress => INVALID_ADDRESS,
        Extraction::NeedsKeys => NEEDS_KEYS,
    };
    Ok(flags_value(env, flags))
}

/// What JavaScript should say once about a request that was decided.
fn noteworthy(extraction: &Extraction) -> i32 {
    let Extraction::Found(identity) = extraction else { return 0 };
    let no_address = if identity.no_address { NO_ADDRESS } else { 0 };
    let blank = if identity.blank { BLANK_KEY } else { 0 };
    no_address | blank
}

/// Reads the address at `first` and the credential after it, and tells who is asking.
#[inline]
fn extract(
    inner: &Inner,
    env: sys::napi_env,
    arguments: &[sys::napi_value],
    first: usize,
    keys_final: Option<sys::napi_value>,
) -> Extraction {
    let extractor = inner.limiter.extractor();
    let mut buffer = [0; LONGEST_ADDRESS];
    let address = read_address(env, arguments.get(first).copied(), &mut buffer);
    let credential = arguments.get(first + 1).copied();
    if extractor.source() == Source::Custom {
        let units = credential.and_then(|value| utf16(env, value));
        return extractor.extract_custom(units.as_deref(), address);
    }
    let credential = match extractor.source() {
        Source::Address => None,
        _ => credential.and_then(|value| utf8(env, value)),
    };
    let keys_final = keys_final.is_some_and(|value| is_true(env, value));
    let request = Request { address, credential: credential.as_deref(), keys_final };
    // Only a token's times need the clock.
    let now = if extractor.source() == Source::Authorization {
        inner.limiter.unix_seconds()
    } else {
        0.0
    };
    extractor.extract(&request, now)
}

/// Longer text is no address, with zone, port and brackets and all.
const LONGEST_ADDRESS: usize = 96;

/// Reads an address as Latin-1: an address is ASCII, and what is not is no address either way.
#[inline]
fn read_address(
    env: sys::napi_env,
    value: Option<sys::napi_value>,
    buffer: &mut [u8; LONGEST_ADDRESS],
) -> Given<'_> {
    let Some(value) = value else { return Given::Unread };
    let mut length = 0;
    // SAFETY: N-API writes at most the buffer's length, the closing NUL included.
    let status = unsafe {
        sys::napi_get_value_string_latin1(
            env,
            value,
            buffer.as_mut_ptr().cast(),
            LONGEST_ADDRESS,
            &raw mut length,
        )
    };
    if status == sys::Status::napi_ok {
        return Given::Text(std::str::from_utf8(&buffer[..length]).unwrap_or("not an address"));
    }
    if kind(env, value) == sys::ValueType::napi_undefined { Given::Unread } else { Given::Missing }
}

/// The rule, and the cost and limit from `first` on.
#[inline]
fn ask(
    env: sys::napi_env,
    arguments: &[sys::napi_value],
    first: usize,
) -> std::result::Result<Ask, ConfigError> {
    let rule = number(env, arguments.first().copied(), code::INTERNAL, "rule")?.unwrap_or(-1.0);
    let cost = number(env, arguments.get(first).copied(), code::INVALID_COST, "cost")?;
    let limit = number(env, arguments.get(first + 1).copied(), code::INVALID_LIMIT, "limit")?;
    Ok(Ask { rule: handle_of(rule), cost, limit })
}

fn argument(
    arguments: &[sys::napi_value],
    index: usize,
) -> std::result::Result<sys::napi_value, ConfigError> {
    let missing = || ConfigError::of_type(code::INVALID_KEY, "key", "must be text, not undefined");
    arguments.get(index).copied().ok_or_else(missing)
}

/// What JavaScript has to do before the request can be decided; a bad argument stays an error.
pub(super) fn decided(
    answer: std::result::Result<(), Undecided>,
) -> std::result::Result<i32, ConfigError> {
    match answer {
        Ok(()) => Ok(0),
        Err(Undecided::NeedsAddress) => Ok(NEEDS_ADDRESS),
        Err(Undecided::InvalidAddress) => Ok(INVALID_ADDRESS),
        Err(Undecided::NeedsKeys) => Ok(NEEDS_KEYS),
        Err(Undecided::StaleRule) => Ok(STALE_RULE),
        Err(Undecided::Invalid(error)) => Err(error),
    }
}

fn is_true(env: sys::napi_env, value: sys::napi_value) -> bool {
    let mut answer = false;
    // SAFETY: `value` is an argument of the running call.
    unsafe { sys::napi_get_value_bool(env, value, &raw mut answer) };
    answer
}

/// The flags as a number, and no flags as `undefined`, which costs nothing.
#[inline]
fn flags_value(env: sys::napi_env, flags: i32) -> sys::napi_value {
    let mut value = std::ptr::null_mut();
    if flags != 0 {
        // SAFETY: the pointer is written before it is read; on failure it stays null, which is `undefined`.
        unsafe { sys::napi_create_int32(env, flags, &raw mut value) };
    }
    value
}
