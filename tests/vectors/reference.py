#!/usr/bin/env python3
"""The second opinion on the five algorithms: exact rational arithmetic, plain and slow.

Recomputes every expectation of the golden vectors beside this file and exits with 1 on any difference:

    python3 tests/vectors/reference.py [file.json ...]

Each algorithm says only what its state is, how time moves it and what it admits. Everything that is reported
(`remaining`, `retryAfter`, `nextAt`, `resetAt`) is searched for by that admission itself, never by a closed form, so
that an error in a closed form elsewhere cannot hide here.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path

DEFAULT_MAX_DELAY = 5_000_000
LATEST = 8_000_000_000_000_000
LONGEST_WINDOW = 366 * 86_400_000_000
MOST = {"sliding_window_log": 10**6}


class Policy:
    """One limit. All times are whole microseconds."""

    def __init__(self, fields):
        known = {"algorithm", "limit", "window", "burst", "align", "maxDelay"}
        require(set(fields) <= known, f"unknown field in {fields}")
        self.algorithm = fields["algorithm"]
        self.rules = ALGORITHMS[self.algorithm]
        self.limit = fields["limit"]
        self.window = fields["window"]
        self.aligned = "align" in fields
        self.max_delay = fields.get("maxDelay", DEFAULT_MAX_DELAY)
        self.capacity = fields.get("burst", self.limit) if self.limit > 0 else 0
        most = MOST.get(self.algorithm, 10**9)
        require(0 <= self.limit <= most and 0 <= self.capacity <= 10**9, f"limit out of range in {fields}")
        require(1000 <= self.window <= LONGEST_WINDOW and self.window % 1000 == 0, f"window not whole ms in {fields}")
        require(self.max_delay % 1000 == 0, f"maxDelay not whole ms in {fields}")
        require(not self.aligned or (self.algorithm == "fixed_window" and fields["align"] == "utc"), "bad align")
        require("burst" not in fields or self.algorithm.endswith("bucket"), "burst is only for buckets")
        require("maxDelay" not in fields or self.algorithm == "leaky_bucket", "maxDelay is only for leaky_bucket")

    def state_key(self):
        """What a change of limits may not touch: a new algorithm or window is a new state."""
        return self.algorithm, self.window, self.aligned


# Each algorithm works on a state, None for an unknown client:
#   stand    the state as it counts at `now`: moved on, and pulled back if the clock went back
#   keep     what even a denied check stores: the pull-back, and the cut of a level above a lowered capacity
#   admits   whether `cost` units would pass; the state stands at `now`
#   take     the state after `cost` units passed
#   refund   the state after `cost` units were given back
#   is_full  whether nothing is used, for the buckets; the windows name the instant (`full_at`) themselves


class FixedWindow:
    """State: count, end of the window."""

    @staticmethod
    def stand(policy, state, now):
        if state is None or now >= state[1]:
            return None
        count, end = state
        return count, min(end, now + policy.window)

    @staticmethod
    def keep(policy, state, now):
        if state is not None and state[1] > now + policy.window:
            return state[0], now + policy.window
        return state

    @staticmethod
    def admits(policy, state, cost, now):
        count = 0 if state is None else state[0]
        return count + cost <= policy.limit

    @staticmethod
    def take(policy, state, cost, now):
        if state is not None:
            return state[0] + cost, state[1]
        end = (now // policy.window + 1) * policy.window if policy.aligned else now + policy.window
        return cost, end

    @staticmethod
    def refund(policy, state, cost, now):
        return None if state is None else (max(0, state[0] - cost), state[1])

    @staticmethod
    def full_at(policy, state, now):
        return now if state is None or state[0] == 0 else state[1]


class SlidingWindowCounter:
    """State: number of the window, count of the window before, count of this one."""

    @staticmethod
    def stand(policy, state, now):
        number = now // policy.window
        if state is None:
            return number, 0, 0
        stored, previous, current = state
        if stored >= number:
            return number, previous, current
        if stored == number - 1:
            return number, current, 0
        return number, 0, 0

    @staticmethod
    def keep(policy, state, now):
        number = now // policy.window
        if state is not None and state[0] > number:
            return number, state[1], state[2]
        return state

    @staticmethod
    def admits(policy, state, cost, now):
        number, previous, current = state
        elapsed = now - number * policy.window
        exact = previous * (1 - Fraction(elapsed, policy.window)) + current + cost <= policy.limit
        # The engines compute with doubles in this order: a vector may not depend on the difference.
        double = float(previous) * (1.0 - float(elapsed) / float(policy.window)) + current + cost <= policy.limit
        require(exact == double, f"doubles and exact numbers part at {now} for cost {cost}: take other numbers")
        return exact

    @staticmethod
    def take(policy, state, cost, now):
        number, previous, current = state
        return number, previous, current + cost

    @staticmethod
    def refund(policy, state, cost, now):
        number, previous, current = state
        from_current = min(cost, current)
        return number, max(0, previous - (cost - from_current)), current - from_current

    @staticmethod
    def full_at(policy, state, now):
        number, previous, current = state
        if current > 0:
            return (number + 2) * policy.window
        return (number + 1) * policy.window if previous > 0 else now


class SlidingWindowLog:
    """State: (time, cost) of each admitted request, oldest first."""

    @staticmethod
    def stand(policy, state, now):
        pulled = [(min(time, now), cost) for time, cost in state or ()]
        return [(time, cost) for time, cost in pulled if time > now - policy.window]

    @staticmethod
    def keep(policy, state, now):
        return None if state is None else [(min(time, now), cost) for time, cost in state]

    @staticmethod
    def admits(policy, state, cost, now):
        return sum(cost for _, cost in state) + cost <= policy.limit

    @staticmethod
    def take(policy, state, cost, now):
        return [*state, (now, cost)]

    @staticmethod
    def refund(policy, state, cost, now):
        state = list(state)
        while state and cost > 0:
            time, newest = state.pop()
            if newest > cost:
                state.append((time, newest - cost))
            cost -= min(newest, cost)
        return state

    @staticmethod
    def full_at(policy, state, now):
        return state[-1][0] + policy.window if state else now


class TokenBucket:
    """State: tokens (a fraction), time at which they were counted."""

    @staticmethod
    def stand(policy, state, now):
        if state is None:
            return Fraction(policy.capacity), now
        tokens, time = state
        earned = Fraction(max(0, now - time) * policy.limit, policy.window)
        return min(tokens + earned, Fraction(policy.capacity)), now

    @staticmethod
    def keep(policy, state, now):
        return (state[0], now) if state is not None and state[1] > now else state

    @staticmethod
    def admits(policy, state, cost, now):
        return cost <= state[0]

    @staticmethod
    def take(policy, state, cost, now):
        return state[0] - cost, now

    @staticmethod
    def refund(policy, state, cost, now):
        return min(state[0] + cost, Fraction(policy.capacity)), now

    @staticmethod
    def is_full(policy, state):
        return state[0] == policy.capacity


class LeakyBucket:
    """State: level of the queue (a fraction), time at which it was measured."""

    @staticmethod
    def stand(policy, state, now):
        if state is None:
            return Fraction(0), now
        level, time = state
        drained = Fraction(max(0, now - time) * policy.limit, policy.window)
        return min(max(level - drained, Fraction(0)), Fraction(policy.capacity)), now

    @staticmethod
    def keep(policy, state, now):
        if state is None or policy.capacity == 0:
            return state
        level, time = state
        drained = level - Fraction(max(0, now - time) * policy.limit, policy.window)
        return (Fraction(policy.capacity), now) if drained > policy.capacity else (level, min(time, now))

    @staticmethod
    def wait(policy, state):
        return Fraction(0) if state[0] == 0 else state[0] * policy.window / policy.limit

    @staticmethod
    def admits(policy, state, cost, now):
        return state[0] + cost <= policy.capacity and LeakyBucket.wait(policy, state) <= policy.max_delay

    @staticmethod
    def take(policy, state, cost, now):
        return state[0] + cost, now

    @staticmethod
    def refund(policy, state, cost, now):
        return max(state[0] - cost, Fraction(0)), now

    @staticmethod
    def is_full(policy, state):
        return state[0] == 0


ALGORITHMS = {
    "fixed_window": FixedWindow,
    "sliding_window_counter": SlidingWindowCounter,
    "sliding_window_log": SlidingWindowLog,
    "token_bucket": TokenBucket,
    "leaky_bucket": LeakyBucket,
}


def first_instant(true_at, now):
    """The first whole microsecond from `now` on at which `true_at`, which once true stays true, is true."""
    if true_at(now):
        return now
    step = 1
    while not true_at(now + step):
        step *= 2
        require(step < 2**70, "never true")
    low, high = now + step // 2, now + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true_at(middle) else (middle, high)
    return high


def largest_cost(policy, state, now):
    """The largest cost that would pass now."""
    low, high = 0, policy.capacity + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if policy.rules.admits(policy, state, middle, now) else (low, middle)
    return low


def passes_from(policy, state, cost, now):
    """The first instant at which `cost` would pass if nobody else came; None if it never can."""
    if cost > policy.capacity:
        return None
    rules = policy.rules
    return first_instant(lambda t: rules.admits(policy, rules.stand(policy, state, t), cost, t), now)


def report(policy, before, after, asked, now, allowed):
    """One policy's part of the answer: `before` is what was asked of, `after` what is left; both stand at `now`."""
    rules = policy.rules
    passes = passes_from(policy, before, asked, now)
    admits = passes == now
    remaining = largest_cost(policy, after, now)
    if not admits and passes is not None:
        next_at = passes
    elif remaining == policy.capacity:
        next_at = now
    else:
        next_at = passes_from(policy, after, remaining + 1, now)
    if hasattr(rules, "full_at"):
        reset_at = rules.full_at(policy, after, now)
    else:
        reset_at = first_instant(lambda t: rules.is_full(policy, rules.stand(policy, after, t)), now)
    delay = 0
    if allowed and rules is LeakyBucket:
        wait = LeakyBucket.wait(policy, before)
        delay = -(-wait.numerator // wait.denominator)
    return {
        "admits": admits,
        "limit": policy.capacity,
        "remaining": remaining,
        "resetAt": reset_at,
        "nextAt": next_at,
        "retryAfter": None if passes is None else passes - now,
        "delay": delay,
    }


def binding(policies, allowed):
    """The policy that binds: denied, the longest wait; allowed, the least remaining; ties go to the first."""
    if allowed:
        return min(range(len(policies)), key=lambda i: policies[i]["remaining"])
    waits = [float("inf") if p["retryAfter"] is None else p["retryAfter"] for p in policies]
    return max(range(len(policies)), key=lambda i: waits[i])


class Limiter:
    """All limits of one client."""

    def __init__(self, limits):
        self.policies = [Policy(fields) for fields in limits]
        self.states = [None] * len(limits)

    def ask(self, cost, now, takes):
        """A check (`takes`) or a peek; returns what is to be expected."""
        asked = max(cost, 1)
        before = [p.rules.stand(p, s, now) for p, s in zip(self.policies, self.states)]
        allowed = all(p.rules.admits(p, s, asked, now) for p, s in zip(self.policies, before))
        after = before
        if takes and cost > 0:
            if allowed:
                after = [p.rules.take(p, s, cost, now) for p, s in zip(self.policies, before)]
                self.states = after
            else:
                self.states = [p.rules.keep(p, s, now) for p, s in zip(self.policies, self.states)]
        policies = [report(p, b, a, asked, now, allowed) for p, b, a in zip(self.policies, before, after)]
        expect = {"allowed": allowed, "policies": policies}
        if len(policies) > 1:
            expect["binding"] = binding(policies, allowed)
        return expect

    def copy(self):
        copy = Limiter([])
        copy.policies, copy.states = self.policies, list(self.states)
        return copy

    def passes(self, cost, now):
        """Whether a check would pass, with nothing left behind."""
        return self.copy().ask(cost, now, takes=True)["allowed"]

    def holds(self, cost, now, expect):
        """Holds the answer to a check against what really comes next if nobody else asks."""
        if expect["allowed"]:
            least = min(p["remaining"] for p in expect["policies"])
            require(least == 0 or self.passes(least, now), f"remaining {least} does not pass at {now}")
            require(not self.passes(least + 1, now), f"more than remaining {least} passes at {now}")
            return
        waits = [p["retryAfter"] for p in expect["policies"]]
        if None not in waits:
            wait = max(waits)
            require(self.passes(max(cost, 1), now + wait), f"denied after waiting {wait} from {now}")
            require(not self.passes(max(cost, 1), now + wait - 1), f"passes before waiting {wait} from {now}")

    def refund(self, cost, now):
        for index, policy in enumerate(self.policies):
            if self.states[index] is not None:
                standing = policy.rules.stand(policy, self.states[index], now)
                self.states[index] = policy.rules.refund(policy, standing, cost, now)

    def reset(self):
        self.states = [None] * len(self.policies)

    def change(self, limits):
        policies = [Policy(fields) for fields in limits]
        same = [p.state_key() for p in policies] == [p.state_key() for p in self.policies]
        require(same, "a change of limits may not change algorithm, window or align")
        self.policies = policies


def replay(sequence):
    """Plays a sequence; yields each step with what is to be expected of it, None where nothing is."""
    limiter = Limiter(sequence["limits"])
    for step in sequence["steps"]:
        now, action = step["at"], step["do"]
        require(isinstance(now, int) and 0 <= now <= LATEST, f"bad time {now}")
        expect = None
        if action in ("check", "peek"):
            expect = limiter.ask(step["cost"], now, takes=action == "check")
            if action == "check" and step["cost"] > 0:
                limiter.holds(step["cost"], now, expect)
        elif action == "refund":
            limiter.refund(step["cost"], now)
        elif action == "reset":
            limiter.reset()
        elif action == "limits":
            limiter.change(step["limits"])
        else:
            require(False, f"unknown action {action}")
        yield step, expect


def require(condition, message):
    if not condition:
        raise ValueError(message)


def differences(stated, computed, path=""):
    """Every place in which two JSON values differ, types included."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        for name in sorted(stated.keys() | computed.keys()):
            yield from differences(stated.get(name, "absent"), computed.get(name, "absent"), f"{path}.{name}")
    elif isinstance(stated, list) and isinstance(computed, list) and len(stated) == len(computed):
        for index, pair in enumerate(zip(stated, computed)):
            yield from differences(*pair, f"{path}[{index}]")
    elif type(stated) is not type(computed) or stated != computed:
        yield f"{path.lstrip('.')}: file says {stated!r}, reference {computed!r}"


def check_file(path):
    """Checks one file; returns its counts and the faults found."""
    sequences = json.loads(path.read_text())["sequences"]
    faults, steps, answers = [], 0, 0
    names = [sequence["name"] for sequence in sequences]
    faults += [f"the name {name!r} stands twice" for name in {n for n in names if names.count(n) > 1}]
    for sequence in sequences:
        if not sequence.get("why"):
            faults.append(f"{sequence['name']}: no why")
        try:
            for index, (step, computed) in enumerate(replay(sequence)):
                steps += 1
                answers += computed is not None
                for difference in differences(step.get("expect"), computed):
                    faults.append(f"{sequence['name']}, step {index}: {difference}")
        except (ValueError, KeyError) as fault:
            faults.append(f"{sequence['name']}: {fault!r}")
    return len(sequences), steps, answers, faults


def main(arguments):
    here = Path(__file__).resolve().parent
    paths = [Path(argument) for argument in arguments] or sorted(here.glob("*.json"))
    failed = not paths
    for path in paths:
        sequences, steps, answers, faults = check_file(path)
        verdict = f"{len(faults)} differ" if faults else "ok"
        print(f"{path.name}: {sequences} sequences, {steps} steps, {answers} answers: {verdict}")
        for fault in faults:
            print(f"  {fault}")
        failed = failed or bool(faults) or sequences == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
