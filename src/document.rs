//! Options and rules before they are understood: a tree of values, each with the line it came from, and the walk over
//! it that keeps the path of every field, so that an error can name both.
//!
//! The options of JavaScript and the rules file become the same tree and are read by the same code.

use std::borrow::Cow;

use crate::error::{ConfigError, code};

/// One value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The value.
    pub value: Value,
    /// Line in the file, from 1; absent for options given in code.
    pub line: Option<usize>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Absent: `null`, `undefined`, an empty YAML value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number, NaN and the infinities included, so that they can be refused by name.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Document>),
    /// A map in the order it was written; a key stands once.
    Map(Vec<(String, Document)>),
    /// Something no option takes: `a function`, `a bigint`.
    Other(&'static str),
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        Self { value, line: None }
    }
}

/// A value together with its path, such as `tenants.shop.routes[2].limit`.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    document: &'a Document,
    path: String,
}

impl<'a> Field<'a> {
    /// The root of a document; `path` may be empty.
    pub fn root(document: &'a Document, path: impl Into<String>) -> Self {
        Self { document, path: path.into() }
    }

    /// The path of the field.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The line of the field.
    pub fn line(&self) -> Option<usize> {
        self.document.line
    }

    /// The value itself.
    pub fn value(&self) -> &'a Value {
        &self.document.value
    }

    /// The document of this field.
    pub fn document(&self) -> &'a Document {
        self.document
    }

    /// A member of a map that is there and not null.
    pub fn get(&self, name: &str) -> Option<Field<'a>> {
        let Value::Map(members) = &self.document.value else { return None };
        let (_, document) = members.iter().find(|(key, _)| key == name)?;
        (document.value != Value::Null).then(|| self.member(name, document))
    }

    /// The members of a map. `problem` says what the field has to be.
    pub fn members(
        &self,
        code: &'static str,
        problem: &str,
    ) -> Result<Vec<(&'a str, Field<'a>)>, ConfigError> {
        let Value::Map(members) = &self.document.value else {
            return Err(self.wrong_type(code, problem));
        };
        Ok(members
            .iter()
            .map(|(key, document)| (key.as_str(), self.member(key, document)))
            .collect())
    }

    /// Refuses what is no map and, by name, members that are not `known`.
    pub fn expect_map(&self, code: &'static str, known: &[&str]) -> Result<(), ConfigError> {
        for (name, member) in self.members(code, "must be an object")? {
            if !known.contains(&name) {
                let problem = format!("is not an option here; allowed are {}", known.join(", "));
                return Err(ConfigError::of_type(code::UNKNOWN_OPTION, member.path, problem)
                    .at_line(member.document.line));
            }
        }
        Ok(())
    }

    /// The items of a list. `problem` says what the field has to be.
    pub fn items(&self, code: &'static str, problem: &str) -> Result<Vec<Field<'a>>, ConfigError> {
        let Value::List(items) = &self.document.value else {
            return Err(self.wrong_type(code, problem));
        };
        let item = |(index, document)| Field { document, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Text. `problem` says what the field has to be.
    pub fn text(&self, code: &'static str, problem: &str) -> Result<&'a str, ConfigError> {
        match &self.document.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong_type(code, problem)),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self, code: &'static str) -> Result<bool, ConfigError> {
        match self.document.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.wrong_type(code, "must be true or false")),
        }
    }

    /// A whole number from `least` to `most`.
    pub fn whole_number(
        &self,
        code: &'static str,
        least: f64,
        most: f64,
    ) -> Result<f64, ConfigError> {
        let allowed = format!("must be a whole number from {least} to {most}");
        match self.document.value {
            Value::Number(number) if number.fract() == 0.0 && (least..=most).contains(&number) => {
                Ok(number + 0.0)
            }
            Value::Number(_) => Err(self.out_of_range(code, &allowed)),
            _ => Err(self.wrong_type(code, &allowed)),
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, code: &'static str, words: &[(&str, T)]) -> Result<T, ConfigError> {
        let list = words.iter().map(|(word, _)| format!("'{word}'")).collect::<Vec<_>>().join(", ");
        let allowed = format!("must be one of {list}");
        let text = self.text(code, &allowed)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| self.out_of_range(code, &allowed))
    }

    /// "`problem`, not `what was found`", as a `TypeError`.
    pub fn wrong_type(&self, code: &'static str, problem: &str) -> ConfigError {
        ConfigError::of_type(code, self.path.clone(), format!("{problem}, not {}", self.found()))
            .at_line(self.line())
    }

    /// "`problem`, not `what was found`", as a `RangeError`.
    pub fn out_of_range(&self, code: &'static str, problem: &str) -> ConfigError {
        ConfigError::of_range(code, self.path.clone(), format!("{problem}, not {}", self.found()))
            .at_line(self.line())
    }

    /// A `TypeError` about this field that does not repeat its value.
    pub fn fault(&self, code: &'static str, problem: impl Into<String>) -> ConfigError {
        ConfigError::of_type(code, self.path.clone(), problem).at_line(self.line())
    }

    fn member(&self, name: &str, document: &'a Document) -> Field<'a> {
        // A name comes out of a file, and the path goes into a log.
        let name = if name.chars().any(char::is_control) {
            Cow::Owned(name.escape_debug().to_string())
        } else {
            Cow::Borrowed(name)
        };
        let path = if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) };
        Field { document, path }
    }

    /// The value in a few words, never a whole document and never more than a line.
    fn found(&self) -> String {
        match &self.document.value {
            Value::Null => "nothing".into(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) if number.is_infinite() => {
                if *number > 0.0 { "Infinity" } else { "-Infinity" }.into()
            }
            Value::Number(number) => number.to_string(),
            Value::Text(text) => {
                let short: String = text.chars().take(40).collect();
                format!("{short:?}")
            }
            Value::List(_) => "a list".into(),
            Value::Map(_) => "an object".into(),
            Value::Other(what) => (*what).into(),
        }
    }
}
