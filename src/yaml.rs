//! The text of a rules file, YAML or JSON, becomes a [`Document`] in which every value knows its line.
//!
//! JSON is read as the YAML it is, so both give the same lines and the same errors. Values follow the core schema of
//! YAML 1.2: `yes` and `on` are text, and so is everything in quotes. What a file may not hold: a key twice, a second
//! document, merge keys, tags other than `!!str`, keys that are no text. What the fields mean is not known here.

mod scalar;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use crate::document::{Document, Value};
use crate::error::{ConfigError, code};

/// The deepest nesting; rules need 8.
pub const MOST_DEPTH: usize = 64;
/// The most bytes of memory that anchors and aliases may copy, so that a small file cannot become a large one.
const MOST_COPIED: usize = 8 << 20;
/// What one value counts for beside its text.
const NODE_WEIGHT: usize = 64;

/// Reads the text of a rules file. `file` is its name for errors.
pub fn parse(text: &str, file: Option<&str>) -> Result<Document, ConfigError> {
    let fail = |fault: Fault| {
        let problem = format!("{}: {}", file.unwrap_or("rules"), fault.problem);
        // What is missing at the end of the text is missing in its last line, not in one that is not there.
        let line = fault.line.map(|line| line.min(text.lines().count()).max(1));
        ConfigError::of_type(code::INVALID_RULES, "", problem).at_line(line)
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The parser takes NUL for the end of the text, and half of the rules would pass for all of them.
    if let Some(before) = text.split_once('\0').map(|(before, _)| before) {
        let line = before.matches('\n').count() + 1;
        return Err(fail(Fault::at(line, "a NUL character has no place in rules")));
    }
    let text = as_plain_yaml(text);
    // A fault of the parser must not take the server with it; what was being read is lost, nothing else.
    catch_unwind(AssertUnwindSafe(|| read(&text)))
        .unwrap_or_else(|_| Err(Fault { line: None, problem: "cannot be read as YAML".into() }))
        .map_err(fail)
}

/// What is wrong with the text, and where.
struct Fault {
    line: Option<usize>,
    problem: String,
}

impl Fault {
    fn at(line: usize, problem: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into() }
    }
}

/// JSON with the two things that YAML does not know replaced by what it knows: surrogate pairs, as `json.dumps` of
/// Python writes them, and tabs that indent. In valid JSON tabs stand between values only and `\u` in quotes only.
fn as_plain_yaml(text: &str) -> Cow<'_, str> {
    let strange = text.contains('\t') || text.contains("\\ud") || text.contains("\\uD");
    let is_json = || serde_json::from_str::<serde_json::Value>(text).is_ok();
    if !text.trim_start().starts_with(['{', '[']) || !strange || !is_json() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\t']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\t') {
            plain.push(' ');
            rest = after;
        } else if let Some(character) = surrogate_pair(rest) {
            plain.push(character);
            rest = &rest[12..];
        } else {
            // Both bytes of `\\`, `\"`, …: the second must not be taken for the start of an escape.
            let (escape, after) = rest.split_at(2);
            plain.push_str(escape);
            rest = after;
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The character of `\ud83d\ude00` at the start of a text.
fn surrogate_pair(text: &str) -> Option<char> {
    let unit = |from: usize| {
        let escape = text.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok().filter(|found| *found > '\u{ffff}')
}

fn read(text: &str) -> Result<Document, Fault> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) =
            event.map_err(|fault| Fault::at(fault.marker().line(), fault.info().to_owned()))?;
        builder.take(event, span.start.line())?;
    }
    match builder.root {
        Some(root) if root.value != Value::Null => Ok(root),
        _ => Err(Fault { line: None, problem: "there is nothing in it".into() }),
    }
}

/// A list or a map whose end was not reached yet.
enum Open {
    List(Vec<Document>),
    Map {
        members: Vec<(String, Document)>,
        seen: HashSet<String>,
        /// The key whose value comes next, and its line.
        key: Option<(String, usize)>,
    },
}

/// A value that an alias may stand for.
struct Anchored {
    document: Document,
    weight: usize,
    depth: usize,
}

/// Puts the tree together from the events of the parser.
#[derive(Default)]
struct Builder {
    /// What is open, outermost first, with the line and the anchor of each.
    open: Vec<(Open, usize, usize)>,
    anchors: HashMap<usize, Anchored>,
    copied: usize,
    documents: usize,
    root: Option<Document>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Fault::at(line, "holds more than one document"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, style, anchor, tag.as_deref(), line)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), line)?;
                self.start(Open::List(Vec::new()), line, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), line)?;
                let (members, seen) = (Vec::new(), HashSet::new());
                self.start(Open::Map { members, seen, key: None }, line, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, line),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        line: usize,
    ) -> Result<(), Fault> {
        let is_text_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        if !is_text_tag {
            refuse_tag(tag, line)?;
        }
        let plain = style == ScalarStyle::Plain && !is_text_tag;
        if self.awaits_key() && plain && text == "<<" {
            return Err(Fault::at(
                line,
                "merge keys (<<) are not taken; an alias can stand for a whole value",
            ));
        }
        let value = if plain { scalar::resolve(text) } else { Value::Text(text.into_owned()) };
        self.value(Document { value, line: Some(line) }, anchor, line)
    }

    fn start(&mut self, open: Open, line: usize, anchor: usize) -> Result<(), Fault> {
        if self.open.len() >= MOST_DEPTH {
            return Err(Fault::at(line, format!("is nested deeper than {MOST_DEPTH}")));
        }
        if self.awaits_key() {
            return Err(Fault::at(line, "a key must be text, not a list or an object"));
        }
        self.open.push((open, line, anchor));
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some((open, line, anchor)) = self.open.pop() else { return Ok(()) };
        let value = match open {
            Open::List(items) => Value::List(items),
            Open::Map { members, .. } => Value::Map(members),
        };
        self.value(Document { value, line: Some(line) }, anchor, line)
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), Fault> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Fault::at(line, "an alias stands inside the value that it names"));
        };
        if self.open.len() + anchored.depth > MOST_DEPTH {
            return Err(Fault::at(line, format!("is nested deeper than {MOST_DEPTH}")));
        }
        self.copied += anchored.weight;
        if self.copied > MOST_COPIED {
            return Err(Fault::at(line, "aliases make more of it than rules can be"));
        }
        let document = Document { line: Some(line), ..anchored.document.clone() };
        self.value(document, 0, line)
    }

    /// Whether the next value is the key of a map.
    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some((Open::Map { key: None, .. }, ..)))
    }

    /// Puts a whole value where it belongs.
    fn value(&mut self, mut document: Document, anchor: usize, line: usize) -> Result<(), Fault> {
        if anchor != 0 {
            let (weight, depth) = measure(&document);
            self.copied += weight;
            if self.copied > MOST_COPIED {
                return Err(Fault::at(line, "anchors make more of it than rules can be"));
            }
            self.anchors.insert(anchor, Anchored { document: document.clone(), weight, depth });
        }
        match self.open.last_mut() {
            None => self.root = Some(document),
            Some((Open::List(items), ..)) => items.push(document),
            Some((Open::Map { members, seen, key }, ..)) => {
                if let Some((name, key_line)) = key.take() {
                    // Where the key stands is where one looks for a member, even if its value begins below.
                    document.line = Some(key_line);
                    members.push((name, document));
                } else {
                    let Value::Text(name) = document.value else {
                        return Err(Fault::at(line, "a key must be text; write it in quotes"));
                    };
                    if !seen.insert(name.clone()) {
                        return Err(Fault::at(line, format!("the key {name:?} stands here twice")));
                    }
                    *key = Some((name, line));
                }
            }
        }
        Ok(())
    }
}

fn refuse_tag(tag: Option<&Tag>, line: usize) -> Result<(), Fault> {
    match tag {
        Some(tag) => Err(Fault::at(line, format!("the tag {tag} has no meaning in rules"))),
        None => Ok(()),
    }
}

/// What a copy of a tree weighs, and how deep it is.
fn measure(document: &Document) -> (usize, usize) {
    let inner: Vec<(usize, &Document)> = match &document.value {
        Value::Text(text) => return (NODE_WEIGHT + text.len(), 0),
        Value::List(items) => items.iter().map(|item| (0, item)).collect(),
        Value::Map(members) => members.iter().map(|(key, member)| (key.len(), member)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Other(_) => {
            return (NODE_WEIGHT, 0);
        }
    };
    inner.into_iter().fold((NODE_WEIGHT, 1), |(weight, depth), (key, member)| {
        let (inner_weight, inner_depth) = measure(member);
        (weight + key + inner_weight, depth.max(inner_depth + 1))
    })
}
