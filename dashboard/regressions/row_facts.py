"""Rows as the facts that a decision is made of."""

from __future__ import annotations

from typing import Any

from dashboard.detection.doubts import IN_PARTS
from dashboard.models import Change, Commit, Experiment, Regression, RegressionExperiment, Series
from dashboard.regressions.decision import facts
from dashboard.regressions.decision.ranges import Range


def verdict_fact(link: RegressionExperiment, order: int) -> facts.ExperimentVerdict:
    """What an ended experiment of a regression has said; `order`: its place among those that ended.

    Of a row read with what `read_experiments` annotates.
    """
    experiment = link.experiment
    ratio, low, high = experiment.reason.get("step") or (experiment.ratio, experiment.low, experiment.high)
    return facts.ExperimentVerdict(
        experiment=experiment.pk,
        regression_id=link.regression_id,
        purpose=experiment.purpose,
        series=series_fact(link.series),
        base=commit_fact(experiment.base_commit),
        head=commit_fact(experiment.head_commit),
        verdict=experiment.verdict,
        before=experiment.before or 0.0,
        after=experiment.after or 0.0,
        ratio=ratio,
        low=low,
        high=high,
        base_level=experiment.base_level,
        by_phases=phase_size_fact(experiment),
        error=experiment.error,
        machine=getattr(link, "machine", None) or "",
        measured_head=getattr(link, "measured_head", None) or "",
        order=order,
        lost=experiment.reason.get("code") == "lost",
        **learned_facts(experiment),
    )


def phase_size_fact(experiment: Experiment) -> facts.PhaseSize | None:
    reason = experiment.reason
    return facts.PhaseSize(tuple(reason["phases"]), *reason["phase"]) if "phases" in reason else None


def learned_facts(experiment: Experiment) -> dict[str, Any]:
    """What is read of an experiment on a quality, which is weighed by differences."""
    if not experiment.metric.is_quality:
        return {}
    learning, time = experiment.learning, experiment.learning.get("step_time")
    return {
        "difference": experiment.difference,
        "difference_low": experiment.difference_low,
        "difference_high": experiment.difference_high,
        "learning": facts.Learning(
            seeds=learning.get("seeds", 0),
            unreported=learning.get("unreported", 0),
            step_time=(time["ratio"], time["low"], time["high"]) if time else None,
            seed_ignored=learning.get("seed_ignored", False),
        ),
    }


def commit_fact(commit: Commit) -> facts.Commit:
    return facts.Commit(
        pk=commit.pk,
        hash=commit.hash,
        branch=commit.branch,
        position=commit.position,
        parents=tuple(commit.parents),
        off_branch=bool(commit.left_branch),
    )


def series_fact(series: Series, *, measured_here: bool = True) -> facts.Series:
    """Of a series read with its metric and configuration."""
    metric = series.metric
    return facts.Series(
        pk=series.pk,
        configuration_id=series.configuration_id,
        metric=facts.Metric(metric.name, metric.kind, metric.better),
        phase=series.phase,
        exact=series.exact,
        headline=series.headline,
        pool_id=series.configuration.pool_id,
        guarded=series.guarded,
        measured_here=measured_here,
    )


def change_fact(row: Change) -> facts.Change:
    """Of a row read with what `changed_rows` annotates."""
    return facts.Change(
        pk=row.pk,
        series=series_fact(row.series, measured_here=getattr(row, "measured_here", True)),
        last_good=commit_fact(row.last_good),
        first_bad=commit_fact(row.first_bad),
        before=row.before,
        after=row.after,
        ratio=row.ratio,
        low=row.low,
        high=row.high,
        direction=row.direction,
        reach=Range(row.reach_good, row.reach_bad),
        environment_only=row.environment_only,
        guard_state=row.guard_state,
        guard_bound=row.guard_bound,
        markers=tuple((name, before, after) for name, before, after in row.markers),
        phases_with_step=tuple(
            phase for doubt in row.doubts if doubt["code"] == IN_PARTS for phase in doubt["parts"]
        ),
        regression_id=row.regression_id,
    )


def regression_fact(row: Regression, active: tuple[int, ...] = ()) -> facts.Regression:
    """Of a row read with what `regression_rows` annotates."""
    return facts.Regression(
        pk=row.pk,
        first_bad=commit_fact(row.first_bad),
        last_good=commit_fact(row.last_good),
        series=series_fact(row.series, measured_here=getattr(row, "measured_here", True)),
        before=row.before,
        after=row.after,
        state=row.state,
        paired_before=row.paired_before,
        ratio=row.ratio,
        low=row.low,
        high=row.high,
        proving=row.proving,
        withdrawn=row.withdrawn_at is not None,
        triaged_away=row.is_triaged_away,
        triaged_at=row.triaged_at.timestamp() if row.triaged_at else 0.0,
        has_limit=bool(getattr(row, "crossed", False)),
        residual=row.residual,
        culprit=commit_fact(row.culprit) if row.culprit else None,
        bisection=facts.Evidence.from_json(row.bisection) if row.bisection else None,
        learning=facts.Evidence.from_json(row.learning) if row.learning else None,
        recovered_by=row.recovered_by_id,
        merged=bool(getattr(row, "merged", False)),
        cause=row.cause,
        cause_evidence=tuple(facts.Evidence.from_json(stored) for stored in row.cause_evidence),
        phase=row.phase,
        phase_share=row.phase_share,
        suspects=tuple(
            (f"{suspect.get('file')}:{suspect.get('function')}", bool(suspect.get("changed")))
            for suspect in row.suspects
        ),
        explained_for=row.explained_for,
        decided_for=row.decided_for,
        active=active,
    )
