"""How noisy a case is, in words: the steps that would be found, and what would make it worth its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import join_names

REMEDIES = {
    "repetitions": "its repetitions differ; more of them, or more steps in each, tell more",
    "runs": "its runs differ more than their repetitions; paceline doctor on the machine says why",
    None: "its runs have one repetition; with three or more it is seen whether they or the machine are noisy",
}

# The same of several cases, which a sentence has named.
WHAT_WOULD_HELP = {
    "repetitions": "whose repetitions differ: more of them, or more steps in each, would help",
    "runs": "whose runs differ more than their repetitions: paceline doctor there says what would help",
    None: "whose runs have one repetition: with three or more it is seen what would help",
}
# So many cases are named for each remedy.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class NoisyCase:
    """A case that is too noisy on a machine; `noise` is a part of its level."""

    case: str
    machine: str
    noise: float
    source: str | None


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


def found_sentence(found: Sequence[tuple[int, float | None]], proven: float | None, machine: str = "") -> str:
    """`finds steps of 4.0 % or more after 2 runs, of 2.0 % after 10, of 1.0 % in an experiment`.

    As `effect_sentence`, where there is little room; a step of None is found by no so few runs. `machine`
    where there are several.
    """
    if all(step == 0 for _, step in found):
        return "repeats exactly: finds any step"
    known = [(numbers.format_share(step), f"after {runs}") for runs, step in found if step is not None]
    if known:
        known[0] = (known[0][0], f"{known[0][1]} runs")
    if proven is not None:
        known.append((numbers.format_share(proven), "in an experiment"))
    if not known:
        return f"no step is found within {max(runs for runs, _ in found)} runs"
    (step, how), *later = known
    more = "".join(f", of {step} {how}" for step, how in later)
    return f"finds steps of {step} or more {how}{more}{f' on {machine}' if machine else ''}"


def noisy_sentence(noisy: Sequence[NoisyCase]) -> str:
    """`Too noisy to be worth its time: walker on busy (± 20 %), whose runs differ ...`; empty for none."""
    by_source: dict[str | None, list[NoisyCase]] = {}
    for case in noisy:
        by_source.setdefault(case.source, []).append(case)
    groups = [f"{_name_cases(cases)}, {WHAT_WOULD_HELP[source]}" for source, cases in by_source.items()]
    if not groups:
        return ""
    whose = "its" if len({row.case for row in noisy}) == 1 else "their"
    return f"Too noisy to be worth {whose} time: {'; '.join(groups)}."


def _name_cases(noisy: Sequence[NoisyCase]) -> str:
    """`walker on bench-1 and busy (± 20 %)`: by case, with the largest noise."""
    by_case: dict[str, list[NoisyCase]] = {}
    for row in noisy:
        by_case.setdefault(row.case, []).append(row)
    named = [
        f"{case} on {join_names([row.machine for row in rows])} "
        f"(± {numbers.format_share(max(row.noise for row in rows))})"
        for case, rows in list(by_case.items())[:MOST_NAMED]
    ]
    more = len(by_case) - len(named)
    return join_names([*named, f"{more} more"] if more else named)
