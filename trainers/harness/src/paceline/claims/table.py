"""Results of claims as a table, in a terminal or in a README."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..manifest.toml_table import ManifestError
from ..units import format_amount, format_count, format_interval, format_number
from .claim import Claim, ClaimResult, Evidence, shows_no_difference
from .verdicts import DOUBT, NOT_KNOWN, VERDICT_TEXTS

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table: its columns, how a result fills them, and the lines of a README between which it stands."""

    header: tuple[str, ...]
    row: Callable[[ClaimResult], tuple[str, ...]]
    markers: tuple[str, str]

    def table(self, results: Sequence[ClaimResult]) -> str:
        """Return the results as a table in Markdown, without columns that hold nothing."""
        columns = zip(self.header, *[self.row(result) for result in results], strict=True)
        rows = list(zip(*[column for column in columns if any(column[1:]) or not results], strict=True))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths[-1] = 0  # the last column may be long, and nothing stands behind it
        lines = ["| " + " | ".join(map(str.ljust, row, widths)).rstrip() + " |" for row in rows]
        return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])

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
        f"{result.equal_training}x" if result.equal_training else "",
        f"{result.phase}x" if result.phase else "",
        _format_counter(result),
        format_evidence(result.evidence),
        format_verdict(result),
    )


def _toggle_row(result: ClaimResult) -> tuple[str, ...]:
    return (
        str(result.claim.toggle),
        result.claim.claim.replace("|", "/"),
        _format_estimate(result),
        f"{result.claim.phase} {result.phase}x" if result.phase else "",
        _format_counter(result),
        effect_location(result),
        format_evidence(result.evidence),
        format_verdict(result),
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
    ("claim", "document", "measured", "same training", "own phase", "counter", "evidence", "verdict"),
    _claim_row,
    ("<!-- claims: written by paceline claims -->", "<!-- end of claims -->"),
)
TOGGLES = TableLayout(
    ("toggle", "claim", "whole loop", "own phase", "counter", "seen in", "evidence", "verdict"),
    _toggle_row,
    ("<!-- toggles: written by paceline claims --toggles -->", "<!-- end of toggles -->"),
)


def _format_claimed_value(claim: Claim) -> str:
    if claim.low is None and claim.high is None:
        return ""
    bounds = [format_number(bound) for bound in (claim.low, claim.high) if bound is not None]
    text = "-".join(dict.fromkeys(bounds))
    if claim.high is None:
        text = f"at least {text}"
    elif claim.low is None and claim.direction != "same":
        text = f"at most {text}"
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


def format_evidence(evidence: Evidence | None) -> str:
    """Return what a verdict rests on: `4 pairs, standard, quiet`; empty where nothing was measured."""
    if evidence is None:
        return ""
    if evidence.kind == "counted":
        return "counted"
    amount = format_count(evidence.samples, evidence.kind.removesuffix("s"))
    quiet = "quiet"
    if evidence.disturbed:
        quiet = f"{evidence.disturbed} of {evidence.measurements} disturbed"
    return f"{amount}, {evidence.windows}, {quiet}"


def format_verdict(result: ClaimResult) -> str:
    """Return the verdict in the words of the site, with its doubt; or why there is none."""
    verdict = result.verdict.rstrip(DOUBT)
    return VERDICT_TEXTS.get(verdict, verdict) + result.verdict[len(verdict) :]


def table_notes(results: Sequence[ClaimResult]) -> str:
    """Return notes on the table: what its figures mean, and where and when they were measured."""
    kinds = {result.evidence.kind for result in results if result.evidence}
    text = (
        "A ratio says how many times better the second side is: the median of paired ratios, measured "
        "A B B A, with the interval of 95 % that six pairs and more have, and of fewer their range."
    )
    if any(result.equal_training for result in results):
        text += (
            "\nUnder *same training* both sides learn as many samples a step, with the same network, from "
            "the same input."
        )
    if "seeds" in kinds:
        text += "\nWhat is learned is compared seed by seed."
    if any(result.verdict == NOT_KNOWN for result in results):
        text += "\nNot known: the interval reaches over the edge of what is claimed."
    if any(result.verdict.endswith(DOUBT) for result in results):
        text += "\nA verdict with ? rests on too few pairs."
    if any(result.evidence and result.evidence.disturbed for result in results):
        text += "\nA disturbed process waited for a processor: take its times as hints."
    return "\n".join([text, *_measured_lines(results)])


def _measured_lines(results: Sequence[ClaimResult]) -> list[str]:
    """Return a line for each machine on which claims were measured, with the days."""
    days: dict[str, set[str]] = {}
    for result in results:
        if result.evidence is not None:
            days.setdefault(result.evidence.machine, set()).add(result.evidence.day)
    return [
        f"Measured on {machine}, {' to '.join(sorted({min(found), max(found)}))}; "
        "standard and quick are the manifest's windows, where a claim has none of its own."
        for machine, found in days.items()
    ]
