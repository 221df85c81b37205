"""Results of claims as a table, in a terminal or in a README, and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .claims import Claim, ClaimResult, Estimate, shows_no_difference
from .toml_table import ManifestError
from .units import format_amount, format_count, format_interval, format_number

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table: its columns, how a result fills them, and the lines of a README between which it stands."""

    header: tuple[str, ...]
    row: Callable[[ClaimResult], tuple[str, ...]]
    markers: tuple[str, str]

    def table(self, results: Sequence[ClaimResult]) -> str:
        """Return the results as a table in Markdown, which is also one for the terminal."""
        rows = [self.header, *[self.row(result) for result in results]]
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


def _claim_row(result: ClaimResult) -> tuple[str, ...]:
    return (
        result.claim.claim.replace("|", "/"),
        _format_claimed_value(result.claim),
        _format_estimate(result),
        f"{result.phase}x" if result.phase else "",
        _format_counter(result),
        result.verdict,
    )


def _toggle_row(result: ClaimResult) -> tuple[str, ...]:
    return (
        str(result.claim.toggle),
        result.claim.claim.replace("|", "/"),
        _format_estimate(result),
        f"{result.claim.phase} {result.phase}x" if result.phase else "",
        _format_counter(result),
        effect_location(result),
        result.verdict,
    )


def effect_location(result: ClaimResult) -> str:
    """Return where a toggle's effect is seen; empty where it was not measured."""
    if result.measured is None:
        return ""
    places = {"loop": result.measured, "phase": result.phase}
    names = [name for name, ratio in places.items() if ratio is not None and not shows_no_difference(ratio)]
    if result.counter is not None and result.counter[0] != result.counter[1]:
        names.append("counter")
    return ", ".join(names) or NOTHING


CLAIMS = TableLayout(
    ("claim", "document", "measured", "own phase", "counter", "verdict"),
    _claim_row,
    ("<!-- claims: written by paceline claims -->", "<!-- end of claims -->"),
)
TOGGLES = TableLayout(
    ("toggle", "claim", "whole loop", "own phase", "counter", "seen in", "verdict"),
    _toggle_row,
    ("<!-- toggles: written by paceline claims --toggles -->", "<!-- end of toggles -->"),
)


def _format_claimed_value(claim: Claim) -> str:
    if claim.low is None or claim.high is None:
        return ""
    low, high = format_number(claim.low), format_number(claim.high)
    text = low if claim.low == claim.high else f"{low}-{high}"
    if claim.before is None:
        return f"{text} {claim.unit}".rstrip()
    return f"up to {text}x" if claim.direction == "same" else f"{text}x"


def _format_estimate(result: ClaimResult) -> str:
    if result.measured is None:
        return ""
    if result.unit == "x":
        return f"{result.measured}x"
    if result.claim.unit:
        return f"{result.measured} {result.unit}"
    spread = format_interval(result.measured.low, result.measured.high, result.unit)
    exact = result.measured.low == result.measured.high
    return format_amount(result.measured.value, result.unit) + ("" if exact else f" {spread}")


def _format_counter(result: ClaimResult) -> str:
    if result.counter is None:
        return ""
    before, after = result.counter
    name = result.claim.counter
    return f"{name} {format_number(before)}" + ("" if after is None else f" to {format_number(after)}")


def table_notes(results: Sequence[ClaimResult], pairs: int, conditions: str) -> str:
    """Return notes on the table: what a ratio means, where it was measured, how much was disturbed."""
    measurements = sum(result.measurements for result in results)
    disturbed = sum(result.disturbed for result in results)
    text = (
        f"A ratio says how many times better the second side is: the median of "
        f"{format_count(pairs, 'paired ratio')}, "
        f"measured A B B A, with {'their range' if pairs < 6 else 'its interval of 95 %'}."
    )
    if any(result.verdict.endswith("?") for result in results):
        text += "\nA verdict with ? rests on too few pairs."
    text += f"\n{conditions}" if conditions else ""
    if disturbed:
        text += f"\n{disturbed} of {measurements} processes waited for a processor: take the times as hints."
    return text


def results_to_json(results: Sequence[ClaimResult]) -> list[dict[str, object]]:
    """Return the results as plain data, for a file of JSON."""
    return [
        {
            "id": result.claim.key,
            "claim": result.claim.claim,
            "document": [result.claim.low, result.claim.high],
            "metric": result.claim.metric,
            "direction": result.claim.direction,
            "toggle": result.claim.toggle,
            "seen": effect_location(result),
            "measured": _estimate_to_json(result.measured),
            "unit": result.unit,
            "phase": result.claim.phase,
            "phase_measured": _estimate_to_json(result.phase),
            "counter": result.claim.counter,
            "counted": list(result.counter) if result.counter else None,
            "verdict": result.verdict,
            "measurements": result.measurements,
            "disturbed": result.disturbed,
        }
        for result in results
    ]


def _estimate_to_json(measured: Estimate | None) -> list[float] | None:
    return None if measured is None else [measured.value, measured.low, measured.high]
