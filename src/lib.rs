//! Sluicegate: rate limiting decided in Rust.
//!
//! A request flows one way, request → key → rule → store → decision → headers, and each arrow is one function in one file.
//!
//! | layer | modules | what they are |
//! |---|---|---|
//! | 0 | [`clock`], [`error`], [`document`], [`policy`], [`decision`] | nouns |
pub mod clock;
pub mod decision;
pub mod document;
pub mod error;
pub mod policy;
pub mod rule;
pub mod watch;
pub mod yaml;
