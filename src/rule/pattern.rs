//! Which requests a route rule is for: the pattern of a rule against the path, or the framework's own pattern, of a
//! request.
//!
//! Whatever a framework may send to one handler has to come to one rule, however it is spelled: case, doubled and
//! trailing slashes, percent escapes, query and fragment make no difference. Dot segments are not resolved, for no
//! framework here does, and what only one of them does (`;` of Fastify 4) it does before it asks.
//! Matching allocates nothing but for paths of more than 16 segments.

use smallvec::SmallVec;

/// One part of a rule's pattern. The order of the variants is their precedence: the most specific comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    /// Text, unescaped and in lower case.
    Literal(Vec<u8>),
    /// `:param`, any one segment.
    Any,
    /// `*`, all that is left, be it nothing. Only at the end.
    Rest,
}

/// The pattern of a rule. Of two patterns that match one request, the lesser is the more specific: patterns compare
/// segment by segment from the left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern(Vec<Segment>);

impl Pattern {
    /// Reads the path of a rule, or says what it has to be.
    pub(super) fn parse(path: &str) -> Result<Self, &'static str> {
        if path != "*" && !path.starts_with('/') {
            return Err("must begin with /");
        }
        if path.contains(['?', '#']) {
            return Err("must be a path alone, without a query (?) or a fragment (#)");
        }
        if path.chars().any(char::is_control) {
            return Err("must not have control characters in it");
        }
        let mut segments = Vec::new();
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            if segments.last() == Some(&Segment::Rest) {
                return Err("may have * only at its end");
            }
            segments.push(match segment {
                "*" => Segment::Rest,
                ":" => return Err("has a : without a name"),
                _ if segment.starts_with(':') => Segment::Any,
                _ if segment.contains('*') => {
                    return Err(
                        "may have * only as a whole segment (a * of the path itself is %2A)",
                    );
                }
                _ => Segment::Literal(unescaped(segment.as_bytes()).collect()),
            });
        }
        Ok(Self(segments))
    }

    /// The pattern of all paths, `/*`.
    pub(super) fn any() -> Self {
        Self(vec![Segment::Rest])
    }

    /// Whether a request is meant by this pattern. `/reports/*` means `/reports` too: the frameworks differ on it,
    /// and a limit that a missing slash gets around is the worse mistake.
    pub(super) fn matches(&self, target: &Target<'_>) -> bool {
        let mut segments = target.segments.iter();
        for segment in &self.0 {
            let matches = match segment {
                Segment::Rest => return true,
                Segment::Any => segments.next().is_some_and(|found| !target.is_rest(found)),
                Segment::Literal(text) => {
                    segments.next().is_some_and(|found| target.spells(found, text))
                }
            };
            if !matches {
                return false;
            }
        }
        segments.next().is_none()
    }
}

/// What a request asks for, cut into its segments.
pub(super) struct Target<'a> {
    segments: SmallVec<[&'a [u8]; 16]>,
    /// Whether this is the pattern of a framework, whose segments are text and not escaped, and may stand for others.
    is_pattern: bool,
}

impl<'a> Target<'a> {
    /// The path, or the whole URL, that a client asked for.
    pub(super) fn path(url: &'a str) -> Self {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        // `GET http://host/path` is a legal request line, and frameworks route it by its path.
        let path = match path.split_once("://") {
            Some((scheme, rest)) if !scheme.contains('/') => {
                rest.find('/').map_or("", |start| &rest[start..])
            }
            _ => path,
        };
        Self { segments: segments(path), is_pattern: false }
    }

    /// The pattern by which a framework found its handler, such as `/users/:id`.
    pub(super) fn pattern(pattern: &'a str) -> Self {
        Self { segments: segments(pattern), is_pattern: true }
    }

    /// Whether a segment stands for any number of segments: `*` of Fastify, `*splat` and `{*splat}` of Express.
    fn is_rest(&self, segment: &[u8]) -> bool {
        self.is_pattern && (segment.starts_with(b"*") || segment.starts_with(b"{*"))
    }

    fn spells(&self, segment: &[u8], text: &[u8]) -> bool {
        if self.is_pattern {
            segment.eq_ignore_ascii_case(text)
        } else {
            unescaped(segment).eq(text.iter().copied())
        }
    }
}

fn segments(path: &str) -> SmallVec<[&[u8]; 16]> {
    path.split('/').filter(|segment| !segment.is_empty()).map(str::as_bytes).collect()
}

/// The bytes of a segment with its valid escapes resolved, in lower case. `%2F` stays as it is, for a slash would
/// make two segments of one.
fn unescaped(segment: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = segment;
    std::iter::from_fn(move || {
        let (byte, length) = match *rest {
            [] => return None,
            [b'%', high, low, ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) if high * 16 + low != b'/' => (high * 16 + low, 3),
                _ => (b'%', 1),
            },
            [byte, ..] => (byte, 1),
        };
        rest = &rest[length..];
        Some(byte.to_ascii_lowercase())
    })
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
