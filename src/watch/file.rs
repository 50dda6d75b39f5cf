//! A rules file as it is on disk: its content, and what the file system says of it.

use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::document::Document;
use crate::error::{ConfigError, code};
use crate::yaml;

/// The largest rules file, in bytes.
const MOST_BYTES: u64 = 8 << 20;
/// Younger than this, a change can be followed by another one with the same time; FAT counts in steps of two seconds.
const RECENT: Duration = Duration::from_secs(3);

/// Tells one content of a file, or one way of being unreadable, from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

/// What a rules file holds now.
#[derive(Clone, Debug)]
pub struct RulesFile {
    /// The rules, not understood yet.
    pub document: Document,
    /// For [`watch`](super::watch()), which goes on from here.
    pub fingerprint: Fingerprint,
}

impl RulesFile {
    /// Reads a rules file, YAML or JSON.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let (content, fingerprint) = read(path);
        Ok(Self { document: parse(content?, path)?, fingerprint })
    }
}

/// The bytes of a file, or why there are none.
pub(super) fn read(path: &Path) -> (Result<Vec<u8>, ConfigError>, Fingerprint) {
    let content = bytes(path).map_err(|reason| reason.to_string());
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let content = content.map_err(|reason| {
        let problem = format!("cannot be read from {}: {reason}", path.display());
        ConfigError::of_range(code::RULES_UNREADABLE, "rules", problem)
    });
    (content, Fingerprint(hasher.finish()))
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // To open a pipe is to wait for its writer, perhaps forever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(content)
}

/// The document in the bytes of a file.
pub(super) fn parse(content: Vec<u8>, path: &Path) -> Result<Document, ConfigError> {
    let text = String::from_utf8(content).map_err(|fault| {
        let good = &fault.as_bytes()[..fault.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        let problem = format!("{}: is not UTF-8 text", path.display());
        ConfigError::of_type(code::INVALID_RULES, "", problem).at_line(Some(line))
    })?;
    yaml::parse(&text, Some(&path.display().to_string()))
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// Which file it is, where the system has a number for it.
    file: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
    /// When anything of it changed, which no program can set back.
    changed: Option<SystemTime>,
}

impl State {
    /// The state of a file; links are followed.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let (file, changed) = system(&metadata);
        Some(Self { file, length: metadata.len(), modified: metadata.modified().ok(), changed })
    }

    /// The part of the state of a directory that stays while its entries change.
    pub(super) fn identity(path: &Path) -> Option<Self> {
        let (file, _) = system(&fs::metadata(path).ok()?);
        Some(Self { file, length: 0, modified: None, changed: None })
    }

    /// Whether another change may have the same time as this one. A time in the future is as doubtful.
    pub(super) fn is_recent(&self) -> bool {
        self.changed
            .or(self.modified)
            .is_none_or(|time| time.elapsed().map_or(true, |age| age < RECENT))
    }
}

#[cfg(unix)]
fn system(metadata: &Metadata) -> ((u64, u64), Option<SystemTime>) {
    use std::os::unix::fs::MetadataExt as _;

    let seconds = u64::try_from(metadata.ctime()).unwrap_or_default();
    let nanos = u32::try_from(metadata.ctime_nsec()).unwrap_or_default();
    let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos));
    ((metadata.dev(), metadata.ino()), changed)
}

#[cfg(not(unix))]
fn system(_: &Metadata) -> ((u64, u64), Option<SystemTime>) {
    ((0, 0), None)
}
