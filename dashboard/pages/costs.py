"""What a regression costs its project, and what proving suspicions cost its machines, in words."""

from __future__ import annotations

from dashboard.models import Experiment, Metric, Point, Regression
from dashboard.querysets.regressions import AlarmPrecision, ProofTally
from dashboard.sentences import numbers

# An interval stays on one line.
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
# What a week of training is proportional to, directly or inversely.
PROPORTIONAL_METRICS = ("step_time", "throughput", "projected_time")


def cost_sentence(regression: Regression) -> str:
    """`At 200 machine-hours a week of training this costs 63 machine-hours a week [56, 70].`

    Empty for what isn't confirmed or isn't time, and where the project doesn't say how much it trains.
    """
    hours = regression.project.training_hours_per_week
    metric = regression.series.metric
    proportional = metric.name in PROPORTIONAL_METRICS and not regression.series.phase
    if not hours or not proportional or regression.state != Regression.State.CONFIRMED:
        return ""
    extra, *ends = [
        None if ratio is None else hours * (slowdown_ratio(ratio, metric) - 1)
        for ratio in ratio_with_interval(regression)
    ]
    if extra is None or extra <= 0:
        return ""
    unit = "GPU-hours" if has_gpu(regression) else "machine-hours"
    known_ends = sorted(end for end in ends if end is not None)
    wide = len(known_ends) == 2 and known_ends[0] != known_ends[1]
    between = f",{NO_BREAK_SPACE}".join(numbers.format_hours(end) for end in known_ends)
    return (
        f"At {numbers.format_hours(hours)} {unit} a week of training this costs "
        f"{numbers.format_hours(extra)} {unit} a week{f' [{between}]' if wide else ''}."
    )


def slowdown_ratio(ratio: float, metric: Metric) -> float:
    """How many times as long a step takes."""
    return ratio if metric.better == Metric.Better.LOWER else 1 / ratio


def ratio_with_interval(regression: Regression) -> list[float | None]:
    """The ratio and the ends of its interval: those of the pairs that confirmed it, else the step's own."""
    proof = (
        Experiment.objects.filter(
            regression_link__regression=regression,
            regression_link__series=regression.series_id,
            purpose=Experiment.Purpose.PROOF,
            verdict=Experiment.Verdict.CONFIRMED,
            ratio__gt=0,
        )
        .order_by("-finished_at", "-pk")
        .first()
    )
    measured = proof or regression
    return [ratio if ratio and ratio > 0 else None for ratio in (measured.ratio, measured.low, measured.high)]


def has_gpu(regression: Regression) -> bool:
    """Whether the machine that measured it had one."""
    points = Point.objects.filter(series=regression.series_id, run__commit=regression.first_bad_id)
    fingerprint = points.order_by("-run_id").values_list("run__fingerprint", flat=True).first()
    return bool((fingerprint or {}).get("gpus"))


def tally_sentence(tally: ProofTally) -> str:
    """What became of the suspicions of the last month, and what it cost; empty where there were none."""
    if not tally.suspicions:
        return ""
    verdicts = ", ".join(
        f"{count} {name}"
        for name, count in (
            ("confirmed", tally.confirmed),
            ("refuted", tally.refuted),
            ("undecided", tally.undecided),
        )
    )
    subject = "suspicions were" if tally.suspicions > 1 else "suspicion was"
    pairs = f"{tally.pairs} pair{'' if tally.pairs == 1 else 's'} of runs"
    return (
        f"In the last {tally.days} days {tally.suspicions} {subject} measured again: {verdicts}. "
        f"That took {pairs} and {numbers.format_duration(tally.seconds)} of machine time with bisections."
    )


def precision_sentence(precision: AlarmPrecision) -> str:
    """How often the alarms of a series were right, as far as people have said so; empty without an alarm."""
    if not precision.alarms:
        return ""
    noun = "alarms" if precision.alarms > 1 else "alarm"
    judged = precision.not_real + precision.real
    if not judged:
        return f"Precision: {precision.alarms} {noun} here, none triaged yet."
    share = numbers.format_share(precision.real / judged)
    return (
        f"Precision: of {precision.alarms} {noun} here {judged} "
        f"{'is' if judged == 1 else 'are'} triaged; people called {precision.not_real} not real, "
        f"so {share} were right."
    )
