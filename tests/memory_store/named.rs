//! Stores that are shared by name: the same one for the same tenant and name, as long as somebody uses it.

use std::sync::{Arc, Weak};

use sluicegate::clock::Clock;
use sluicegate::document::{Document, Value};
use sluicegate::error::code;
use sluicegate::limiter::Limiter;
use sluicegate::store::memory::{DEFAULT_MAX_KEYS, MemoryStore};

fn named(tenant: &str, name: &str) -> Arc<MemoryStore> {
    MemoryStore::named(tenant, name, None, None).unwrap()
}

#[test]
fn the_same_tenant_and_name_are_one_store() {
    let first = named("tenant", "one store");
    assert!(Arc::ptr_eq(&first, &named("tenant", "one store")));
    assert!(Arc::ptr_eq(
        &first,
        &MemoryStore::named("tenant", "one store", None, Some(DEFAULT_MAX_KEYS)).unwrap()
    ));
    assert!(!Arc::ptr_eq(&first, &named("tenant", "another store")));
    assert!(!Arc::ptr_eq(&first, &named("another tenant", "one store")));
    assert!(!Arc::ptr_eq(&named("a", "b c"), &named("a b", "c")));
}

#[test]
fn another_clock_or_bound_is_refused() {
    let clock = Arc::new(Clock::manual(0.0));
    let open = |clock: Option<&Arc<Clock>>, max_keys| {
        MemoryStore::named("tenant", "conflicts", clock.map(Arc::clone), max_keys)
    };
    let living = open(Some(&clock), Some(10)).unwrap();
    let refusal = |clock, max_keys| {
        let error = open(clock, max_keys).unwrap_err();
        assert_eq!(error.code, code::NAME_CONFLICT);
        error.field
    };
    let other = Arc::new(Clock::manual(0.0));
    assert_eq!(refusal(Some(&other), Some(10)), "clock");
    assert_eq!(refusal(None, Some(10)), "clock");
    assert_eq!(refusal(Some(&clock), Some(11)), "maxKeys");
    assert_eq!(refusal(Some(&clock), None), "maxKeys");
    assert!(Arc::ptr_eq(&living, &open(Some(&clock), Some(10)).unwrap()));
    drop(living);
    // Nobody is left to conflict with.
    assert_eq!(open(Some(&other), Some(11)).unwrap().max_keys(), 11);
}

fn limiter(name: &str, limit: f64) -> Limiter {
    let options = [
        ("name", Value::Text(name.to_owned())),
        ("limit", Value::Number(limit)),
        ("window", Value::Text("1m".to_owned())),
    ];
    let members = options.into_iter().map(|(key, value)| (key.to_owned(), value.into()));
    Limiter::new(&Document::from(Value::Map(members.collect())), None, None).unwrap()
}

#[test]
fn a_named_store_ends_with_the_last_limiter_that_uses_it() {
    let (first, second) = (limiter("ends", 5.0), limiter("ends", 5.0));
    let store: Weak<MemoryStore> = Arc::downgrade(&named("default", "ends"));
    drop(first);
    assert!(store.upgrade().is_some());
    drop(second);
    assert!(store.upgrade().is_none());
}
