"""Trials of claims as a table for people, in a terminal or in a README, and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .claims import Claim, Measured, Trial, is_none
from .fields import ManifestError
from .units import format_amount, format_count, format_interval, format_number

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Form:
    """A table: its columns, how a trial fills them, and the lines of a README between which it stands."""

    header: tuple[str, ...]
    row: Callable[[Trial], tuple[str, ...]]
    markers: tuple[str, str]

    def table(self, trials: Sequence[Trial]) -> str:
        """Return the trials as a table in Markdown, which is also one for the terminal."""
        rows = [self.header, *[self.row(trial) for trial in trials]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths[-1] = 0  # the last column may be long, and nothing stands behind it
        lines = ["| " + " | ".join(map(str.ljust, row, widths)).rstrip() + " |" for row in rows]
        return "\n".join([lines[0], "|" + "---|" * len(self.header), *lines[1:]])

    def check_markers(self, path: Path) -> None:
        """Refuse a file without the markers, before minutes are spent on measuring; raises ManifestError."""
        text = path.read_text(encoding="utf-8")
        first, last = (text.find(marker) for marker in self.markers)
        if not 0 <= first < last:
            raise ManifestError(
                f"{path}: has no lines {self.markers[0]!r} and {self.markers[1]!r} to put the table between"
            )

    def insert(self, path: Path, text: str) -> None:
        """Replace what stands between the file's markers."""
        first, last = self.markers
        before, _, rest = path.read_text(encoding="utf-8").partition(first)
        after = rest.partition(last)[2]
        path.write_text(f"{before}{first}\n\n{text}\n\n{last}{after}", encoding="utf-8")


def _row(trial: Trial) -> tuple[str, ...]:
    return (
        trial.claim.claim.replace("|", "/"),
        _said(trial.claim),
        _shown(trial),
        f"{trial.phase}x" if trial.phase else "",
        _counted(trial),
        trial.verdict,
    )


def _toggle_row(trial: Trial) -> tuple[str, ...]:
    return (
        str(trial.claim.toggle),
        trial.claim.claim.replace("|", "/"),
        _shown(trial),
        f"{trial.claim.phase} {trial.phase}x" if trial.phase else "",
        _counted(trial),
        seen(trial),
        trial.verdict,
    )


def seen(trial: Trial) -> str:
    """Return where a toggle's effect is seen; empty where it was not measured."""
    if trial.measured is None:
        return ""
    places = {"loop": trial.measured, "phase": trial.phase}
    names = [name for name, ratio in places.items() if ratio is not None and not is_none(ratio)]
    if trial.counter is not None and trial.counter[0] != trial.counter[1]:
        names.append("counter")
    return ", ".join(names) or NOTHING


CLAIMS = Form(
    ("claim", "document", "measured", "own phase", "counter", "verdict"),
    _row,
    ("<!-- claims: written by paceline claims -->", "<!-- end of claims -->"),
)
TOGGLES = Form(
    ("toggle", "claim", "whole loop", "own phase", "counter", "seen in", "verdict"),
    _toggle_row,
    ("<!-- toggles: written by paceline claims --toggles -->", "<!-- end of toggles -->"),
)


def _said(claim: Claim) -> str:
    if claim.low is None or claim.high is None:
        return ""
    low, high = format_number(claim.low), format_number(claim.high)
    text = low if claim.low == claim.high else f"{low}-{high}"
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
    spread = format_interval(trial.measured.low, trial.measured.high, trial.unit)
    exact = trial.measured.low == trial.measured.high
    return format_amount(trial.measured.value, trial.unit) + ("" if exact else f" {spread}")


def _counted(trial: Trial) -> str:
    if trial.counter is None:
        return ""
    before, after = trial.counter
    name = trial.claim.counter
    return f"{name} {format_number(before)}" + ("" if after is None else f" to {format_number(after)}")


def notes(trials: Sequence[Trial], pairs: int) -> str:
    """Return what must be known to read the table: how many pairs, and what disturbed them."""
    measurements = sum(trial.measurements for trial in trials)
    disturbed = sum(trial.disturbed for trial in trials)
    text = (
        f"A ratio says how many times better the second side is: the median of "
        f"{format_count(pairs, 'paired ratio')}, "
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
            "toggle": trial.claim.toggle,
            "seen": seen(trial),
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
