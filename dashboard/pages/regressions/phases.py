"""A regression's phases for its page: before and after, each with its share of the difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.experiments.paired_phases import paired_phases
from dashboard.models import Experiment, Metric, Regression
from dashboard.pages.comparisons.phases import (
    PhaseComparison,
    compare_by_pairs,
    drawn_comparison,
    sweep_comparison,
)
from dashboard.phases import sweeps
from dashboard.phases.paths import is_in_phase
from dashboard.querysets.regression_details import (
    StepRuns,
    disturbed_runs,
    phases_around_step,
    runs_that_counted,
)


def phase_comparison_context(
    regression: Regression, sizing: Experiment | None, runs: StepRuns
) -> dict[str, Any]:
    """Both commits' phases side by side: a figure and the rows of a table, largest part first.

    By `sizing`, the experiment that says how large it is, else by the runs of the two commits. In a phase's
    own series it shows that phase and those nested in it.
    """
    paired = paired_phases(sizing) if sizing else None
    learned = regression.kind == Regression.Kind.QUALITY
    counted_at: list[str] = []
    if not paired and regression.series.metric.kind == Metric.Kind.MEMORY:
        by_commit, counted_at = runs_that_counted(regression, runs)
        runs = replace(runs, by_commit=by_commit)
    comparison = compare_by_pairs(paired) if paired else _compare_by_runs(regression, runs)
    old, new = (
        {path: value for path, value in values.items() if is_in_phase(path, regression.series.phase)}
        for values in (comparison.before, comparison.after)
    )
    return {
        **drawn_comparison(replace(comparison, before=old, after=new)),
        "phase_pairs": paired,
        "phase_experiment": sizing,
        "phase_counted_at": " and ".join(name[:10] for name in counted_at),
        # A run that no longer learns is kept out of judgement anyway: its points don't tell why else.
        "phases_disturbed": disturbed_runs(runs.of_both(regression)) if learned else 0,
    }


def _compare_by_runs(regression: Regression, around: StepRuns) -> PhaseComparison:
    metric = regression.series.metric
    if sweeps.may_be_read_off_sweep(regression.series):
        runs = around.of_both(regression)
        if len(runs) == 2 and (compared := sweeps.compare_runs(regression.series, runs[:1], runs[1:])):
            old, new = ({path: both[side] for path, both in compared.at_largest.items()} for side in (0, 1))
            return sweep_comparison(old, new, compared.parts, compared.at)
        if metric.is_exponent:
            return PhaseComparison({}, {}, "s", "")
    before, after = phases_around_step(regression, around.by_commit)
    # As the phase that explains it has its share: `explanation.phase_shares.whole_delta`.
    whole = abs(regression.level_after - regression.level_before)
    if metric.kind == Metric.Kind.MEMORY:
        return PhaseComparison(before, after, "bytes", "that the phase grew by", whole=whole)
    if metric.kind == Metric.Kind.COUNTER:
        return PhaseComparison(before, after, metric.unit, "", whole=whole)
    return PhaseComparison(before, after, "s", "per step, own time")
