"""What a regression costs its project, and what proving suspicions cost its machines."""

from __future__ import annotations

from dashboard.querysets.alarm_tallies import AlarmPrecision, ProofTally
from dashboard.querysets.costs import WeeklyCost
from dashboard.sentences.formatting import numbers

# An interval stays on one line.
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def cost_sentence(cost: WeeklyCost | None) -> str:
    """`At 200 machine-hours a week of training this costs 63 machine-hours a week [56, 70].`"""
    if cost is None:
        return ""
    unit = "GPU-hours" if cost.on_gpu else "machine-hours"
    wide = len(cost.interval) == 2 and cost.interval[0] != cost.interval[1]
    between = f",{NO_BREAK_SPACE}".join(numbers.format_hours(end) for end in cost.interval)
    return (
        f"At {numbers.format_hours(cost.hours)} {unit} a week of training this costs "
        f"{numbers.format_hours(cost.extra)} {unit} a week{f' [{between}]' if wide else ''}."
    )


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
        f"so {share} of the triaged ones were right."
    )
