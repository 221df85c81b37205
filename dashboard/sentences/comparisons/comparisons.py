"""Two sides beside each other, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.comparisons.comparing import CaseComparison, Comparison
from dashboard.comparisons.metric_rows import TAINTED_BASE, TAINTED_HEAD, MetricRow
from dashboard.comparisons.pairing import PooledRuns, Unpaired
from dashboard.comparisons.revisions import ComparisonSide
from dashboard.detection.types import Doubt
from dashboard.models import Run
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import join_names, lower_first, upper_first
from dashboard.sentences.formatting.metric_labels import metric_label
from dashboard.sentences.measurements.environment_changes import describe_differences

REASONS = {
    "tainted base": "tainted at the base",
    "tainted head": "tainted at the head",
    "missing base": "the base has no such metric",
    "missing head": "the head has no such metric",
    "thinned base": "the base has no such metric, or no longer: it is so old that its points were thinned",
    "thinned head": "the head has no such metric, or no longer: it is so old that its points were thinned",
}
OBSTACLES = {
    "only base": "measured at the base alone",
    "only head": "measured at the head alone",
    "version": "another version of the benchmark at the other side",
    "pool": "another pool at the other side, whose machines needn't be alike",
    "windows": "other windows at the other side, quick or standard",
}
WHAT_LABELS = {"more": "more calls", "fewer": "fewer calls"}
# The lead names so many metrics.
MOST_NAMED = 3


def side_words(side: ComparisonSide) -> str:
    """`tag v1.4`, `branch main`, `run 23`: how a side was named; empty where by its hash."""
    if side.kind == "run" and side.run:
        return f"run {side.run.pk}"
    return f"{side.kind} {side.written}" if side.kind in ("tag", "branch") else ""


def newer_sentence(side: ComparisonSide) -> str:
    """Of a branch whose newest commits have no values yet; else empty."""
    if not side.newer:
        return ""
    commits = "commit isn't" if side.newer == 1 else "commits aren't"
    return f"The newest measured commit: {side.newer} newer {commits} measured yet."


def pooled_sentence(side: PooledRuns) -> str:
    """`3 runs on bench-1, 1 tainted run left out`."""
    parts = [_count_runs(len(side.runs))]
    if side.machines:
        parts[0] += f" on {', '.join(side.machines)}"
    if side.are_tainted:
        parts[0] += ", tainted" if len(side.runs) == 1 else ", all tainted"
    if side.left_out:
        parts.append(f"{len(side.left_out)} tainted {_run_word(len(side.left_out))} left out")
    if side.older:
        parts.append(f"{side.older} older {_run_word(side.older)} left out")
    return "; ".join(parts)


def _count_runs(count: int) -> str:
    return f"{count} {_run_word(count)}"


def _run_word(count: int) -> str:
    return "run" if count == 1 else "runs"


def run_title(run: Run) -> str:
    """`run 23 on bench-1, tainted by co_tenant`."""
    where = f" on {run.machine.name}" if run.machine else ""
    why = f", tainted: {', '.join(run.warning_codes) or 'without a warning'}" if run.tainted else ""
    return f"run {run.pk}{where}{why}"


def metric_row_label(row: MetricRow) -> str:
    return metric_label(row.metric.name, row.phase)


def effect_text(row: MetricRow) -> str:
    """`+38 % [35, 41]`; of an exponent or of what has no ratio its difference; `~` where there is none."""
    if row.verdict == "~":
        return "~"
    return effect_size(row)


def effect_size(row: MetricRow) -> str:
    """The size with its interval, whether or not it is a difference; a dash where none is known."""
    if row.effect == "exponent" and row.ratio is not None:
        interval = numbers.format_exponent_interval(row.low, row.high)
        return f"{numbers.format_exponent_difference(row.ratio)} {interval}".strip()
    if row.effect == "ratio" and row.ratio is not None:
        interval = numbers.format_percent_interval(row.low, row.high)
        return f"{numbers.format_percent_change(row.ratio)} {interval}".strip()
    if row.difference is None:
        return numbers.DASH
    unit = row.metric.unit
    text = numbers.format_signed_quantity(row.difference, unit)
    return f"{text} {numbers.format_interval(row.low, row.high, unit)}".strip()


def reason_text(row: MetricRow) -> str:
    """Why a row has no answer; empty where it has."""
    texts = (_doubt_text(doubt) for doubt in row.reasons)
    return "; ".join(text for text in texts if text) if row.verdict == "?" else ""


def _doubt_text(doubt: Doubt) -> str:
    if doubt.code == "too few samples":
        about = doubt.about
        if not about["a"] and not about["b"]:
            return "a fit has no interval"
        return f"{about['a']} and {about['b']} values, each side needs {about['least']}"
    return REASONS.get(doubt.code, "")


def obstacle_text(row: Unpaired) -> str:
    return OBSTACLES[row.obstacle]


def what_label(what: str) -> str:
    """What became of a function: `new`, `gone`, `more calls`, `slower`."""
    return WHAT_LABELS.get(what, what)


def summary_text(rows: Sequence[MetricRow]) -> str:
    """The headline metrics of a case that differ, the largest first, and those that can't be determined."""
    different = [row for row in rows if row.is_different]
    unknown = [row for row in rows if row.verdict == "?"]
    if len(unknown) == len(rows):
        return "nothing can be determined"
    differences = ", ".join(
        f"{lower_label(row)} {effect_size(row)} {row.direction}" for row in different[:MOST_NAMED]
    )
    if not unknown:
        return differences or "no difference"
    undetermined = f"{join_names([lower_label(row) for row in unknown])} can't be determined"
    return (
        f"{differences}; {undetermined}"
        if differences
        else f"{undetermined}, no other headline metric differs"
    )


def lower_label(row: MetricRow) -> str:
    return lower_first(metric_row_label(row))


def lead_sentence(compared: CaseComparison) -> str:
    """What a person reads first: the headline metrics, then how many of all differ."""
    headlines = [row for row in compared.rows if row.headline]
    if all(row.verdict == "?" for row in headlines):
        summary = "No headline metric can be determined"
    elif all(row.verdict == "~" for row in headlines):
        summary = "No headline metric differs"
    else:
        summary = upper_first(summary_text(headlines))
    counts = (
        f"{len(compared.different)} of {len(compared.rows)} metrics differ, {len(compared.alike)} show no "
        f"difference, {len(compared.unknown)} can't be determined"
    )
    return f"{summary}. {counts}."


def comparability_sentences(comparison: Comparison) -> list[str]:
    """What one has to know before reading a number: pools, machines, windows, tainted runs."""
    compared = comparison.chosen
    if compared is None:
        return []
    pair = compared.pair
    sentences = []
    if pair.has_two_pools:
        pools = (pair.base.configuration.pool.name, pair.head.configuration.pool.name)
        sentences.append(
            f"The base was measured in pool {pools[0]}, the head in pool {pools[1]}: what differs may be the "
            "machines."
        )
    elif pair.base.machines != pair.head.machines and pair.base.machines and pair.head.machines:
        named = (", ".join(pair.base.machines), ", ".join(pair.head.machines))
        sentences.append(f"Other machines of one pool: {named[0]} at the base, {named[1]} at the head.")
    if compared.windows:
        named_windows = describe_differences(compared.windows)
        sentences.append(
            f"The measured windows differ: {named_windows}. Times per step may differ by that alone."
        )
    sentences += [
        f"The runs of the {name} were measured under several environments; the newest one's is compared."
        for name in compared.mixed
    ]
    for name, side, code in (("base", pair.base, TAINTED_BASE), ("head", pair.head, TAINTED_HEAD)):
        if side.are_tainted:
            # A warning taints the metrics that it concerns: the others are compared.
            undetermined = sum(any(doubt.code == code for doubt in row.reasons) for row in compared.rows)
            of_all = (
                f", so {undetermined} of {len(compared.rows)} metrics can't be determined"
                if undetermined
                else ""
            )
            sentences.append(f"All runs of the {name} are tainted{of_all}.")
    return sentences


def nothing_sentence(comparison: Comparison) -> str:
    """Why there is nothing to compare: which side was never measured, or that nothing is alike."""
    unpaired = comparison.pairing.unpaired
    if comparison.pairing.pairs:
        return ""
    if unpaired:
        obstacles = {row.obstacle for row in unpaired}
        if obstacles <= {"only base"}:
            return (
                f"{comparison.head.commit.short} isn't measured yet: there is nothing to put beside the base."
            )
        if obstacles <= {"only head"}:
            return (
                f"{comparison.base.commit.short} isn't measured yet: there is nothing to put beside the head."
            )
        return "Nothing was measured in the same way at both sides."
    return "Neither side is measured yet."
