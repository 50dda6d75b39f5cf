//! What a caller did wrong, said so that it can be put right: the field, what is allowed, what was found, and where.
//!
//! Every error has a stable code, listed in `docs/error-codes.md`; a test holds that page to [`code::ALL`].
//! No error ever carries a secret: a value that may be one is described by its kind alone.

use std::fmt;

/// Stable error codes. A code names the option at fault, so that a program can branch on it and a person can search for it.
pub mod code {
    macro_rules! codes {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            $($(#[$doc])* pub const $name: &str = $text;)*
            /// All codes that Rust can raise, in the order of the documentation.
            pub const ALL: &[&str] = &[$($text),*];
        };
    }
    codes! {
        /// An option, or a field of a rules file, that does not exist.
        UNKNOWN_OPTION = "ERR_SLUICEGATE_UNKNOWN_OPTION";
        /// Options that are no object.
        INVALID_OPTIONS = "ERR_SLUICEGATE_INVALID_OPTIONS";
        /// Options that cannot be given together, or one that needs another.
        CONTRADICTION = "ERR_SLUICEGATE_CONTRADICTION";
        /// No limit was given, or a field that is required is missing.
        MISSING_OPTION = "ERR_SLUICEGATE_MISSING_OPTION";
        /// An option of a release that is not out yet.
        NOT_AVAILABLE = "ERR_SLUICEGATE_NOT_AVAILABLE";
        /// `limit`.
        INVALID_LIMIT = "ERR_SLUICEGATE_INVALID_LIMIT";
        /// `window`.
        INVALID_WINDOW = "ERR_SLUICEGATE_INVALID_WINDOW";
        /// `algorithm`.
        INVALID_ALGORITHM = "ERR_SLUICEGATE_INVALID_ALGORITHM";
        /// `burst`.
        INVALID_BURST = "ERR_SLUICEGATE_INVALID_BURST";
        /// `align`.
        INVALID_ALIGN = "ERR_SLUICEGATE_INVALID_ALIGN";
        /// `maxDelay`.
        INVALID_MAX_DELAY = "ERR_SLUICEGATE_INVALID_MAX_DELAY";
        /// `limits`: the list itself.
        INVALID_LIMITS = "ERR_SLUICEGATE_INVALID_LIMITS";
        /// `name` of a limiter, a rule or a policy.
        INVALID_NAME = "ERR_SLUICEGATE_INVALID_NAME";
        /// `cost`.
        INVALID_COST = "ERR_SLUICEGATE_INVALID_COST";
        /// A key that is no text, or is empty.
        INVALID_KEY = "ERR_SLUICEGATE_INVALID_KEY";
        /// `tenantId`.
        INVALID_TENANT_ID = "ERR_SLUICEGATE_INVALID_TENANT_ID";
        /// `keyExtractor`.
        INVALID_KEY_EXTRACTOR = "ERR_SLUICEGATE_INVALID_KEY_EXTRACTOR";
        /// `keyHeader`.
        INVALID_KEY_HEADER = "ERR_SLUICEGATE_INVALID_KEY_HEADER";
        /// `ipv6Subnet`.
        INVALID_IPV6_SUBNET = "ERR_SLUICEGATE_INVALID_IPV6_SUBNET";
        /// `jwt` and what is in it.
        INVALID_JWT = "ERR_SLUICEGATE_INVALID_JWT";
        /// `allow`.
        INVALID_ALLOW = "ERR_SLUICEGATE_INVALID_ALLOW";
        /// `deny`.
        INVALID_DENY = "ERR_SLUICEGATE_INVALID_DENY";
        /// `perAddress`.
        INVALID_PER_ADDRESS = "ERR_SLUICEGATE_INVALID_PER_ADDRESS";
        /// `headers`.
        INVALID_HEADERS = "ERR_SLUICEGATE_INVALID_HEADERS";
        /// `reset`.
        INVALID_RESET = "ERR_SLUICEGATE_INVALID_RESET";
        /// `mode`.
        INVALID_MODE = "ERR_SLUICEGATE_INVALID_MODE";
        /// `maxKeys`.
        INVALID_MAX_KEYS = "ERR_SLUICEGATE_INVALID_MAX_KEYS";
        /// `clock`, or a time given to it.
        INVALID_CLOCK = "ERR_SLUICEGATE_INVALID_CLOCK";
        /// `onFailure` of an option or a rule.
        INVALID_ON_FAILURE = "ERR_SLUICEGATE_INVALID_ON_FAILURE";
        /// The time of a block.
        INVALID_DURATION = "ERR_SLUICEGATE_INVALID_DURATION";
        /// `rules`: a file that cannot be read.
        RULES_UNREADABLE = "ERR_SLUICEGATE_RULES_UNREADABLE";
        /// `rules`: a file or an object that is not what rules look like.
        INVALID_RULES = "ERR_SLUICEGATE_INVALID_RULES";
        /// A limiter of this `tenantId` and `name` lives in this process with another clock or `maxKeys`.
        NAME_CONFLICT = "ERR_SLUICEGATE_NAME_CONFLICT";
        /// A limiter that was closed.
        CLOSED = "ERR_SLUICEGATE_CLOSED";
        /// A fault inside Sluicegate itself; please report it.
        INTERNAL = "ERR_SLUICEGATE_INTERNAL";
    }
}

/// Which JavaScript error class a [`ConfigError`] becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value of the wrong kind, an option that does not exist, a contradiction: `TypeError`.
    Type,
    /// A value of the right kind outside what is allowed: `RangeError`.
    Range,
}

/// A bad option, rule or argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// `TypeError` or `RangeError` in JavaScript.
    pub kind: Kind,
    /// One of [`code::ALL`].
    pub code: &'static str,
    /// The path of the field, such as `limits[1].window`; empty when the fault is in no single field.
    pub field: String,
    /// What is wrong, without the field and the place.
    pub problem: String,
    /// Line in the file that the value came from, from 1.
    pub line: Option<usize>,
}

impl ConfigError {
    /// A value of the wrong kind.
    pub fn of_type(
        code: &'static str,
        field: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self { kind: Kind::Type, code, field: field.into(), problem: problem.into(), line: None }
    }

    /// A value outside its range.
    pub fn of_range(
        code: &'static str,
        field: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self { kind: Kind::Range, ..Self::of_type(code, field, problem) }
    }

    /// The same error, with the line it came from.
    #[must_use]
    pub fn at_line(mut self, line: Option<usize>) -> Self {
        self.line = self.line.or(line);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if self.field.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "{} {}", self.field, self.problem)
        }
    }
}

impl std::error::Error for ConfigError {}
