"""What a document claims about a benchmark, as data: `claims.toml` beside the benchmark's script.

A claim compares two cases (`before`, `after`: how many times better is the second?) or looks at one (`case`).
What can't be measured says why (`untestable`), so that no claim of a document is left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import metrics
from .fields import Fields, ManifestError, Scalar
from .manifest import STEPS_LIMIT
from .units import format_number

FILE_NAME = "claims.toml"
DIRECTIONS = ("better", "worse", "same")
PER = "seconds_per."
"""Opens the metric that divides the step's time by a count that the code reports: `seconds_per.episodes`."""

_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")

NOTHING = 0.02
"""A ratio this near to 1 is none, however sure it is."""

TOLERANCE = 0.1
"""How far a measurement may miss the document's value and still agree with it: documents round."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. `low` to `high` is what the document says: a ratio, or with one case a value in `unit`.

    A claim without a number has None for both. `before` is None where there is one case only; `after` is
    None where the claim can't be tested, for the reason `untestable`. `toggle` is the one parameter in which
    the two cases differ, where the claim is about one. The steps are None where they are the benchmark's own.
    """

    key: str
    claim: str
    low: float | None
    high: float | None
    direction: str = DIRECTIONS[0]
    metric: str = "throughput"
    phase: str | None = None
    counter: str | None = None
    before: Mapping[str, Scalar] | None = None
    after: Mapping[str, Scalar] | None = None
    warmup_steps: int | None = None
    steps: int | None = None
    factor: float = 1.0
    unit: str = ""
    toggle: str | None = None
    needs_cuda: bool = False
    untestable: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A median with its interval, which for less than three samples is their range."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        spread = f" [{format_number(self.low)}, {format_number(self.high)}]" if self.low < self.high else ""
        return f"{format_number(self.value)}{spread}"


def is_none(ratio: Measured) -> bool:
    """Return whether a ratio shows no difference."""
    return ratio.low <= 1 <= ratio.high or abs(ratio.value - 1) < NOTHING


@dataclass(frozen=True, slots=True)
class Trial:
    """A claim and what was measured of it; `disturbed` of the `measurements` waited for a processor."""

    claim: Claim
    verdict: str
    measured: Measured | None = None
    unit: str = "x"
    phase: Measured | None = None
    counter: tuple[float, float | None] | None = None
    measurements: int = 0
    disturbed: int = 0


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims of one document about one benchmark."""

    document: str
    claims: tuple[Claim, ...]

    def chosen(self, keys: list[str], where: str, *, toggles: bool | None = None) -> list[Claim]:
        """Return the claims with these keys, for none all; `toggles`: only those about one, or all others."""
        known = {claim.key: claim for claim in self.claims if toggles in (None, claim.toggle is not None)}
        if not known:
            raise ManifestError(
                f"{where}: has no claim {'about a toggle' if toggles else 'but about toggles'}"
            )
        for key in keys:
            if key not in known:
                raise Fields({}, where, "").unknown("claims", key, list(known))
        return [known[key] for key in keys] or list(known.values())


def load(path: Path) -> Claims:
    """Read and check a file of claims; raises ManifestError with one sentence."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: can't be read: {error}") from error
    return parse(text, str(path))


def parse(text: str, where: str) -> Claims:
    """Check the text of a file of claims; `where` opens every error's sentence."""
    try:
        fields = Fields(tomllib.loads(text), where, "")
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{where}: is not valid TOML: {error}") from error
    document = fields.required_text("document")
    tables = fields.tables("claims")
    fields.finish()
    if not tables:
        raise fields.error("claims", "is missing, write at least one [[claims]]")
    claims = tuple(_claim(table) for table in tables)
    seen: set[str] = set()
    for claim, table in zip(claims, tables, strict=True):
        if claim.key in seen:
            raise table.error("id", f"is {claim.key!r} a second time")
        seen.add(claim.key)
    return Claims(document, claims)


def _claim(fields: Fields) -> Claim:
    key, text, (low, high) = fields.required_text("id"), fields.required_text("claim"), _value(fields)
    if not _KEY.fullmatch(key):
        raise fields.error("id", f"is {key!r}, must be small letters, digits and dashes")
    unit, toggle = _text(fields, "unit") or "", _text(fields, "toggle")
    untestable = _text(fields, "untestable")
    if untestable is not None:
        fields.finish()
        return Claim(key, text, low, high, unit=unit, toggle=toggle, untestable=untestable)
    before, after = _sides(fields)
    claim = Claim(
        key=key,
        claim=text,
        low=low,
        high=high,
        direction=fields.choice("direction", DIRECTIONS),
        metric=_metric(fields, "metric") or "throughput",
        phase=_text(fields, "phase"),
        counter=_metric(fields, "counter"),
        before=before,
        after=after,
        warmup_steps=fields.optional_integer("warmup_steps", minimum=0),
        steps=fields.optional_integer("steps", minimum=1, maximum=STEPS_LIMIT),
        factor=fields.number("factor") or 1.0,
        unit=unit,
        toggle=toggle,
        needs_cuda=fields.flag("needs_cuda", default=False),
    )
    fields.finish()
    _check(claim, fields)
    return claim


def _text(fields: Fields, key: str) -> str | None:
    return fields.required_text(key) if key in fields.names() else None


def _value(fields: Fields) -> tuple[float | None, float | None]:
    """Return the document's value as a range; one number is both of its ends."""
    if "value" not in fields.names():
        return None, None
    values = fields.required_numbers("value")
    if not 1 <= len(values) <= 2 or values[0] > values[-1]:
        raise fields.error("value", "must be a list of one number, or of the smallest and the largest")
    return values[0], values[-1]


def _sides(fields: Fields) -> tuple[Mapping[str, Scalar] | None, Mapping[str, Scalar]]:
    """Return the parameters before and after, or None and those of the one case."""
    case, before, after = (fields.scalars(name) for name in ("case", "before", "after"))
    if case is not None and before is None and after is None:
        return None, case
    if case is None and before is not None and after is not None:
        return before, after
    raise fields.error("", "must have before and after, or case alone, or untestable")


def _metric(fields: Fields, key: str) -> str | None:
    """Return a metric as a manifest's limits spell it: `scalar_reads`, `scalar_reads:push`."""
    spelling = _text(fields, key)
    if spelling is None:
        return None
    name = spelling.partition(":")[0]
    known = metrics.describe_metric(name) is not None or (name.startswith(PER) and name != PER)
    if not known:
        raise fields.unknown(key, name, [*metrics.METRICS, "count.NAME", "quality.NAME", f"{PER}NAME"])
    wrong = metrics.phase_problem(spelling)
    if wrong is not None:
        raise fields.error(key, wrong)
    return spelling


def _check(claim: Claim, fields: Fields) -> None:
    if claim.before is not None and claim.low is not None and claim.low <= 0:
        raise fields.error("value", f"is {claim.low:g}, a ratio must be above 0")
    if claim.direction == "same" and (claim.high is None or claim.high < 1):
        raise fields.error("value", "must be the ratio up to which two sides count as the same, 1 or more")
    for key in ("phase", "direction"):
        if claim.before is None and key in fields.names():
            raise fields.error(key, "is for claims that compare before and after")
    if claim.before is not None and (claim.factor != 1 or claim.unit):
        raise fields.error("unit", "and factor are for claims about one case")
    if claim.toggle is not None:
        _check_toggle(claim, fields)


def _check_toggle(claim: Claim, fields: Fields) -> None:
    """Refuse what would not say what one toggle does to the whole loop, and where it is to be seen."""
    before, after = claim.before or {}, claim.after or {}
    differing = {name for name in (*before, *after) if before.get(name) != after.get(name)}
    if differing != {claim.toggle}:
        said = ", ".join(sorted(differing)) or "nothing"
        raise fields.error("toggle", f"is {claim.toggle!r}, but before and after differ in {said}")
    if claim.metric != "throughput":
        raise fields.error("metric", "must be throughput for a claim with a toggle")
    if claim.phase is None and claim.counter is None:
        raise fields.error("toggle", "needs phase or counter: where it is to be seen")
