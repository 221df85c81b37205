"""What a regression costs its project, and what proving suspicions cost its machines, in words."""

from __future__ import annotations

from dashboard.charts import units
from dashboard.models import Confirmation, Metric, Point, Regression
from dashboard.querysets.regressions import Precision, Tally

# An interval stays on one line.
NARROW = "\N{NO-BREAK SPACE}"
# What a week of training is proportional to, directly or inversely.
PROPORTIONAL = ("step_time", "throughput", "projected_time")


def cost(regression: Regression) -> str:
    """`At 200 machine-hours a week of training this costs 63 machine-hours a week [56, 70].`

    Empty for what isn't confirmed or isn't time, and where the project doesn't say how much it trains.
    """
    hours = regression.project.training_hours_per_week
    metric = regression.series.metric
    known = metric.name in PROPORTIONAL and not regression.series.phase
    if not hours or not known or regression.state != Regression.State.CONFIRMED:
        return ""
    middle, *ends = [
        None if ratio is None else hours * (slower(ratio, metric) - 1) for ratio in ratios(regression)
    ]
    if middle is None or middle <= 0:
        return ""
    unit = "GPU-hours" if has_gpu(regression) else "machine-hours"
    known_ends = sorted(end for end in ends if end is not None)
    wide = len(known_ends) == 2 and known_ends[0] != known_ends[1]
    interval = f" [{f',{NARROW}'.join(whole(end) for end in known_ends)}]" if wide else ""
    return f"At {whole(hours)} {unit} a week of training this costs {whole(middle)} {unit} a week{interval}."


def whole(hours: float) -> str:
    """Hours as people say them: no tenths of many."""
    return units.format_number(round(hours) if abs(hours) >= 10 else hours, 2 if abs(hours) < 10 else 3)


def slower(ratio: float, metric: Metric) -> float:
    """How many times as long a step takes."""
    return ratio if metric.better == Metric.Better.LOWER else 1 / ratio


def ratios(regression: Regression) -> list[float | None]:
    """The ratio and the ends of its interval: those of the pairs that confirmed it, else the step's own."""
    proof = (
        regression.confirmations.filter(
            purpose=Confirmation.Purpose.CONFIRM,
            verdict=Confirmation.Verdict.CONFIRMED,
            series=regression.series_id,
            ratio__gt=0,
        )
        .order_by("-finished_at", "-pk")
        .first()
    )
    said = proof or regression
    return [one if one and one > 0 else None for one in (said.ratio, said.low, said.high)]


def has_gpu(regression: Regression) -> bool:
    """Did the machine that measured it have one?"""
    points = Point.objects.filter(series=regression.series_id, run__commit=regression.first_bad_id)
    fingerprint = points.order_by("-run_id").values_list("run__fingerprint", flat=True).first()
    return bool((fingerprint or {}).get("gpus"))


def tally_sentence(tally: Tally) -> str:
    """What became of the suspicions of the last month, and what it cost; empty where there were none."""
    if not tally.suspicions:
        return ""
    counted = ", ".join(
        f"{count} {name}"
        for name, count in (
            ("confirmed", tally.confirmed),
            ("refuted", tally.refuted),
            ("undecided", tally.undecided),
        )
    )
    many = "suspicions were" if tally.suspicions > 1 else "suspicion was"
    pairs = f"{tally.pairs} pair{'' if tally.pairs == 1 else 's'} of runs"
    return (
        f"In the last {tally.days} days {tally.suspicions} {many} measured again: {counted}. "
        f"That took {pairs} and {units.format_duration(tally.seconds)} of machine time, bisections included."
    )


def precision_sentence(precision: Precision) -> str:
    """How often the alarms of a series were right, as far as people have said so; empty without an alarm."""
    if not precision.alarms:
        return ""
    many = "alarms" if precision.alarms > 1 else "alarm"
    judged = precision.not_real + precision.real
    if not judged:
        return f"Precision: {precision.alarms} {many} here, none triaged yet."
    share = f"{100 * precision.real / judged:.0f} %"
    return (
        f"Precision: of {precision.alarms} {many} here {judged} "
        f"{'is' if judged == 1 else 'are'} triaged; people called {precision.not_real} not real, "
        f"so {share} were right."
    )
