"""What the experiments of a regression's proof say: of its own series, and of others of the same cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from dashboard.measured_kinds import is_exact_counter
from dashboard.models import Change, Experiment, Point, Regression, Series
from dashboard.repositories import DETACHED
from dashboard.sentences.comparisons.experiments import phases_text, reason_sentence
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change, format_change_size
from dashboard.sentences.formatting.english import lower_first
from dashboard.sentences.formatting.metric_labels import series_and_case
from dashboard.sentences.series.trends import points_moved_sentence

Verdict = Experiment.Verdict

EXACT_COUNTER_SENTENCE = (
    "Exact counters need no second measurement: two runs of the same code give the same count."
)
LIMIT_SENTENCE = "The limit of the manifest is the judgement: what crosses it isn't measured a second time."
# Of pairs that were measured for something else, and took no time of their own.
REUSED = ("proved on the branch", "measured for another regression")


def verdict_sentence(
    regression: Regression, series: Series, experiment: Experiment, undisturbed_pairs: int
) -> str:
    """`Confirmed by 4 pairs of interleaved runs on gpu-1 in 31 s: +76 % [50, 107].`, or how far it is."""
    machine, reason = experiment.machine, reason_sentence(experiment.reason)
    took = f" in {numbers.format_duration(experiment.seconds)}"
    if experiment.reason.get("code") in REUSED:
        took = f", {reason}"
    effort = f"{numbers.format_count(undisturbed_pairs, 'pair')} of interleaved runs on {machine}{took}"
    # Which series the pairs measured, where it isn't the regression's own.
    other = series.pk != regression.series_id
    prefix = f"{lower_first(series_and_case(series))} " if other else ""
    change = f"{prefix}{format_change(experiment)}"
    if phases := phases_text(experiment.reason):
        change = f"{phases}; the whole step by itself {change}"
    match experiment.verdict:
        case Verdict.CONFIRMED:
            return f"Confirmed by {effort}: {change}."
        case Verdict.REFUTED:
            return f"Refuted by {effort}: they show {change}."
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"Undecided: {reason}".rstrip(".") + "."
    if experiment.state == Experiment.State.MEASURING:
        return f"Being measured again on {machine}: {experiment.activity or 'starting'}."
    if experiment.state == Experiment.State.REQUESTED:
        return "Waiting for a machine that measures both commits again, in turn."
    return f"Not measured again: {reason}"


def other_series_sentence(series: Series, experiment: Experiment, undisturbed_pairs: int) -> str:
    """`Peak memory of snake was confirmed by 4 pairs: +24 % [22, 26].`"""
    name, change = series_and_case(series), format_change(experiment)
    measured = f"{numbers.format_count(undisturbed_pairs, 'pair')}{f': {change}' if change else ''}."
    match experiment.verdict:
        case Verdict.CONFIRMED:
            return f"{name} was confirmed by {measured}"
        case Verdict.REFUTED:
            return f"{name} was refuted by {measured}"
        case Verdict.UNDECIDED | Verdict.UNTESTABLE:
            return f"{name} stayed undecided."
    return f"{name} is measured by pairs too."


def points_disagreement(regression: Regression, changes: Sequence[Change]) -> str:
    """By how much the points of its series moved, where that reads otherwise than its reported size."""
    change = next((change for change in changes if change.series_id == regression.series_id), None)
    if regression.state != Regression.State.CONFIRMED or change is None:
        return ""
    if not change.ratio and not change.series.metric.is_quality:
        return ""
    if regression.came_gradually and is_exact_counter(regression.series):
        return ""  # It is one of several steps.
    points = format_change_size(change)
    if points == format_change_size(regression):
        return ""
    return points_moved_sentence(change)


def step_time_sentence(points: Sequence[Point]) -> str:
    """What became of a step's time where a counter alone moved: `A step takes no measurably other time: ...`.

    By the points of the runs of the two commits, each with its interval; empty without any.
    """
    if not points:
        return ""
    before, after = points
    ratio = after.value / before.value
    if None in (ends := (before.low, before.high, after.low, after.high)):
        return f"A step's time went with it by {numbers.format_percent_change(ratio)} between the two runs."
    least, most, low, high = cast(tuple[float, float, float, float], ends)
    change_text = numbers.format_ratio(ratio, low / most, high / least)
    if low <= most and least <= high:
        return f"A step takes no measurably other time: {change_text} between the runs of the two commits."
    return f"Between the runs of the two commits a step's time moved by {change_text}."


def side_branch_sentence(regression: Regression) -> str:
    """On which branch it is; empty on the project's own."""
    branch, main = regression.first_bad.branch, regression.project.branch
    if branch in (main, DETACHED):
        return ""
    return f"It is on the branch {branch}, which is judged against {main} as it was where the branch left it."
