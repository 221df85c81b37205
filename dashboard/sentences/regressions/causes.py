"""Why a regression is there: what decided its cause class, a sentence for each piece of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Experiment, Regression
from dashboard.sentences.formatting import numbers
from dashboard.sentences.measurements.environment_changes import format_difference

MOST_NAMED = 3

LISTS = {
    "system changed": "Changed between the two runs",
    "installed otherwise": "Installed otherwise",
    "installed otherwise too": "Installed otherwise too",
    "asked for in": "Asked for in",
    "install files changed": "Changed what is installed",
    "definition changed": "The manifest measures it otherwise",
    "definition changed too": "The manifest measures it otherwise too",
    "code changed": "Code was changed",
    "other machine": "Measured on another machine of the pool",
}
STATEMENTS = {
    "no commit asked for it": "No commit between them touched a file that says what is installed.",
    "commits changed it": "A commit changed it.",
    "difference unreadable": "A commit did it; what it changed can't be read.",
    "no other code": "No other file of the commits is code.",
    "other code costs nothing": "Code was changed too, but none of its functions costs more.",
    "exact counter": "Exact counters say so, which no machine and no driver moves.",
    "no difference by pairs": "Measured in turn, the two commits don't differ so much.",
}
VERDICTS = {Experiment.Verdict.CONFIRMED: "confirm it", Experiment.Verdict.REFUTED: "refute it"}


def cause_sentence(evidence: Mapping[str, Any]) -> str:
    """The sentence of one piece of evidence, as it is stored with the regression."""
    code = evidence["code"]
    if code in LISTS:
        return list_sentence(LISTS[code], evidence["items"], evidence["count"])
    if code in STATEMENTS:
        return STATEMENTS[code]
    match code:
        case "suspect changed":
            return f"The suspect {evidence['place']} was changed."
        case "experiment":
            verdict = VERDICTS.get(evidence["verdict"], "don't decide it")
            runs = f"Interleaved runs on {evidence['machine']}, which stood still for both commits, {verdict}"
            return f"{runs}{_phases_that_prove(evidence)}."
        case "sentinel":
            return sentinel_sentence(evidence)
        case "calibration":
            return calibration_sentence(evidence["ratio"])
    return str(evidence.get("text", code))


def _phases_that_prove(evidence: Mapping[str, Any]) -> str:
    """` by learn, which takes +10 % [8, 13]`: where phases proved what the whole leaves open."""
    if "phases" not in evidence:
        return ""
    size = numbers.format_ratio(*evidence["phase"])
    return f" by {', '.join(evidence['phases'])}, which {f'takes {size}' if size else 'is new'}"


def leading_evidence(regression: Regression) -> str:
    """The sentence of what decided its cause class; the class itself where nothing was kept."""
    evidence = regression.cause_evidence
    return cause_sentence(evidence[0]) if evidence else regression.cause


def list_sentence(words: str, items: Sequence[str | Sequence[str]], count: int) -> str:
    """`Installed otherwise: numpy 1.26 → 2.0, torch 2.12 → 2.13 and 4 more.`"""
    more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    named = [item if isinstance(item, str) else format_difference(item) for item in items[:MOST_NAMED]]
    return f"{words}: {', '.join(named)}{more}."


def sentinel_sentence(evidence: Mapping[str, Any]) -> str:
    """`The machine bench-1 moved: its sentinel a1b2c3d4e5, ..., had step time +12 % [10, 14] between ...`."""
    machine, metric = evidence["machine"], evidence["metric"].replace("_", " ")
    interval = numbers.format_percent_interval(evidence["low"], evidence["high"])
    size = f"{metric} {numbers.format_percent_change(evidence['ratio'])} {interval}".strip()
    when = f"between {evidence['after']} and {evidence['before']} UTC"
    pinned = f"its sentinel {evidence['commit']}, always the same code,"
    did = "moved" if evidence["moved"] else "stood"
    return f"The machine {machine} {did}: {pinned} had {size} {when}."


def calibration_sentence(ratio: float) -> str:
    was = "slower" if ratio > 1 else "faster"
    size = numbers.format_percent(100 * (ratio - 1))
    return (
        f"The machine itself was {size} {was} in the first run that shows it than in the last one before: "
        "each run times the same short calculation, which no commit changes."
    )
