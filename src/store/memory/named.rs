//! Stores that are shared by name: limiters of one process with the same tenant and name count together, whatever thread
//! they live in. A store ends with the last limiter that uses it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use super::{DEFAULT_MAX_KEYS, MemoryStore};
use crate::clock::Clock;
use crate::error::{ConfigError, code};

type Stores = HashMap<(String, String), Weak<MemoryStore>>;

static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);

impl MemoryStore {
    /// The store of `tenant` and `name`, made at first use. A clock or a bound that differs from the living store's is refused.
    pub fn named(
        tenant: &str,
        name: &str,
        clock: Option<Arc<Clock>>,
        max_keys: Option<usize>,
    ) -> Result<Arc<Self>, ConfigError> {
        let mut stores = STORES.lock();
        stores.retain(|_, store| store.strong_count() > 0);
        let key = (tenant.to_owned(), name.to_owned());
        let Some(store) = stores.get(&key).and_then(Weak::upgrade) else {
            let clock = clock.unwrap_or_else(|| Arc::new(Clock::System));
            let store = Arc::new(Self::new(clock, max_keys.unwrap_or(DEFAULT_MAX_KEYS)));
            stores.insert(key, Arc::downgrade(&store));
            return Ok(store);
        };
        let same_clock = match (&clock, &**store.clock()) {
            (None, Clock::System) => true,
            (Some(clock), _) => Arc::ptr_eq(clock, store.clock()),
            (None, Clock::Manual(_)) => false,
        };
        let conflict = |field: &str, what: &str| {
            let problem = format!(
                "differs from that of the living limiter of the same tenantId and name: {what}"
            );
            Err(ConfigError::of_type(code::NAME_CONFLICT, field, problem))
        };
        if !same_clock {
            return conflict("clock", "limiters that count together need one clock");
        }
        if max_keys.unwrap_or(DEFAULT_MAX_KEYS) != store.max_keys() {
            return conflict("maxKeys", &format!("it is {} there", store.max_keys()));
        }
        Ok(store)
    }
}
