"""Trials of claims as a table for people, in a terminal or in a README, and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .claims import Claim, Measured, Trial
from .fields import ManifestError
from .units import amount, interval, number, plural

MARKERS = ("<!-- claims: written by paceline claims -->", "<!-- end of claims -->")

HEADER = ("claim", "document", "measured", "own phase", "counter", "verdict")


def table(trials: Sequence[Trial]) -> str:
    """Return the trials as a table in Markdown, which is also one for the terminal."""
    rows = [HEADER, *[_row(trial) for trial in trials]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0  # the last column may be long, and nothing stands behind it
    lines = ["| " + " | ".join(map(str.ljust, row, widths)).rstrip() + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(HEADER), *lines[1:]])


def _row(trial: Trial) -> tuple[str, ...]:
    return (
        trial.claim.claim.replace("|", "/"),
        _said(trial.claim),
        _shown(trial),
        f"{trial.phase}x" if trial.phase else "",
        _counted(trial),
        trial.verdict,
    )


def _said(claim: Claim) -> str:
    if claim.low is None or claim.high is None:
        return ""
    text = number(claim.low) if claim.low == claim.high else f"{number(claim.low)}-{number(claim.high)}"
    if claim.before is None:
        return f"{text} {claim.unit}".rstrip()
    return f"up to {text}x" if claim.direction == "same" else f"{text}x"


def _shown(trial: Trial) -> str:
    if trial.measured is None:
        return ""
    if trial.unit == "x":
        return f"{trial.measured}x"
    if trial.claim.unit:
        return f"{trial.measured} {trial.unit}"
    spread = interval(trial.measured.low, trial.measured.high, trial.unit)
    exact = trial.measured.low == trial.measured.high
    return amount(trial.measured.value, trial.unit) + ("" if exact else f" {spread}")


def _counted(trial: Trial) -> str:
    if trial.counter is None:
        return ""
    before, after = trial.counter
    name = trial.claim.counter
    return f"{name} {number(before)}" + ("" if after is None else f" to {number(after)}")


def notes(trials: Sequence[Trial], pairs: int) -> str:
    """Return what must be known to read the table: how many pairs, and what disturbed them."""
    measurements = sum(trial.measurements for trial in trials)
    disturbed = sum(trial.disturbed for trial in trials)
    text = (
        f"A ratio says how many times better the second side is: the median of "
        f"{plural(pairs, 'paired ratio')}, "
        f"measured A B B A, with {'their range' if pairs < 6 else 'its interval of 95 %'}."
    )
    if any(trial.verdict.endswith("?") for trial in trials):
        text += "\nA verdict with ? rests on too few pairs."
    if disturbed:
        text += f"\n{disturbed} of {measurements} processes waited for a processor: take the times as hints."
    return text


def data(trials: Sequence[Trial]) -> list[dict[str, object]]:
    """Return the trials as plain data, for a file of JSON."""
    return [
        {
            "id": trial.claim.key,
            "claim": trial.claim.claim,
            "document": [trial.claim.low, trial.claim.high],
            "metric": trial.claim.metric,
            "direction": trial.claim.direction,
            "measured": _plain(trial.measured),
            "unit": trial.unit,
            "phase": trial.claim.phase,
            "phase_measured": _plain(trial.phase),
            "counter": trial.claim.counter,
            "counted": list(trial.counter) if trial.counter else None,
            "verdict": trial.verdict,
            "measurements": trial.measurements,
            "disturbed": trial.disturbed,
        }
        for trial in trials
    ]


def _plain(measured: Measured | None) -> list[float] | None:
    return None if measured is None else [measured.value, measured.low, measured.high]


def check_markers(path: Path) -> None:
    """Refuse a file without the two markers, before minutes are spent on measuring; raises ManifestError."""
    text = path.read_text(encoding="utf-8")
    first, last = (text.find(marker) for marker in MARKERS)
    if not 0 <= first < last:
        raise ManifestError(
            f"{path}: has no lines {MARKERS[0]!r} and {MARKERS[1]!r} to put the table between"
        )


def insert(path: Path, text: str) -> None:
    """Replace what stands between the file's markers."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKERS[0])
    after = rest.partition(MARKERS[1])[2]
    path.write_text(f"{before}{MARKERS[0]}\n\n{text}\n\n{MARKERS[1]}{after}", encoding="utf-8")
