//! The rules file of a limiter: found in the options, followed on a thread of its own, and what became of it told to
//! JavaScript on the event loop, which none of this keeps alive.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use napi::Status;
use napi::bindgen_prelude::FnArgs;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::document::{Document, Value};
use crate::limiter::Limiter;
use crate::watch::{Fingerprint, Watch, watch};

/// A JavaScript function that takes a level and a message. Weak: it does not keep the process alive.
pub(super) type Notify =
    ThreadsafeFunction<FnArgs<(String, String)>, (), FnArgs<(String, String)>, Status, false, true>;

/// The path that `rules` names, if it is one.
pub(super) fn rules_path(options: &Document) -> Option<PathBuf> {
    let Value::Map(members) = &options.value else { return None };
    members.iter().find_map(|(name, value)| match &value.value {
        Value::Text(path) if name == "rules" => Some(PathBuf::from(path)),
        _ => None,
    })
}

/// Follows the rules file as long as the limiter lives. The thread holds the limiter weakly: it must not keep it alive.
pub(super) fn watch_rules(
    limiter: &Arc<Limiter>,
    path: &Path,
    first: Fingerprint,
    notify: Notify,
) -> Option<Watch> {
    let limiter = Arc::downgrade(limiter);
    let shown = path.display().to_string();
    let notify = Arc::new(notify);
    let told = Arc::clone(&notify);
    let watching = watch(path, first, move |change| {
        let Some(limiter) = limiter.upgrade() else { return };
        match change.and_then(|document| limiter.replace_rules(&document)) {
            Ok(()) => tell(&told, "info", format!("rules reloaded from {shown}")),
            Err(error) => tell(
                &told,
                "error",
                format!("rules kept as they were, {shown} is not valid: {error}"),
            ),
        }
    });
    watching
        .map_err(|error| {
            tell(&notify, "error", format!("rules cannot be watched for changes: {error}"));
        })
        .ok()
}

pub(super) fn tell(notify: &Notify, level: &str, message: String) {
    notify.call((level.to_owned(), message).into(), ThreadsafeFunctionCallMode::NonBlocking);
}
