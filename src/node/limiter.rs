//! The limiter's class: setting up and administration. Checks go through the functions that [`NativeLimiter::hot`] makes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use napi::bindgen_prelude::{ClassInstance, Env, Float64Array, FnArgs, Function, Object, Unknown};
use napi::{JsValue, Result};
use napi_derive::napi;

use super::arguments::{document, key, number};
use super::clock::ManualClock;
use super::fault::{closed, throw};
use super::rules::{Notify, rules_path, watch_rules};
use super::{hot, output};
use crate::document::{Document, Value};
use crate::error::{ConfigError, code};
use crate::key::Source;
use crate::limiter::{Answer, Ask, CachedRules, Limiter, Receipt, RuleHandle};
use crate::watch::{RulesFile, Watch};
use crate::whole::floor;

/// A rule's handle is one number in JavaScript: the version of the rules above, the index below.
const INDEXES: f64 = 1_048_576.0;

/// What the checks and the class share. It stays on one thread; only `limiter` is seen by others.
pub(super) struct Inner {
    pub(super) limiter: Arc<Limiter>,
    pub(super) rules: RefCell<CachedRules>,
    /// Where decisions are written. Strong: the array lives as long as this.
    output: RefCell<Float64Array>,
    /// The last answer: written by each check, and kept for what is asked about it afterwards.
    pub(super) last: RefCell<Answer>,
    pub(super) closed: Cell<bool>,
}

impl Inner {
    /// Writes an answer for JavaScript; `with_headers` says whether a response is made of it.
    #[inline]
    pub(super) fn write(&self, answer: &Answer, with_headers: bool) {
        let mut output = self.output.borrow_mut();
        // SAFETY: JavaScript reads the array only after the running call has returned, and never detaches it.
        let output = unsafe { output.as_mut() };
        output::write(
            output,
            &answer.decision,
            with_headers.then(|| self.limiter.headers()),
            handle_number(answer.ask.rule),
        );
    }
}

/// A limiter over the memory store. Made by `lib/limiter.js`, which is the public face.
#[napi]
pub struct NativeLimiter {
    inner: Rc<Inner>,
    /// Follows the rules file; ends when it is dropped.
    watch: Option<Watch>,
}

#[napi]
impl NativeLimiter {
    /// Reads and checks all options; decisions are written to `output`; `notify` is told of reloads.
    #[napi(
        constructor,
        catch_unwind,
        ts_args_type = "options: object, output: Float64Array, notify: (level: string, message: string) => void"
    )]
    pub fn new(
        env: Env,
        options: Object<'_>,
        output: Float64Array,
        notify: Function<'_, FnArgs<(String, String)>, ()>,
    ) -> Result<Self> {
        let clock = read_clock(&options).map_err(|error| throw(env, error))?;
        let document = without_clock(document(env, options.to_unknown())?);
        let path = rules_path(&document);
        let file =
            path.as_deref().map(RulesFile::read).transpose().map_err(|error| throw(env, error))?;
        let rules = file.as_ref().map(|file| &file.document);
        let limiter = Limiter::new(&document, rules, clock).map_err(|error| throw(env, error))?;
        let limiter = Arc::new(limiter);
        let notify: Notify =
            notify.build_threadsafe_function().callee_handled::<false>().weak::<true>().build()?;
        let watch = match (path, file) {
            (Some(path), Some(file)) => watch_rules(&limiter, &path, file.fingerprint, notify),
            _ => None,
        };
        Self::around(env, limiter, output, watch)
    }

    /// A limiter with options of its own over the same counters' store.
    #[napi(catch_unwind, ts_args_type = "options: object, scope: string, output: Float64Array")]
    pub fn derive(
        &self,
        env: Env,
        options: Object<'_>,
        scope: String,
        output: Float64Array,
    ) -> Result<NativeLimiter> {
        let document = document(env, options.to_unknown())?;
        let limiter =
            self.open(env)?.derive(&document, &scope).map_err(|error| throw(env, error))?;
        Self::around(env, Arc::new(limiter), output, None)
    }

    fn around(
        env: Env,
        limiter: Arc<Limiter>,
        output: Float64Array,
        watch: Option<Watch>,
    ) -> Result<Self> {
        if output.len() < output::LENGTH as usize {
            let problem = format!("must be a Float64Array of length {}", output::LENGTH);
            return Err(throw(env, ConfigError::of_type(code::INTERNAL, "output", problem)));
        }
        let output = RefCell::new(output);
        let rules = RefCell::new(limiter.cached_rules());
        let inner =
            Inner { limiter, rules, output, last: RefCell::default(), closed: Cell::new(false) };
        Ok(Self { inner: Rc::new(inner), watch })
    }

    /// The functions that decide: `checkKey`, `peekKey` and `checkRequest`, plain and fast. `checkPlain` takes a key alone.
    #[napi(
        catch_unwind,
        ts_return_type = "Record<'checkPlain' | 'checkKey' | 'peekKey' | 'checkRequest' | 'keyOf', Function>"
    )]
    pub fn hot<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let mut functions = Object::new(env)?;
        hot::define(env, &mut functions, &self.inner)?;
        Ok(functions)
    }

    /// What to read from a request: `address`, `header`, `authorization`, `custom` or `composite`.
    #[napi(getter, catch_unwind)]
    pub fn source(&self) -> &'static str {
        match self.inner.limiter.extractor().source() {
            Source::Address => "address",
            Source::Header => "header",
            Source::Authorization => "authorization",
            Source::Custom => "custom",
            Source::Composite => "composite",
        }
    }

    /// The header of API keys, in lower case.
    #[napi(getter, catch_unwind)]
    pub fn key_header(&self) -> String {
        self.inner.limiter.extractor().key_header().to_owned()
    }

    /// Whether tokens are verified before their subject is trusted.
    #[napi(getter, catch_unwind)]
    pub fn verifies(&self) -> bool {
        self.inner.limiter.extractor().verifies()
    }

    /// Whether every request's address is needed.
    #[napi(getter, catch_unwind)]
    pub fn reads_address(&self) -> bool {
        self.inner.limiter.always_reads_address()
    }

    /// Whether a request's rule depends on its method and path; if not, its handle is 0.
    #[napi(getter, catch_unwind)]
    pub fn reads_route(&self) -> bool {
        self.inner.limiter.has_rules()
    }

    /// Whether `limit` is a function.
    #[napi(getter, catch_unwind)]
    pub fn limit_is_function(&self) -> bool {
        self.inner.limiter.limit_is_function()
    }

    /// Whether `cost` is a function.
    #[napi(getter, catch_unwind)]
    pub fn cost_is_function(&self) -> bool {
        self.inner.limiter.cost_is_function()
    }

    /// Whether decisions are only reported.
    #[napi(getter, catch_unwind)]
    pub fn shadow(&self) -> bool {
        self.inner.limiter.is_shadow()
    }

    /// The names of the header fields, in the order of their values.
    #[napi(getter, catch_unwind)]
    pub fn header_names(&self) -> Vec<&'static str> {
        self.inner.limiter.headers().names().iter().map(|header| header.name).collect()
    }

    /// For each header field whether its value is one of `headerTexts()`; else it is a number in the output array.
    #[napi(getter, catch_unwind)]
    pub fn header_is_text(&self) -> Vec<bool> {
        self.inner.limiter.headers().names().iter().map(|header| header.is_text).collect()
    }

    /// Whether the rules have anything for the tenant.
    #[napi(getter, catch_unwind)]
    pub fn knows_tenant(&self) -> bool {
        self.inner.limiter.rules().knows_tenant()
    }

    /// The handle of a request's rule, or of none at all; −1 when a rule says not to look at it. It may be kept until `rulesVersion()` changes.
    #[napi(js_name = "match", catch_unwind)]
    pub fn match_route(&self, method: String, pattern: Option<String>, path: String) -> f64 {
        self.inner
            .limiter
            .match_route(&method, pattern.as_deref(), &path)
            .map_or(-1.0, handle_number)
    }

    /// Changes whenever other rules come into force.
    #[napi(catch_unwind)]
    pub fn rules_version(&self) -> u32 {
        self.inner.limiter.rules().version
    }

    /// A rule's name, the names of its policies (`perAddress` last) and its cost; null if it is not in force any more.
    #[napi(
        catch_unwind,
        ts_return_type = "{ name: string, policies: string[], cost: number } | null"
    )]
    pub fn rule<'env>(&self, env: &'env Env, rule: f64) -> Result<Option<Object<'env>>> {
        let Some((name, policies, cost)) = self.inner.limiter.describe(handle_of(rule)) else {
            return Ok(None);
        };
        let mut object = Object::new(env)?;
        object.set("name", name)?;
        object.set("policies", policies)?;
        object.set("cost", cost)?;
        Ok(Some(object))
    }

    /// The values of the text headers for the last decision.
    #[napi(catch_unwind)]
    pub fn header_texts(&self) -> Vec<String> {
        self.inner.limiter.header_texts(&self.inner.last.borrow())
    }

    /// A receipt for what the last decision charged; undefined if it charged nothing.
    #[napi(catch_unwind)]
    pub fn charge(&self) -> Option<NativeReceipt> {
        self.inner.last.borrow().receipt().map(|receipt| NativeReceipt { receipt })
    }

    /// Gives back what a receipt is for.
    #[napi(catch_unwind)]
    pub fn refund_charge(&self, receipt: &NativeReceipt) {
        if !self.inner.closed.get() {
            self.inner.limiter.refund(&receipt.receipt);
        }
    }

    /// Gives `cost` back to a key.
    #[napi(catch_unwind, ts_args_type = "rule: number, key: string, cost: number")]
    pub fn refund_key(
        &self,
        env: Env,
        rule: f64,
        key_text: Unknown<'_>,
        cost: Unknown<'_>,
    ) -> Result<()> {
        let limiter = self.open(env)?;
        let refund = || {
            let key = key(env.raw(), key_text.raw())?;
            let cost = number(env.raw(), Some(cost.raw()), code::INVALID_COST, "cost")?;
            hot::decided(limiter.refund_key(
                &limiter.rules(),
                &key,
                Ask { rule: handle_of(rule), cost, limit: None },
            ))
        };
        refund().map(|_| ()).map_err(|error| throw(env, error))
    }

    /// Forgets what was counted for a key.
    #[napi(catch_unwind, ts_args_type = "key: string")]
    pub fn reset_key(&self, env: Env, key_text: Unknown<'_>) -> Result<()> {
        let limiter = self.open(env)?;
        let key = key(env.raw(), key_text.raw()).map_err(|error| throw(env, error))?;
        limiter.reset(&key);
        Ok(())
    }

    /// Denies a key for `ms` milliseconds.
    #[napi(catch_unwind, ts_args_type = "key: string, ms: number")]
    pub fn block_key(&self, env: Env, key_text: Unknown<'_>, ms: Unknown<'_>) -> Result<()> {
        let limiter = self.open(env)?;
        let block = || {
            let key = key(env.raw(), key_text.raw())?;
            let missing = || ConfigError::of_type(code::INVALID_DURATION, "ms", "must be given");
            let ms = number(env.raw(), Some(ms.raw()), code::INVALID_DURATION, "ms")?
                .ok_or_else(missing)?;
            limiter.block(&key, ms)
        };
        block().map_err(|error| throw(env, error))
    }

    /// Ends a block; says whether there was one.
    #[napi(catch_unwind, ts_args_type = "key: string")]
    pub fn unblock_key(&self, env: Env, key_text: Unknown<'_>) -> Result<bool> {
        let limiter = self.open(env)?;
        let key = key(env.raw(), key_text.raw()).map_err(|error| throw(env, error))?;
        Ok(limiter.unblock(&key))
    }

    /// Takes the keys that tokens are verified by, a JSON Web Key Set as text.
    #[napi(catch_unwind)]
    pub fn set_jwks(&self, env: Env, jwks: String) -> Result<()> {
        self.open(env)?.extractor().set_jwks(&jwks).map_err(|error| throw(env, error))
    }

    /// Counts since the start.
    #[napi(
        catch_unwind,
        ts_return_type = "{ allowed: number, denied: number, allowlisted: number, denylisted: number, degraded: number, keys: number, evicted: number, overflowed: number, blocked: number }"
    )]
    pub fn stats<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let [allowed, denied, allowlisted, denylisted, degraded] = self.inner.limiter.outcomes();
        let holdings = self.inner.limiter.holdings();
        let counts = [
            ("allowed", allowed),
            ("denied", denied),
            ("allowlisted", allowlisted),
            ("denylisted", denylisted),
            ("degraded", degraded),
            ("keys", holdings.keys as u64),
            ("evicted", holdings.evicted),
            ("overflowed", holdings.overflowed),
            ("blocked", holdings.blocked as u64),
        ];
        let mut object = Object::new(env)?;
        for (name, count) in counts {
            object.set(name, double(count))?;
        }
        Ok(object)
    }

    /// Ends the limiter: later calls throw `ERR_SLUICEGATE_CLOSED`. May be called again.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        self.inner.closed.set(true);
        self.watch = None;
    }

    fn open(&self, env: Env) -> Result<&Limiter> {
        if self.inner.closed.get() { Err(throw(env, closed())) } else { Ok(&self.inner.limiter) }
    }
}

/// What was charged for a request.
#[napi]
pub struct NativeReceipt {
    receipt: Receipt,
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
fn double(count: u64) -> f64 {
    count as f64
}

pub(super) fn handle_number(rule: RuleHandle) -> f64 {
    f64::from(rule.version) * INDEXES + f64::from(rule.index)
}

/// The handle that a number stands for; a number that is none stands for no rule in force.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the casts saturate, and the sum is compared"
)]
pub(super) fn handle_of(number: f64) -> RuleHandle {
    // By far the most: the only rule of a limiter, or the first of its first rules.
    if number == 0.0 {
        return RuleHandle { version: 0, index: 0 };
    }
    let version = floor(number.max(0.0) / INDEXES);
    let rule = RuleHandle { version: version as u32, index: (number - version * INDEXES) as u32 };
    if handle_number(rule) == number {
        rule
    } else {
        RuleHandle { version: u32::MAX, index: u32::MAX }
    }
}

fn read_clock(
    options: &Object<'_>,
) -> std::result::Result<Option<Arc<crate::clock::Clock>>, ConfigError> {
    let absent = matches!(options.get::<Option<Unknown<'_>>>("clock"), Ok(None | Some(None)));
    if absent {
        return Ok(None);
    }
    match options.get::<ClassInstance<'_, ManualClock>>("clock") {
        Ok(Some(clock)) => Ok(Some(Arc::clone(&clock.clock))),
        _ => Err(ConfigError::of_type(code::INVALID_CLOCK, "clock", "must be a ManualClock")),
    }
}

fn without_clock(document: Document) -> Document {
    match document.value {
        Value::Map(members) => {
            Value::Map(members.into_iter().filter(|(name, _)| name != "clock").collect()).into()
        }
        _ => document,
    }
}
