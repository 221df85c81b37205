"""What a loss of quality says: that training no longer learns, by how much, over how many seeds, how fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.models import GuardResult, Regression
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change, format_levels
from dashboard.sentences.formatting.english import upper_first
from dashboard.sentences.formatting.metric_labels import series_label

State = GuardResult.State

# A step's time that moved by less beside it is no part of the story.
LEAST_PACE = 0.03


def is_loss_of_quality(regression: Regression) -> bool:
    return regression.kind == Regression.Kind.QUALITY


def quality_name(regression: Regression) -> str:
    """`score`: as the measured code reports it."""
    return regression.series.metric.name.removeprefix("quality.").replace("_", " ")


def loss_words(regression: Regression) -> str:
    """`training no longer learns`: what is lost, without how much."""
    match regression.learning.get("state", ""):
        case State.MISSING:
            return f"training reports no {quality_name(regression)} any more"
        case State.DIVERGED:
            return "training diverges"
        case State.VIOLATED:
            return "training no longer learns"
    return "training learns less"


def loss_detail(regression: Regression) -> str:
    """`score 2.1 instead of 9.3, over 3 seeds`; of what isn't reported what it was before."""
    name, before = quality_name(regression), numbers.format_number(regression.before)
    if regression.is_unreported:
        diverged = regression.learning["state"] == State.DIVERGED
        now = f"{name} is no finite number, " if diverged else ""
        return f"{now}it was {before}{_seeds_without(regression.learning)}"
    seeds = regression.learning.get("seeds", 0)
    over = f", over {numbers.format_count(seeds, 'seed')}" if seeds else ""
    return f"{name} {numbers.format_number(regression.after)} instead of {before}{over}"


def _seeds_without(learning: Mapping[str, Any]) -> str:
    """`, in 5 of 6 seeds`: in how many of the proof's seeds nothing was reported; empty without a proof."""
    seeds = learning.get("seeds", 0)
    if not seeds:
        return ""
    unreported = learning.get("unreported", 0)
    count = numbers.format_count(seeds, "seed")
    return f", in {count}" if unreported == seeds else f", in {unreported} of {count}"


def loss_headline(regression: Regression) -> str:
    """`training no longer learns (score 2.1 instead of 9.3, over 3 seeds)`."""
    pace = pace_words(regression)
    return f"{loss_words(regression)} ({loss_detail(regression)})" + (f"; {pace}" if pace else "")


def loss_sentence(regression: Regression, place: str) -> str:
    """`training no longer learns since abc1234: score 2.1 instead of 9.3, over 3 seeds; a step takes ...`."""
    loss = f"{loss_words(regression)} {place}: {loss_detail(regression)}"
    pace = pace_words(regression)
    return f"{loss}; {pace}" if pace else loss


def pace_words(regression: Regression) -> str:
    """What became of the step's time in the same pairs; empty where it stayed, or where they don't tell.

    `a step takes 41 % less time [36, 45], which is no gain`.
    """
    time = regression.learning.get("step_time")
    if not time or None in time:
        return ""
    ratio, low, high = time
    if abs(ratio - 1) < LEAST_PACE or low <= 1 <= high:
        return ""
    size = numbers.format_percent(100 * (ratio - 1))
    if ratio > 1:
        return f"a step also takes {size} longer {numbers.format_percent_interval(low, high)}"
    ends = sorted((2 - low, 2 - high))
    return f"a step takes {size} less time {numbers.format_percent_interval(*ends)}, which is no gain"


def bound_sentence(regression: Regression) -> str:
    """`Its guard asks for at least 3.`; empty where no bound was broken."""
    bound = regression.learning.get("bound")
    if bound is None:
        return ""
    higher = regression.series.metric.better == "higher"
    return f"Its guard asks for at {'least' if higher else 'most'} {numbers.format_number(bound)}."


def regression_name(regression: Regression) -> str:
    """`Step time`, or `Training no longer learns`: what a list or a title calls it."""
    if is_loss_of_quality(regression):
        return upper_first(loss_words(regression))
    return series_label(regression.series)


def regression_change(regression: Regression) -> str:
    """`+38 % [35, 41]`, or `9.3 → 2.1`: how much, beside its name."""
    lost = is_loss_of_quality(regression)
    return format_levels(regression) if lost else format_change(regression)


def regression_extent(regression: Regression) -> str:
    """`1.23 ms → 1.70 ms`, or `score, over 3 seeds`: what stands below how much.

    Empty where that has no ratio, and says the levels itself.
    """
    if not is_loss_of_quality(regression):
        levels = format_levels(regression)
        return "" if levels == regression_change(regression) else levels
    seeds = regression.learning.get("seeds", 0)
    name = quality_name(regression)
    return f"{name}, over {numbers.format_count(seeds, 'seed')}" if seeds else name


def learning_summary(regression: Regression) -> str:
    """`Score 2.1 instead of 9.3, over 3 seeds. Its guard asks for at least 3.`: what its page begins with."""
    pace = pace_words(regression)
    parts = [upper_first(loss_detail(regression)), upper_first(pace)]
    sentences = [
        *(f"{part}." for part in parts if part),
        bound_sentence(regression),
        seed_sentence(regression),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def seed_sentence(regression: Regression) -> str:
    """That its proof is one seed's, though each pair was given another one; empty where it isn't."""
    if not regression.learning.get("seed_ignored"):
        return ""
    return (
        "Each pair was given a seed of its own, and all have the same values to the last digit: the script "
        "doesn't take PACELINE_SEED, so that this is known of one seed alone."
    )
