"""How noisy a case is, in words: the steps that would be found, and what would make it worth its time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dashboard.sentences import numbers

REMEDIES = {
    "repetitions": "its repetitions differ; more of them, or more steps in each, tell more",
    "runs": "its runs differ more than their repetitions; paceline doctor on the machine says why",
    None: "its runs have one repetition; with three or more it is seen whether they or the machine are noisy",
}


def describe_remedy(source: str | None) -> str:
    return REMEDIES[source] if source in REMEDIES else REMEDIES[None]


def effect_sentence(found: Sequence[tuple[int, float]], proven: float | None, machine: str) -> str:
    """`On bench-1 a step of 4 % would be found after 2 runs, of 2 % after 10. An experiment ...`

    `found`: the smallest step after so many runs of a new level, each a part of the level, infinite where
    none would be. `proven`: that of an experiment of ten minutes; None where none was made yet.
    """
    if all(step == 0 for _, step in found):
        return f"On {machine} its values repeat exactly: the first run finds a step of any size."
    known = [(runs, numbers.format_share(step)) for runs, step in found if math.isfinite(step)]
    if known:
        (runs, step), *later = known
        more = "".join(f", of {step} after {runs}" for runs, step in later)
        text = f"On {machine} a step of {step} would be found after {runs} runs{more}."
    else:
        text = f"On {machine} no step would be found within {max(runs for runs, _ in found)} runs: too noisy."
    if proven is None or not math.isfinite(proven):
        return text
    return f"{text} An experiment of ten minutes would prove {numbers.format_share(proven)}."
