use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::file::Fingerprint;
use super::{RulesFile, Watch, start};
use crate::document::{Document, Value};
use crate::error::{ConfigError, code};

/// A directory of its own for each test, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluicegate-watch-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Reports = Arc<Mutex<Vec<Result<Document, ConfigError>>>>;

/// A watch that remembers what it was told.
struct Watched {
    reports: Reports,
    watch: Watch,
}

impl Watched {
    fn start(path: &Path, listens: bool) -> Self {
        Self::from(path, RulesFile::read(path).unwrap().fingerprint, listens)
    }

    fn from(path: &Path, first: Fingerprint, listens: bool) -> Self {
        let reports = Reports::default();
        let told = Arc::clone(&reports);
        let watch = start(path, first, move |report| told.lock().unwrap().push(report), listens);
        Self { reports, watch: watch.unwrap() }
    }

    /// The version in the last good content that was reported, if the last report was good.
    fn version(&self) -> Option<f64> {
        let reports = self.reports.lock().unwrap();
        let Ok(Document { value: Value::Map(members), .. }) = reports.last()? else { return None };
        let Value::Number(version) = members.first()?.1.value else { return None };
        Some(version)
    }

    fn errors(&self) -> Vec<ConfigError> {
        let reports = self.reports.lock().unwrap();
        reports.iter().filter_map(|report| report.clone().err()).collect()
    }

    fn reaches(&self, version: u32) {
        eventually(|| self.version() == Some(f64::from(version)), || format!("{:?}", self.reports));
    }
}

fn eventually(condition: impl Fn() -> bool, state: impl Fn() -> String) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "still {}", state());
        sleep(Duration::from_millis(2));
    }
}

fn text(version: u32) -> String {
    format!("version: {version}\n")
}

/// Writes as careful programs do: beside the file, then over it.
fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

/// Each test of what must be caught runs with reports of the system, and without any.
fn both_ways(test: impl Fn(bool)) {
    test(true);
    test(false);
}

#[test]
fn a_write_in_place_is_seen() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..5 {
            fs::write(&path, text(version)).unwrap();
            watched.reaches(version);
        }
        assert!(watched.errors().is_empty());
    });
}

#[test]
fn a_file_put_in_the_place_of_the_old_one_is_seen() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..5 {
            replace(&path, &text(version));
            watched.reaches(version);
        }
        assert!(watched.errors().is_empty());
    });
}

#[test]
fn an_editor_that_moves_the_old_file_away_is_seen() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..4 {
            fs::rename(&path, directory.path("rules.yaml~")).unwrap();
            fs::write(&path, text(version)).unwrap();
            watched.reaches(version);
        }
    });
}

#[cfg(unix)]
#[test]
fn a_config_map_whose_link_is_swapped_is_seen() {
    use std::os::unix::fs::symlink;

    both_ways(|listens| {
        let directory = Directory::new();
        let swap = |version: u32| {
            let data = directory.path(&format!("..2026_{version}"));
            fs::create_dir(&data).unwrap();
            fs::write(data.join("rules.yaml"), text(version)).unwrap();
            let link = directory.path("..data_tmp");
            symlink(format!("..2026_{version}"), &link).unwrap();
            fs::rename(&link, directory.path("..data")).unwrap();
            let _ = fs::remove_dir_all(directory.path(&format!("..2026_{}", version - 1)));
        };
        swap(1);
        let path = directory.path("rules.yaml");
        symlink("..data/rules.yaml", &path).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..5 {
            swap(version);
            watched.reaches(version);
        }
        assert!(watched.errors().is_empty());
    });
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_elsewhere_is_followed_there() {
    use std::os::unix::fs::symlink;

    both_ways(|listens| {
        let (directory, elsewhere) = (Directory::new(), Directory::new());
        let (path, target) = (directory.path("rules.yaml"), elsewhere.path("real.yaml"));
        fs::write(&target, text(1)).unwrap();
        symlink(&target, &path).unwrap();
        let watched = Watched::start(&path, listens);
        replace(&target, &text(2));
        watched.reaches(2);
        fs::write(&target, text(3)).unwrap();
        watched.reaches(3);
    });
}

#[test]
fn a_file_that_is_gone_for_a_while_is_reported_and_found_again() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        fs::remove_file(&path).unwrap();
        eventually(|| !watched.errors().is_empty(), || "no error".into());
        let error = watched.errors().remove(0);
        assert_eq!(error.code, code::RULES_UNREADABLE);
        assert!(
            error
                .to_string()
                .starts_with(&format!("rules cannot be read from {}: ", path.display()))
        );
        sleep(Duration::from_secs(2));
        assert_eq!(watched.errors().len(), 1, "one fault is reported once");
        fs::write(&path, text(1)).unwrap();
        watched.reaches(1);
    });
}

#[test]
fn a_directory_that_is_made_anew_is_watched_anew() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("etc/rules.yaml");
        fs::create_dir(directory.path("etc")).unwrap();
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..4 {
            fs::remove_dir_all(directory.path("etc")).unwrap();
            fs::create_dir(directory.path("etc")).unwrap();
            fs::write(&path, text(version)).unwrap();
            watched.reaches(version);
        }
        fs::write(&path, text(4)).unwrap();
        watched.reaches(4);
    });
}

#[test]
fn the_last_of_many_changes_is_the_one_that_holds() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..52 {
            if version % 2 == 0 {
                replace(&path, &text(version));
            } else {
                fs::write(&path, text(version)).unwrap();
            }
            sleep(Duration::from_millis(18));
        }
        watched.reaches(51);
        let reports = watched.reports.lock().unwrap().len();
        assert!((1..=49).contains(&reports), "{reports} reports");
    });
}

#[test]
fn a_moment_without_content_is_not_reported() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        for version in 2..12 {
            fs::write(&path, "").unwrap();
            sleep(Duration::from_millis(10));
            fs::write(&path, text(version)).unwrap();
            watched.reaches(version);
        }
        assert!(watched.errors().is_empty(), "{:?}", watched.errors());
    });
}

#[test]
fn a_content_that_stays_bad_is_reported_once_with_its_place() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        fs::write(&path, "a: 1\nb: [").unwrap();
        eventually(|| !watched.errors().is_empty(), || "no error".into());
        fs::write(&path, "").unwrap();
        eventually(|| watched.errors().len() == 2, || "no second error".into());
        fs::write(&path, b"a: 1\nb: \xff").unwrap();
        eventually(|| watched.errors().len() == 3, || "no third error".into());
        fs::write(&path, text(2)).unwrap();
        watched.reaches(2);
        let errors = watched.errors();
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors.iter().all(|error| error.code == code::INVALID_RULES));
        assert_eq!(
            errors.iter().map(|error| error.line).collect::<Vec<_>>(),
            [Some(2), None, Some(2)]
        );
        assert!(errors.iter().all(|error| error.problem.contains("rules.yaml")));
    });
}

#[test]
fn a_touch_without_a_change_is_not_reported() {
    let directory = Directory::new();
    let path = directory.path("rules.yaml");
    fs::write(&path, text(1)).unwrap();
    let watched = Watched::start(&path, true);
    fs::write(&path, text(1)).unwrap();
    replace(&path, &text(1));
    fs::write(directory.path("other.yaml"), text(9)).unwrap();
    sleep(Duration::from_millis(600));
    assert!(watched.reports.lock().unwrap().is_empty());
}

#[test]
fn a_change_before_the_watch_began_is_seen() {
    let directory = Directory::new();
    let path = directory.path("rules.yaml");
    fs::write(&path, text(1)).unwrap();
    let first = RulesFile::read(&path).unwrap().fingerprint;
    fs::write(&path, text(2)).unwrap();
    Watched::from(&path, first, true).reaches(2);
}

#[test]
fn dropping_the_watch_ends_its_thread() {
    both_ways(|listens| {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let Watched { reports, watch } = Watched::start(&path, listens);
        let start = Instant::now();
        drop(watch);
        // The callback, and with it its reference, goes when the thread does.
        eventually(|| Arc::strong_count(&reports) == 1, || "running".into());
        assert!(start.elapsed() < Duration::from_secs(2));
    });
}

#[test]
fn a_callback_that_panics_does_not_end_the_watching() {
    let directory = Directory::new();
    let path = directory.path("rules.yaml");
    fs::write(&path, text(1)).unwrap();
    let first = RulesFile::read(&path).unwrap().fingerprint;
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let on_change = move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("as a test");
    };
    let _watch = start(&path, first, on_change, true).unwrap();
    for version in 2..4 {
        fs::write(&path, text(version)).unwrap();
        eventually(|| calls.load(Ordering::Relaxed) == version - 1, || format!("{calls:?}"));
    }
}

#[test]
fn what_is_no_file_of_rules_is_refused() {
    let directory = Directory::new();
    let refused = |path: &Path, reason: &str| {
        let error = RulesFile::read(path).unwrap_err();
        assert_eq!(error.code, code::RULES_UNREADABLE);
        let start = format!("rules cannot be read from {}: ", path.display());
        assert!(error.to_string().starts_with(&start), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    };
    refused(&directory.path("nowhere.yaml"), "os error 2");
    refused(&directory.0, "it is not a file");
    let large = directory.path("large.yaml");
    fs::write(&large, vec![b'#'; (8 << 20) + 1]).unwrap();
    refused(&large, "it is larger than 8 MiB");
}

/// By hand: `cargo test --no-default-features latency -- --ignored`.
#[test]
#[ignore = "a measurement"]
fn latency_of_a_change() {
    // With reports of the system it takes one settling, without them a look more.
    for (listens, most) in [(true, 200), (false, 500)] {
        let directory = Directory::new();
        let path = directory.path("rules.yaml");
        fs::write(&path, text(1)).unwrap();
        let watched = Watched::start(&path, listens);
        sleep(Duration::from_millis(100));
        let mut longest = Duration::ZERO;
        for version in 2..30 {
            sleep(Duration::from_millis(u64::from(version) * 13 % 240));
            let start = Instant::now();
            replace(&path, &text(version));
            watched.reaches(version);
            longest = longest.max(start.elapsed());
        }
        assert!(longest < Duration::from_millis(most), "{longest:?} with listens = {listens}");
    }
}
