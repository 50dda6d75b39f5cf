//! The memory store, through the public Rust API and on a clock that tests set: against a naive model, at its bound, over
//! time, from many threads, and with the largest numbers it takes.
#![expect(clippy::unwrap_used, reason = "what a test cannot get fails it")]

mod blocks;
mod bound;
mod extremes;
mod model;
mod model_test;
mod named;
mod reclaim;
#[path = "../support/mod.rs"]
mod support;
mod threads;
