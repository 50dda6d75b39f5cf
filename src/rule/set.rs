//! All rules of a tenant, and which of them a request comes under.
//!
//! A document is taken whole or not at all: one bad rule of one tenant refuses it for every tenant, so that the rules
//! that hold are always rules that somebody wrote. `allow` and `deny` are only looked at here, not understood.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::pattern::{Pattern, Target};
use super::{RULE_FIELDS, Rule, is_function};
use crate::document::{Document, Field, Value};
use crate::error::{ConfigError, code};
use crate::policy::POLICY_FIELDS;

const TENANT_FIELDS: [&str; 5] = ["secrets", "default", "routes", "deny", "allow"];
const MOST_NAME: usize = 200;
const MOST_PATH: usize = 1024;

/// A secret that signs requests to the service. It never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Which secret of its tenant, so that one can be replaced while both are in use.
    pub id: String,
    /// As written: a `${VARIABLE}` in it is not resolved here.
    pub secret: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A rule that is for some requests only.
#[derive(Clone, Debug, PartialEq)]
struct Route {
    pattern: Pattern,
    /// In upper case; absent for any method.
    method: Option<String>,
    rule: usize,
}

impl Route {
    /// The most specific first. HEAD comes before GET, which stands in for it.
    fn precedence(&self) -> (&Pattern, bool, bool, Option<&str>) {
        let method = self.method.as_deref();
        (&self.pattern, method.is_none(), method == Some("GET"), method)
    }

    fn takes(&self, method: &str) -> bool {
        self.method.as_deref().is_none_or(|own| {
            own.eq_ignore_ascii_case(method)
                || (own == "GET" && method.eq_ignore_ascii_case("HEAD"))
        })
    }
}

/// The rules of one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// In the order of precedence.
    routes: Vec<Route>,
    default: Option<usize>,
    knows_tenant: bool,
    /// Who is refused, as written: a list of text.
    pub deny: Option<Document>,
    /// Who is not limited, as written: a list of text.
    pub allow: Option<Document>,
    /// Who may ask the service.
    pub secrets: Vec<Secret>,
}

impl RuleSet {
    /// One rule for all requests, with index 0.
    pub fn single(rule: Rule) -> Self {
        Self { rules: vec![rule], default: Some(0), knows_tenant: true, ..Self::default() }
    }

    /// Reads a whole document and gives the rules of `tenant`, or none if it has no such tenant.
    pub fn read(document: &Field<'_>, tenant: &str) -> Result<Self, ConfigError> {
        Ok(Self::read_all(document)?.remove(tenant).unwrap_or_default())
    }

    /// Reads a whole document: the rules of each tenant.
    pub fn read_all(document: &Field<'_>) -> Result<HashMap<String, Self>, ConfigError> {
        document.expect_map(code::INVALID_RULES, &["tenants"])?;
        let Some(tenants) = document.get("tenants") else {
            return Err(document.fault(code::MISSING_OPTION, "needs tenants"));
        };
        let allowed = "must be an object with the rules of each tenant";
        let mut all = HashMap::new();
        for (name, tenant) in tenants.members(code::INVALID_RULES, allowed)? {
            if name.is_empty() {
                return Err(tenant.fault(code::INVALID_RULES, "is a tenant without a name"));
            }
            all.insert(name.to_owned(), Self::read_tenant(&tenant)?);
        }
        Ok(all)
    }

    fn read_tenant(tenant: &Field<'_>) -> Result<Self, ConfigError> {
        tenant.expect_map(code::INVALID_RULES, &TENANT_FIELDS)?;
        let mut set = Self { knows_tenant: true, ..Self::default() };
        let mut names = HashMap::new();
        if let Some(routes) = tenant.get("routes") {
            let mut seen = BTreeMap::new();
            for route in routes.items(code::INVALID_RULES, "must be a list of rules")? {
                set.add_route(&route, &mut seen, &mut names)?;
            }
        }
        if let Some(default) = tenant.get("default") {
            let name = rule_name(&default)?.unwrap_or_else(|| "default".into());
            let rule = Rule::read(&default, name, &["name"])?;
            refuse_functions(&default)?;
            take_name(&default, &rule.name, &mut names)?;
            set.default = Some(set.rules.len());
            set.rules.push(rule);
        } else if let Some(line) = empty_member(tenant, "default") {
            // `default:` whose fields slipped to the left would leave everybody unlimited.
            let field = format!("{}.default", tenant.path());
            return Err(
                ConfigError::of_type(code::INVALID_RULES, field, "is empty").at_line(Some(line))
            );
        }
        set.routes.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        set.deny = list_of_text(tenant, "deny", code::INVALID_DENY)?;
        set.allow = list_of_text(tenant, "allow", code::INVALID_ALLOW)?;
        set.secrets = read_secrets(tenant)?;
        Ok(set)
    }

    fn add_route(
        &mut self,
        field: &Field<'_>,
        seen: &mut BTreeMap<(Pattern, Option<String>), String>,
        names: &mut HashMap<String, String>,
    ) -> Result<(), ConfigError> {
        let extra = ["match", "name", "skip"];
        field.expect_map(
            code::INVALID_RULES,
            &[&extra[..], &POLICY_FIELDS[..], &RULE_FIELDS[..]].concat(),
        )?;
        let Some(wanted) = field.get("match") else {
            return Err(field.fault(code::MISSING_OPTION, "needs match"));
        };
        let (method, path, pattern) = read_match(&wanted)?;
        let default_name = match &method {
            Some(method) => format!("{method} {path}"),
            None => path,
        };
        let name = rule_name(field)?.unwrap_or(default_name);
        let skip = field.get("skip");
        let rule = if skip.map_or(Ok(false), |skip| skip.boolean(code::INVALID_RULES))? {
            let others = POLICY_FIELDS.iter().chain(&RULE_FIELDS);
            let given: Vec<&str> =
                others.copied().filter(|name| field.get(name).is_some()).collect();
            if !given.is_empty() {
                let problem = format!("cannot skip together with {}", given.join(", "));
                return Err(field.fault(code::CONTRADICTION, problem));
            }
            Rule::skipping(name)
        } else {
            Rule::read(field, name, &extra)?
        };
        refuse_functions(field)?;
        take_name(field, &rule.name, names)?;
        let first = seen.insert((pattern.clone(), method.clone()), field.path().to_owned());
        if let Some(first) = first {
            let problem = format!("means the same requests as {first}");
            return Err(wanted.fault(code::INVALID_RULES, problem));
        }
        self.routes.push(Route { pattern, method, rule: self.rules.len() });
        self.rules.push(rule);
        Ok(())
    }

    /// The index of the rule that a request comes under; none if it is not limited.
    ///
    /// `pattern` is the framework's own pattern of the route, where there is one. A request is known by it and by its
    /// path: the more specific of the two answers, so that a rule for `/trpc/login` holds although the framework knows
    /// `/trpc/:name` only, and one for `/users/:id` holds however the framework reads the path.
    ///
    /// HEAD comes under the rules of GET, unless the same pattern has a rule of its own for HEAD.
    pub fn match_route(&self, method: &str, pattern: Option<&str>, path: &str) -> Option<usize> {
        let index = self.route_rule(method, pattern, path).or(self.default)?;
        self.rules.get(index).is_some_and(|rule| !rule.skip).then_some(index)
    }

    /// Whether [`RuleSet::match_route`] found no rule because there is one that skips.
    pub fn skips(&self, method: &str, pattern: Option<&str>, path: &str) -> bool {
        self.default.is_some() || self.route_rule(method, pattern, path).is_some()
    }

    fn route_rule(&self, method: &str, pattern: Option<&str>, path: &str) -> Option<usize> {
        if self.routes.is_empty() {
            return None;
        }
        let path = Target::path(path);
        let pattern = pattern.map(Target::pattern);
        let matches = |route: &&Route| {
            route.takes(method)
                && (route.pattern.matches(&path)
                    || pattern.as_ref().is_some_and(|pattern| route.pattern.matches(pattern)))
        };
        self.routes.iter().find(matches).map(|route| route.rule)
    }

    /// All rules, by index.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether requests that match no route are limited.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }

    /// Whether the document has this tenant at all.
    pub fn knows_tenant(&self) -> bool {
        self.knows_tenant
    }
}

/// `match`: the method in upper case, the path as written, and its pattern.
fn read_match(field: &Field<'_>) -> Result<(Option<String>, String, Pattern), ConfigError> {
    field.expect_map(code::INVALID_RULES, &["method", "path"])?;
    let (method, path) = (field.get("method"), field.get("path"));
    if method.is_none() && path.is_none() {
        return Err(field.fault(code::MISSING_OPTION, "needs a method, a path, or both"));
    }
    let method = method.map(|method| {
        let allowed = "must be an HTTP method such as GET";
        let text = method.text(code::INVALID_RULES, allowed)?;
        let fits = (1..=32).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        if fits {
            Ok(text.to_ascii_uppercase())
        } else {
            Err(method.out_of_range(code::INVALID_RULES, allowed))
        }
    });
    let Some(path) = path else {
        return Ok((method.transpose()?, "/*".into(), Pattern::any()));
    };
    let text = path.text(code::INVALID_RULES, "must be text such as /login")?;
    if text.len() > MOST_PATH {
        let problem = format!("is longer than {MOST_PATH} bytes");
        return Err(path.fault(code::INVALID_RULES, problem));
    }
    let pattern =
        Pattern::parse(text).map_err(|problem| path.out_of_range(code::INVALID_RULES, problem))?;
    Ok((method.transpose()?, text.to_owned(), pattern))
}

/// The `name` of a rule, which becomes a part of the key of its counters.
fn rule_name(field: &Field<'_>) -> Result<Option<String>, ConfigError> {
    let Some(name) = field.get("name") else { return Ok(None) };
    let allowed = format!("must be text of 1 to {MOST_NAME} characters");
    let text = name.text(code::INVALID_NAME, &allowed)?;
    let fits =
        (1..=MOST_NAME).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits {
        Ok(Some(text.to_owned()))
    } else {
        Err(name.out_of_range(code::INVALID_NAME, &allowed))
    }
}

/// Two rules of one name would share their counters.
fn take_name(
    field: &Field<'_>,
    name: &str,
    names: &mut HashMap<String, String>,
) -> Result<(), ConfigError> {
    let Some(first) = names.insert(name.to_owned(), field.path().to_owned()) else {
        return Ok(());
    };
    let line = field.get("name").and_then(|name| name.line()).or(field.line());
    let problem = format!("must be another than {name:?}, which {first} has");
    let path = format!("{}.name", field.path());
    Err(ConfigError::of_type(code::INVALID_NAME, path, problem).at_line(line))
}

/// A function belongs to the options of one limiter; rules are data that a file can hold.
fn refuse_functions(field: &Field<'_>) -> Result<(), ConfigError> {
    for (name, code) in [("limit", code::INVALID_LIMIT), ("cost", code::INVALID_COST)] {
        if let Some(member) = field.get(name).filter(is_function) {
            return Err(member.wrong_type(code, "must be a whole number"));
        }
    }
    Ok(())
}

/// The line of a member of a file that is there without a value. (In options, `undefined` is as good as absent.)
fn empty_member(field: &Field<'_>, name: &str) -> Option<usize> {
    let Value::Map(members) = field.value() else { return None };
    let (_, document) = members.iter().find(|(key, _)| key == name)?;
    document.line.filter(|_| document.value == Value::Null)
}

fn list_of_text(
    tenant: &Field<'_>,
    name: &str,
    code: &'static str,
) -> Result<Option<Document>, ConfigError> {
    let Some(list) = tenant.get(name) else { return Ok(None) };
    for item in list.items(code, "must be a list of addresses, blocks and keys")? {
        item.text(code, "must be text; write it in quotes")?;
    }
    Ok(Some(list.document().clone()))
}

/// No error here may tell what it found, even where a secret stands in the wrong place.
fn read_secrets(tenant: &Field<'_>) -> Result<Vec<Secret>, ConfigError> {
    let Some(list) = tenant.get("secrets") else { return Ok(Vec::new()) };
    let shape = "must be a list of { id, secret }";
    let Value::List(_) = list.value() else {
        return Err(list.fault(code::INVALID_RULES, shape));
    };
    let mut secrets: Vec<Secret> = Vec::new();
    for item in list.items(code::INVALID_RULES, shape)? {
        let Value::Map(_) = item.value() else {
            return Err(item.fault(code::INVALID_RULES, "must be an object with id and secret"));
        };
        item.expect_map(code::INVALID_RULES, &["id", "secret"])?;
        let text = |name: &str| {
            let Some(member) = item.get(name) else {
                return Err(item.fault(code::MISSING_OPTION, format!("needs {name}")));
            };
            match member.value() {
                Value::Text(text) if !text.is_empty() => Ok(text.clone()),
                _ => Err(member.fault(code::INVALID_RULES, "must be text and not empty")),
            }
        };
        let secret = Secret { id: text("id")?, secret: text("secret")? };
        if secrets.iter().any(|other| other.id == secret.id) {
            let problem = format!("has the id {:?} of another secret", secret.id);
            return Err(item.fault(code::INVALID_RULES, problem));
        }
        secrets.push(secret);
    }
    Ok(secrets)
}
