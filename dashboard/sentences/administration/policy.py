"""What a policy left out and what it names wrongly: why less was measured than was pushed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Trigger
from dashboard.policy.decision import Reason
from dashboard.policy.unknown_names import UnknownName
from dashboard.sentences.formatting.numbers import format_count, format_number

# So many unknown names are listed one by one.
MOST_UNKNOWN = 8
# Of whole commits. A reason that a later version stored is left out.
OF_COMMITS = {
    Reason.REF: "the policy doesn't measure this branch or tag",
    Reason.BENCHMARK_REF: "no benchmark is measured on this branch or tag",
    Reason.IGNORED_PATHS: "only ignored paths changed",
    Reason.UNTOUCHED_PATHS: "no path that a benchmark names changed",
    Reason.SCHEDULED: "every case is measured by a schedule alone",
}
OF_BENCHMARKS = {
    Reason.BENCHMARK_REF: "it isn't measured on this branch or tag",
    Reason.IGNORED_PATHS: "only ignored paths changed",
    Reason.UNTOUCHED_PATHS: "none of its paths changed",
    Reason.SCHEDULED: "it is measured by a schedule alone",
}
# What a commit may cost.
OF_BUDGET = {
    Reason.BUDGET: "cases not measured, the budget of a commit is spent on those that were left longer",
    Reason.QUICK: "cases measured in short windows, the budget of a commit leaves no more",
}


def left_out_sentences(trigger: Trigger) -> list[str]:
    """`37 commits wait for the newest.` and the like, one for each reason."""
    sentences = (_describe_row(row) for row in trigger.left_out)
    return [sentence for sentence in sentences if sentence]


def _describe_row(row: Mapping[str, Any]) -> str:
    count, name, reason = int(row.get("commits", 0)), row.get("benchmark", ""), row.get("reason")
    commits = "1 commit" if count == 1 else f"{format_number(count)} commits"
    if reason == Reason.NEWEST_FIRST:
        return f"{commits} {'waits' if count == 1 else 'wait'} for the newest: measured when nothing else is."
    if reason == Reason.QUEUE_FULL:
        return f"{commits} {'is' if count == 1 else 'are'} asked for once fewer runs wait."
    if reason in OF_BUDGET:
        return f"{name}, {commits}: {OF_BUDGET[reason]}."
    if name:
        return f"{name}, {commits}: {OF_BENCHMARKS[reason]}." if reason in OF_BENCHMARKS else ""
    return f"{commits} not measured: {OF_COMMITS[reason]}." if reason in OF_COMMITS else ""


def unknown_names_sentence(unknown: Sequence[UnknownName]) -> str:
    """What a saved policy names and the project doesn't have now; empty where there is all of it."""
    sentences = [
        f"{row.key}: no {row.kind} “{row.name[:60]}” is known yet"
        + (f", did you mean “{row.near}”?" if row.near else ".")
        for row in unknown[:MOST_UNKNOWN]
    ]
    if len(unknown) > MOST_UNKNOWN:
        sentences.append(f"So it is of {format_count(len(unknown) - MOST_UNKNOWN, 'more name')}.")
    return " ".join(sentences)
