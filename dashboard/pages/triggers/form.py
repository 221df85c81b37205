"""The form that asks for runs: what can be chosen, how long it takes, and what was typed before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from dashboard.models import Project, Trigger
from dashboard.project_setup.duration_sentences import expected_sentence, expected_text
from dashboard.project_setup.expected_durations import ExpectedDuration
from dashboard.querysets import projects
from dashboard.querysets.durations import newest_durations
from dashboard.repositories import MOST_COMMITS

DEFAULTS = {"which": "newest", "commit": "", "range": "", "last": "10"}
LONGEST_TYPED = 200


def trigger_form_context(
    project: Project, typed: QueryDict | None = None, durations: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The benchmarks that the project was asked to measure, each with how long its newest runs took and
    whether it is chosen. `durations`: of its cases by name, where the page has read them."""
    names = projects.case_names(project)
    if durations is None:
        durations = newest_durations(Project.objects.filter(pk=project.pk))
    by_benchmark = {benchmark: expect_cases(cases, durations) for benchmark, cases in names.items()}
    chosen = set(typed.getlist("benchmarks")) if typed else set()
    return {
        "benchmarks": [
            (name, expected_text(expected), name in chosen) for name, expected in by_benchmark.items()
        ],
        "most_commits": MOST_COMMITS,
        "expected": expected_sentence(sum(by_benchmark.values(), ExpectedDuration())),
        "typed": {
            name: (typed.get(name, "") if typed else "")[:LONGEST_TYPED] or default
            for name, default in DEFAULTS.items()
        },
    }


def expect_cases(cases: Sequence[str], durations: Mapping[str, float]) -> ExpectedDuration:
    """How long these cases, by name, will take: as long as their newest runs did."""
    known = [durations[case] for case in cases if case in durations]
    return ExpectedDuration(len(known), sum(known), len(cases) - len(known))


def form_query(trigger: Trigger) -> str:
    """The query that fills the form with what a trigger asked for."""
    which, value = next(iter(trigger.revisions.items()), ("newest", ""))
    fields = [("which", which), *([(which, str(value))] if value else [])]
    return urlencode([*fields, *(("benchmarks", name) for name in trigger.benchmarks)])
