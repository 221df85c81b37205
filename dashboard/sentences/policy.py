"""Why the policy of a project measured less than was pushed, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.models import Trigger
from dashboard.policy.decision import Reason
from dashboard.sentences.numbers import format_number

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


def left_out_sentences(trigger: Trigger) -> list[str]:
    """`37 commits wait for the newest.` and the like, one for each reason."""
    said = (_describe_row(row) for row in trigger.left_out)
    return [sentence for sentence in said if sentence]


def _describe_row(row: Mapping[str, Any]) -> str:
    count, name, reason = int(row.get("commits", 0)), row.get("benchmark", ""), row.get("reason")
    commits = "1 commit" if count == 1 else f"{format_number(count)} commits"
    if reason == Reason.NEWEST_FIRST:
        return f"{commits} {'waits' if count == 1 else 'wait'} for the newest: measured when nothing else is."
    if reason == Reason.QUEUE_FULL:
        return f"{commits} {'is' if count == 1 else 'are'} asked for once fewer runs wait."
    if name:
        return f"{name}, {commits}: {OF_BENCHMARKS[reason]}." if reason in OF_BENCHMARKS else ""
    return f"{commits} not measured: {OF_COMMITS[reason]}." if reason in OF_COMMITS else ""
