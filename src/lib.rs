//! Sluicegate: rate limiting decided in Rust.
//!
//! A request flows one way, request → key → rule → store → decision → headers, and each arrow is one function in one file.
//!
//! | layer | modules | what they are |
//! |---|---|---|
//! | 0 | [`clock`], [`whole`], [`error`], [`document`], [`policy`], [`decision`] | nouns |
//! | 1 | [`yaml`], [`key`], [`list`], [`rule`], [`algorithm`], [`headers`] | pure functions |
//! | 2 | [`store`], [`watch`] | what keeps state, and what reads files |
//! | 3 | [`limiter`] | extract → match → check |
//! | 4 | `node` | the Node.js addon, the only place that names N-API |
//!
//! Imports point downward only; `tests/layers.rs` holds them to it.

pub mod algorithm;
pub mod clock;
pub mod decision;
pub mod document;
pub mod error;
pub mod headers;
pub mod key;
pub mod limiter;
pub mod list;
// A test binary has no JavaScript to register the addon with; `__test__/` tests it from there.
#[cfg(all(feature = "napi", not(test)))]
#[expect(unsafe_code, reason = "N-API is a C interface; each block says why it is sound")]
#[expect(unreachable_pub, reason = "what is public here is public in JavaScript")]
#[expect(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    reason = "napi-derive's way with arguments"
)]
mod node;
pub mod policy;
pub mod rule;
pub mod store;
pub mod watch;
pub mod whole;
pub mod yaml;
