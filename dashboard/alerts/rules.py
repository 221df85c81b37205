"""Which regressions a channel is notified of: the first of its rules that one meets decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.models import AlertRule, Channel, Regression
from dashboard.models.projects import case_name

SUSPECTED, CONFIRMED = AlertRule.State.SUSPECTED, AlertRule.State.CONFIRMED


@dataclass(frozen=True, slots=True)
class MeasuredSubject:
    """What one of a regression's changes was found in."""

    benchmark: str
    case: str
    metric: str


@dataclass(frozen=True, slots=True)
class RegressionFacts:
    """What rules look at. `percent` None: from nothing to something, which is always large enough."""

    subjects: tuple[MeasuredSubject, ...]
    branch: str
    state: str
    percent: float | None


def facts_of(regression: Regression) -> RegressionFacts:
    """One query; confirmed is only what is no longer being proved."""
    columns = [
        f"series__{name}"
        for name in ("configuration__case__benchmark", "configuration__case__key", "metric__name")
    ]
    own = regression.series
    rows = {(own.case.benchmark, own.case.key, own.metric.name)}
    rows.update(regression.changes.filter(series__headline=True).values_list(*columns))
    confirmed = regression.state == Regression.State.CONFIRMED and not regression.proving
    return RegressionFacts(
        subjects=tuple(
            MeasuredSubject(benchmark, case_name(benchmark, key), metric)
            for benchmark, key, metric in sorted(rows)
        ),
        branch=regression.first_bad.branch,
        state=CONFIRMED if confirmed else SUSPECTED,
        percent=regression.change_percent,
    )


def rules_of(channel: Channel) -> Sequence[AlertRule]:
    """The rules of a channel; without any, the one that its own two settings are."""
    rules = list(channel.rules.all())
    return rules or [default_rule(channel)]


def default_rule(channel: Channel) -> AlertRule:
    states = [SUSPECTED, CONFIRMED] if channel.suspicions else [CONFIRMED]
    return AlertRule(channel=channel, position=0, minimum_percent=channel.minimum_percent, states=states)


def wants_regression(rules: Iterable[AlertRule], facts: RegressionFacts) -> bool:
    """What meets no rule isn't reported."""
    for rule in rules:
        if meets_rule(rule, facts):
            return rule.notifies
    return False


def wants_suspicions(rules: Iterable[AlertRule]) -> bool:
    return any(rule.notifies and SUSPECTED in rule.states for rule in rules)


def meets_rule(rule: AlertRule, facts: RegressionFacts) -> bool:
    if facts.state not in rule.states or not matches_pattern(rule.branch, facts.branch):
        return False
    if facts.percent is not None and abs(facts.percent) < rule.minimum_percent:
        return False
    return any(
        matches_pattern(rule.metric, subject.metric)
        and (matches_pattern(rule.case, subject.case) or matches_pattern(rule.case, subject.benchmark))
        for subject in facts.subjects
    )


def matches_pattern(pattern: str, text: str) -> bool:
    """`*` stands for any letters; an empty pattern for anything."""
    if not pattern:
        return True
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    last = others.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    # Each part as early as it comes: no search that goes back and forth, however many stars there are.
    start, end = len(first), len(text) - len(last)
    for part in others:
        found = text.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True
