//! The golden vectors of `tests/vectors/`, through the memory store. The Node tests run the same files through `createRateLimiter`.
#![expect(clippy::unwrap_used, reason = "a malformed file fails the test")]

use std::sync::Arc;

use serde_json::Value;
use sluicegate::clock::{Clock, MILLISECOND};
use sluicegate::decision::{Decision, PolicyState};
use sluicegate::policy::{Algorithm, Policy};
use sluicegate::store::memory::{Charge, MemoryStore, Tracked};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn policy(value: &Value) -> Policy {
    let algorithm = Algorithm::ALL.iter().find(|(name, _)| value["algorithm"] == *name).unwrap().1;
    let mut policy = Policy::new(algorithm, number(&value["limit"]), number(&value["window"]));
    if let Some(burst) = value["burst"].as_f64() {
        policy = policy.with_burst(burst);
    }
    if let Some(max_delay) = value["maxDelay"].as_f64() {
        policy.max_delay = max_delay;
    }
    policy.aligned = value["align"] == "utc";
    policy
}

fn track(store: &MemoryStore, limits: &Value) -> Vec<Tracked> {
    let limits = limits.as_array().unwrap();
    limits
        .iter()
        .enumerate()
        .map(|(index, limit)| store.track(&index.to_string(), policy(limit)))
        .collect()
}

fn expected(state: &Value) -> PolicyState {
    PolicyState {
        admits: state["admits"].as_bool().unwrap(),
        limit: number(&state["limit"]),
        remaining: number(&state["remaining"]),
        reset_at: number(&state["resetAt"]),
        next_at: number(&state["nextAt"]),
        retry_after: state["retryAfter"].as_f64().unwrap_or(f64::INFINITY),
        delay: number(&state["delay"]),
    }
}

/// Runs one sequence; gives the number of answers compared.
fn run(sequence: &Value) -> usize {
    let clock = Arc::new(Clock::manual(0.0));
    let store = MemoryStore::new(Arc::clone(&clock), 1000);
    let key = store.fingerprint(b"client");
    let mut policies = track(&store, &sequence["limits"]);
    let mut answers = 0;
    for (index, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
        clock.set(number(&step["at"]) / MILLISECOND);
        assert_eq!(clock.now(), number(&step["at"]), "the clock is exact");
        let charges = [Charge { key, policies: &policies }];
        let cost = step["cost"].as_f64().unwrap_or(0.0);
        let decision: Decision = match step["do"].as_str().unwrap() {
            "check" => store.check(&charges, cost),
            "peek" => store.peek(&charges, cost),
            "refund" => {
                store.refund(&charges, cost, None);
                continue;
            }
            "reset" => {
                store.reset(key);
                continue;
            }
            "limits" => {
                policies = track(&store, &step["limits"]);
                continue;
            }
            other => panic!("unknown step {other}"),
        };
        let place = format!("{}, step {index}", sequence["name"]);
        let expect = &step["expect"];
        let states: Vec<PolicyState> =
            expect["policies"].as_array().unwrap().iter().map(expected).collect();
        assert_eq!(decision.policies.to_vec(), states, "{place}");
        let allowed = decision.outcome == sluicegate::decision::Outcome::Allowed;
        assert_eq!(expect["allowed"], allowed, "{place}");
        if let Some(binding) = expect["binding"].as_u64() {
            assert_eq!(decision.binding as u64, binding, "{place}");
        }
        answers += 1;
    }
    answers
}

fn run_file(name: &str, at_least: usize) {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let answers: usize = file["sequences"].as_array().unwrap().iter().map(run).sum();
    assert!(answers >= at_least, "{name} has {answers} answers");
}

#[test]
fn fixed_window_vectors() {
    run_file("fixed_window", 150);
}

#[test]
fn sliding_window_counter_vectors() {
    run_file("sliding_window_counter", 180);
}

#[test]
fn sliding_window_log_vectors() {
    run_file("sliding_window_log", 200);
}

#[test]
fn token_bucket_vectors() {
    run_file("token_bucket", 200);
}

#[test]
fn leaky_bucket_vectors() {
    run_file("leaky_bucket", 200);
}

#[test]
fn several_policies_vectors() {
    run_file("several_policies", 60);
}
