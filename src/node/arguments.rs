//! JavaScript values on their way in: options as a [`Document`], strings by their UTF-16, numbers as doubles and never wrapped.

use napi::bindgen_prelude::{Env, FromNapiValue, JsObjectValue, Object, Unknown};
use napi::{JsValue, Result, ValueType, sys};

use crate::document::{Document, Value};
use crate::error::{ConfigError, code};
use crate::key::{Key, KeyRef};

/// Options nest this deep at most; deeper is a cycle.
const DEEPEST: usize = 32;

/// Reads an options object. What no option can be, a function above all, is kept by its kind.
pub(super) fn document(env: Env, value: Unknown<'_>) -> Result<Document> {
    read(env, value, 0).map(Document::from)
}

fn read(env: Env, value: Unknown<'_>, depth: usize) -> Result<Value> {
    if depth > DEEPEST {
        return Ok(Value::Other("an object without end"));
    }
    Ok(match value.get_type()? {
        ValueType::Undefined | ValueType::Null => Value::Null,
        ValueType::Boolean => Value::Bool(convert(env, value)?),
        ValueType::Number => Value::Number(convert(env, value)?),
        ValueType::String => Value::Text(convert(env, value)?),
        ValueType::Object => {
            let object: Object<'_> = convert(env, value)?;
            if object.is_array()? {
                let length = object.get_array_length()?;
                let item =
                    |index| Ok(Document::from(read(env, object.get_element(index)?, depth + 1)?));
                Value::List((0..length).map(item).collect::<Result<_>>()?)
            } else if object.is_date()?
                || object.is_promise()?
                || object.is_buffer()?
                || object.is_typedarray()?
            {
                Value::Other("an object of another kind")
            } else {
                let member = |name: String| {
                    let value: Unknown<'_> = object.get_named_property_unchecked(&name)?;
                    Ok((name, Document::from(read(env, value, depth + 1)?)))
                };
                Value::Map(Object::keys(&object)?.into_iter().map(member).collect::<Result<_>>()?)
            }
        }
        ValueType::Function => Value::Other("a function"),
        ValueType::BigInt => Value::Other("a bigint"),
        ValueType::Symbol => Value::Other("a symbol"),
        _ => Value::Other("a foreign value"),
    })
}

fn convert<T: FromNapiValue>(env: Env, value: Unknown<'_>) -> Result<T> {
    // SAFETY: the value lives in `env`, in the scope of the running call.
    unsafe { T::from_napi_value(env.raw(), value.raw()) }
}

/// A string's UTF-16. None if the value is no string.
pub(super) fn utf16(env: sys::napi_env, value: sys::napi_value) -> Option<Vec<u16>> {
    let mut length = 0;
    // SAFETY: N-API writes at most as many units as it is told there is room for, the closing NUL included.
    unsafe {
        let asked =
            sys::napi_get_value_string_utf16(env, value, std::ptr::null_mut(), 0, &raw mut length);
        if asked != sys::Status::napi_ok {
            return None;
        }
        let mut units = vec![0; length + 1];
        sys::napi_get_value_string_utf16(
            env,
            value,
            units.as_mut_ptr(),
            length + 1,
            &raw mut length,
        );
        units.truncate(length);
        Some(units)
    }
}

/// A string as UTF-8; lone surrogates become U+FFFD, which no header holds.
pub(super) fn utf8(env: sys::napi_env, value: sys::napi_value) -> Option<String> {
    utf16(env, value).map(|units| String::from_utf16_lossy(&units))
}

/// A number argument; `undefined` and `null` are absent, anything else is refused.
#[inline]
pub(super) fn number(
    env: sys::napi_env,
    value: Option<sys::napi_value>,
    code: &'static str,
    field: &str,
) -> std::result::Result<Option<f64>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    let mut number = 0.0;
    // SAFETY: `value` is an argument of the running call.
    if unsafe { sys::napi_get_value_double(env, value, &raw mut number) } == sys::Status::napi_ok {
        return Ok(Some(number));
    }
    match kind(env, value) {
        sys::ValueType::napi_undefined | sys::ValueType::napi_null => Ok(None),
        other => Err(ConfigError::of_type(
            code,
            field,
            format!("must be a whole number, not {}", kind_name(other)),
        )),
    }
}

/// A key argument: text.
pub(super) fn key(
    env: sys::napi_env,
    value: sys::napi_value,
) -> std::result::Result<Key, ConfigError> {
    if let Some(units) = utf16(env, value) {
        return Key::from_utf16(&units);
    }
    let problem = format!("must be text, not {}", kind_name(kind(env, value)));
    Err(ConfigError::of_type(code::INVALID_KEY, "key", problem))
}

/// Room for a key of the usual length.
pub(super) const USUAL_KEY: usize = 128;

/// A key argument that is short ASCII, as nearly every key is: it comes as the bytes that are counted under, on the
/// stack. None if it is anything else; [`key`] reads that by its UTF-16, in which lone surrogates stay what they are.
#[inline]
pub(super) fn usual_key(
    env: sys::napi_env,
    value: sys::napi_value,
    bytes: &mut [u8; USUAL_KEY],
) -> Option<KeyRef<'_>> {
    let mut length = 0;
    // SAFETY: N-API writes at most as many bytes as there is room for, the closing NUL included.
    let status = unsafe {
        sys::napi_get_value_string_utf8(
            env,
            value,
            bytes.as_mut_ptr().cast(),
            USUAL_KEY,
            &raw mut length,
        )
    };
    // Text that fills the room may have been cut.
    let whole = status == sys::Status::napi_ok && length < USUAL_KEY - 4;
    if whole { KeyRef::from_ascii(&bytes[..length]) } else { None }
}

pub(super) fn kind(env: sys::napi_env, value: sys::napi_value) -> sys::napi_valuetype {
    let mut kind = sys::ValueType::napi_undefined;
    // SAFETY: `value` is an argument of the running call.
    unsafe { sys::napi_typeof(env, value, &raw mut kind) };
    kind
}

fn kind_name(kind: sys::napi_valuetype) -> &'static str {
    match kind {
        sys::ValueType::napi_undefined => "undefined",
        sys::ValueType::napi_null => "null",
        sys::ValueType::napi_boolean => "a boolean",
        sys::ValueType::napi_number => "a number",
        sys::ValueType::napi_string => "a string",
        sys::ValueType::napi_symbol => "a symbol",
        sys::ValueType::napi_function => "a function",
        sys::ValueType::napi_bigint => "a bigint",
        _ => "an object",
    }
}
