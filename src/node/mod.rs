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

use std::path::Path;

use napi_derive::napi;

/// The length that the output array must have.
#[napi]
pub const OUTPUT_LENGTH: u32 = output::LENGTH;

/// The codes of all errors that the addon raises; `docs/error-codes.md` is held to them.
#[napi]
pub fn error_codes() -> Vec<&'static str> {
    crate::error::code::ALL.to_vec()
}

/// The files of this addon that are loaded in the process, as far as the system tells. More than one means that named
/// limiters made through different copies do not share their counters.
#[napi]
pub fn loaded_addons() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files =
        maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let is_addon = |file: &&Path| {
        let stem =
            file.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("sluicegate."));
        stem && file.extension().is_some_and(|extension| extension == "node")
    };
    let mut addons: Vec<String> =
        files.filter(is_addon).map(|file| file.display().to_string()).collect();
    addons.sort_unstable();
    addons.dedup();
    addons
}
