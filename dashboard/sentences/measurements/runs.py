"""A run in a few sentences: how fast, beside the run before, where the time goes, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.detection.comparison import ENOUGH_SAMPLES
from dashboard.models import Run
from dashboard.repositories import DETACHED
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import join_names, lower_first

# What the first sentence names, of those that the run has.
LEADING = ("throughput", "step_time", "peak_memory")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """headlines: (name, label, value, unit). compared: (label, verdict, size), as `ComparedMetric` has them.
    incomparable: labels of those of which one of the two values is tainted. previous: (run, commit)
    on the run's branch.
    phases: (path, share), the largest first.
    tainted: what warnings keep out of judgement, such as `its times`."""

    headlines: Sequence[tuple[str, str, float, str]]
    compared: Sequence[tuple[str, str, str]]
    incomparable: Sequence[str]
    previous: tuple[int, str] | None
    branch: str
    phases: Sequence[tuple[str, float]]
    warnings: int
    tainted: str


def summary_sentences(facts: RunFacts) -> list[str]:
    parts = [
        _values_sentence(facts),
        _comparison_sentence(facts),
        _phases_sentence(facts),
        _doubts_sentence(facts),
    ]
    return [sentence for sentence in parts if sentence]


def _values_sentence(facts: RunFacts) -> str:
    """`952 steps/s, 1.05 ms a step, 412 MB at the peak.`"""
    values = {name: numbers.format_quantity(value, unit) for name, _, value, unit in facts.headlines}
    formats = {"step_time": "{} a step", "peak_memory": "{} of memory at the peak"}
    parts = [formats.get(name, "{}").format(values[name]) for name in LEADING if name in values]
    return f"{', '.join(parts)}." if parts else ""


def _comparison_sentence(facts: RunFacts) -> str:
    if facts.previous is None and facts.branch == DETACHED:
        return "A force-push took its commit off its branch, so that no run stands before it."
    if facts.previous is None:
        return f"No run of this case came before it on {facts.branch}."
    number, commit = facts.previous
    if not facts.compared and not facts.incomparable:
        return ""
    beside = f"Beside the case's run before, #{number} at {commit}"
    sized = [
        (lower_first(label), verdict, f" ({size})" if size else "") for label, verdict, size in facts.compared
    ]
    moved = [f"{label} is {verdict}{size}" for label, verdict, size in sized if verdict not in ("", "?")]
    chance = join_names([f"{label}{size}" for label, verdict, size in sized if verdict == "?"])
    incomparable = join_names([lower_first(label) for label in facts.incomparable])
    parts = [join_names(moved)] if moved else []
    if chance:
        parts.append(
            f"{chance} may differ by chance: runs of fewer than {ENOUGH_SAMPLES} repetitions don't tell"
        )
    if incomparable:
        parts.append(f"{incomparable} can't be determined: a warning keeps one of the two out of judgement")
    if not parts:
        parts = ["no headline metric differs by more than its interval"]
    return f"{beside}, {'; '.join(parts)}."


def _phases_sentence(facts: RunFacts) -> str:
    """`learn/backward takes 24 % of a step, learn/forward 16 %.`"""
    if not facts.phases:
        return ""
    (first, share), *others = facts.phases
    rest = "".join(f", {path} {numbers.format_share(part)}" for path, part in others)
    return f"{first} takes {numbers.format_share(share)} of a step{rest}."


def _doubts_sentence(facts: RunFacts) -> str:
    if facts.tainted:
        return f"A warning keeps {facts.tainted} out of judgement."
    if not facts.warnings:
        return "It has no warning."
    return "It has a warning." if facts.warnings == 1 else f"It has {facts.warnings} warnings."


def run_state_label(run: Run) -> str:
    """`measuring`, `failed: crash`, or `requested for 14:05 UTC` where it waits for its time."""
    if run.is_postponed:
        return f"{run.state} for {run.not_before:%H:%M} UTC"
    return f"failed: {run.failure}" if run.state == Run.State.FAILED and run.failure else run.state
