//! The Node.js addon, and the only place that names N-API. JavaScript values enter and leave; everything they mean is decided below.
//!
//! Two ways cross the border. Setting up, administration and whatever else is rare goes through `napi-derive`'s classes. A
//! check goes through plain N-API callbacks (`hot.rs`): numbers and one or two strings in, one small number out, and the
//! decision in an array of doubles that JavaScript made. No panic crosses: it becomes an error with the code
//! `ERR_SLUICEGATE_INTERNAL`.

mod arguments;
mod clock;
mod fault;
mod hot;
mod limiter;
mod output;
mod rules;

use napi_derive::napi;

/// The length that the output array must have.
#[napi]
pub const OUTPUT_LENGTH: u32 = output::LENGTH;

/// The codes of all errors that the addon raises; `docs/error-codes.md` is held to them.
#[napi]
pub fn error_codes() -> Vec<&'static str> {
    crate::error::code::ALL.to_vec()
}
