"""Reads `claims.toml`, which lies beside the benchmark's script; each error is one sentence."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import metrics
from ..manifest import SEED_LIMIT, STEPS_LIMIT
from ..manifest.benchmarks import Benchmark
from ..manifest.toml_table import ManifestError, TomlTable
from ..manifest.toml_text import load_toml
from .claim import DIRECTIONS, PHASE_SHARE, SECONDS_PER, Claim, Params
from .readings import spelling_problem, split_spelling

FILE_NAME = "claims.toml"
CLAIMS_LIMIT = 300
_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims of one document about one benchmark."""

    document: str
    claims: tuple[Claim, ...]

    def chosen(self, keys: list[str], where: str, *, toggles: bool | None = None) -> list[Claim]:
        """Return the claims with these keys, for none all; `toggles`: only those about one, or all others."""
        by_key = {claim.key: claim for claim in self.claims if toggles in (None, claim.toggle is not None)}
        if not by_key:
            raise ManifestError(
                f"{where}: has no claim {'about a toggle' if toggles else 'but about toggles'}"
            )
        for key in keys:
            if key not in by_key:
                raise TomlTable({}, where, "").unknown_value_error("claims", key, list(by_key))
        return [by_key[key] for key in keys] or list(by_key.values())


def claims_paths(benchmark: Benchmark, benchmarks: Mapping[str, Benchmark]) -> list[Path]:
    """Return where a benchmark's claims may lie within the repository, best first.

    Beside its script, in a file with its name or without; beside the manifest where that has no other one.
    """
    beside_script = [own_path(benchmark), benchmark.script_folder / FILE_NAME]
    return beside_script if len(benchmarks) > 1 else list(dict.fromkeys((*beside_script, Path(FILE_NAME))))


def own_path(benchmark: Benchmark) -> Path:
    """Return the file beside its script that is about this benchmark alone: `claims.NAME.toml`."""
    return benchmark.script_folder / f"claims.{benchmark.name}.toml"


def find_claims_file(
    benchmark: Benchmark, benchmarks: Mapping[str, Benchmark], is_there: Callable[[Path], bool]
) -> Path | None:
    """Return the path of a benchmark's claims within the repository, None where there are none.

    Raises ManifestError for a file beside several scripts that doesn't say which of them it is about.
    """
    found = next((path for path in claims_paths(benchmark, benchmarks) if is_there(path)), None)
    if found is None or found != benchmark.script_folder / FILE_NAME:
        return found
    others = [
        other.name
        for other in benchmarks.values()
        if other.script_folder == benchmark.script_folder
        and other.script != benchmark.script
        and not is_there(own_path(other))
    ]
    if others:
        names = ", ".join(sorted([*others, benchmark.name]))
        raise ManifestError(
            f"{found}: lies beside the scripts of {names}, name it after the one that it is about: "
            f"{own_path(benchmark).name}"
        )
    return found


def load_claims(path: Path) -> Claims:
    """Read and check a file of claims; raises ManifestError with one sentence."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: can't be read: {error}") from error
    return parse_claims(text, str(path))


def parse_claims(text: str, where: str) -> Claims:
    """Check the text of a file of claims; `where` opens every error's sentence."""
    return parse_claims_table(read_claims_table(text, where), where)


def read_claims_table(text: str, where: str) -> dict[str, Any]:
    """Return what the text says as TOML, unchecked; raises ManifestError where it is none."""
    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{where}: is not valid TOML: {error}") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise ManifestError(f"{where}: can't be read") from error


def parse_definition(raw: Mapping[str, Any]) -> Claim:
    """Return the claim that one table of a file says, which was checked before."""
    return parse_claims_table({"document": "-", "claims": [dict(raw)]}, FILE_NAME).claims[0]


def parse_claims_table(raw: Mapping[str, Any], where: str) -> Claims:
    """Check what a file of claims says; `where` opens every error's sentence."""
    table = TomlTable(raw, where, "")
    document = table.required_string("document")
    tables = table.tables("claims")
    table.refuse_unread_keys()
    if not tables:
        raise table.error("claims", "is missing, write at least one [[claims]]")
    if len(tables) > CLAIMS_LIMIT:
        raise table.error("claims", f"has {len(tables)} claims, at most {CLAIMS_LIMIT} are allowed")
    claims = tuple(_parse_claim(claim_table) for claim_table in tables)
    keys: set[str] = set()
    for claim, claim_table in zip(claims, tables, strict=True):
        if claim.key in keys:
            raise claim_table.error("id", f"is {claim.key!r} a second time")
        keys.add(claim.key)
    return Claims(document, claims)


def _parse_claim(table: TomlTable) -> Claim:
    key, text, (low, high) = table.required_string("id"), table.required_string("claim"), _parse_bounds(table)
    if not _KEY.fullmatch(key):
        raise table.error("id", f"is {key!r}, must be small letters, digits and dashes")
    unit, toggle = _optional_text(table, "unit") or "", _optional_text(table, "toggle")
    untestable = _optional_text(table, "untestable")
    if untestable is not None:
        table.refuse_unread_keys()
        return Claim(key, text, low, high, unit=unit, toggle=toggle, untestable=untestable)
    before, after = _parse_sides(table)
    claim = Claim(
        key=key,
        claim=text,
        low=low,
        high=high,
        direction=table.choice("direction", DIRECTIONS),
        metric=_parse_metric(table, "metric") or "throughput",
        phase=_optional_text(table, "phase"),
        counter=_parse_metric(table, "counter"),
        before=before,
        after=after,
        equal_training=_parse_equal_training(table),
        warmup_steps=table.optional_integer("warmup_steps", minimum=0),
        steps=table.optional_integer("steps", minimum=1, maximum=STEPS_LIMIT),
        seeds=table.integers("seeds", maximum=SEED_LIMIT) or (),
        factor=table.number("factor") or 1.0,
        unit=unit,
        toggle=toggle,
        needs_cuda=table.boolean("needs_cuda", default=False),
        tolerance=table.number("tolerance"),
    )
    table.refuse_unread_keys()
    _check_claim(claim, table)
    return claim


def _optional_text(table: TomlTable, key: str) -> str | None:
    return table.required_string(key) if key in table.names() else None


def _parse_bounds(table: TomlTable) -> tuple[float | None, float | None]:
    """Return what the document says as a range, open where it says at least or at most so much.

    One number is both of its ends.
    """
    if "value" not in table.names():
        low, high = table.number("at_least"), table.number("at_most")
        if low is not None and high is not None:
            raise table.error("at_most", "and at_least are a range, write value = [smallest, largest]")
        return low, high
    for key in ("at_least", "at_most"):
        if key in table.names():
            raise table.error(key, "says the same as value, write one of them")
    values = table.required_numbers("value")
    if not 1 <= len(values) <= 2 or values[0] > values[-1]:
        raise table.error("value", "must be a list of one number, or of the smallest and the largest")
    return values[0], values[-1]


def _parse_sides(table: TomlTable) -> tuple[Params | None, Params]:
    """Return the parameters before and after, or None and those of the one case."""
    case, before, after = (table.scalars(name) for name in ("case", "before", "after"))
    if case is not None and before is None and after is None:
        return None, case
    if case is None and before is not None and after is not None:
        return before, after
    raise table.error("", "must have before and after, or case alone, or untestable")


def _parse_equal_training(table: TomlTable) -> tuple[Params, Params] | None:
    """Return the two cases that do the same training, where the claim has them."""
    sides = table.table("equal_training")
    if sides is None:
        return None
    before, after = sides.scalars("before"), sides.scalars("after")
    sides.refuse_unread_keys()
    if before is None or after is None:
        raise table.error("equal_training", "must have before and after")
    return before, after


def _parse_metric(table: TomlTable, key: str) -> str | None:
    """Return a metric as a manifest's limits spell it: `scalar_reads`, `scalar_reads:push`."""
    spelling = _optional_text(table, key)
    if spelling is None:
        return None
    name, phases = split_spelling(spelling)
    is_rate = name.startswith(SECONDS_PER) and name != SECONDS_PER
    if metrics.describe_metric(name) is None and not is_rate and name != PHASE_SHARE:
        known = [*metrics.METRICS, "count.NAME", "quality.NAME", f"{SECONDS_PER}NAME", PHASE_SHARE]
        raise table.unknown_value_error(key, name, known)
    problem = spelling_problem(spelling)
    if name == PHASE_SHARE and not phases:
        problem = f"{PHASE_SHARE} needs phases, write {PHASE_SHARE}:PHASE+PHASE"
    if problem is not None:
        raise table.error(key, problem)
    return spelling


def _check_claim(claim: Claim, table: TomlTable) -> None:
    for bound in (claim.low, claim.high):
        if claim.before is not None and bound is not None and bound <= 0:
            raise table.error(_bound_key(table), f"is {bound:g}, a ratio must be above 0")
    _check_tolerance(claim, table)
    if claim.direction == "same" and (claim.high is None or claim.high < 1):
        raise table.error("value", "must be the ratio up to which two sides count as the same, 1 or more")
    for key in ("phase", "direction", "equal_training"):
        if claim.before is None and key in table.names():
            raise table.error(key, "is for claims that compare before and after")
    if claim.before is not None and (claim.factor != 1 or claim.unit):
        raise table.error("unit", "and factor are for claims about one case")
    if claim.toggle is not None:
        _check_toggle(claim, table)


def _bound_key(table: TomlTable) -> str:
    """Return the key that holds what the document says."""
    return next((key for key in ("at_least", "at_most") if key in table.names()), "value")


def _check_tolerance(claim: Claim, table: TomlTable) -> None:
    """Refuse a tolerance of nothing, and one that would let any measurement agree."""
    if claim.tolerance is None:
        return
    if not 0 <= claim.tolerance < 1:
        raise table.error("tolerance", f"is {claim.tolerance:g}, must be a part from 0 to below 1")
    if claim.direction == "same" or (claim.low is None and claim.high is None):
        raise table.error("tolerance", "needs a value that it is a part of")


def _check_toggle(claim: Claim, table: TomlTable) -> None:
    """Refuse a claim from which a toggle's effect on the whole loop, and its place, could not be read."""
    before, after = claim.before or {}, claim.after or {}
    differing = {name for name in (*before, *after) if before.get(name) != after.get(name)}
    if differing != {claim.toggle}:
        names = ", ".join(sorted(differing)) or "nothing"
        raise table.error("toggle", f"is {claim.toggle!r}, but before and after differ in {names}")
    if claim.metric != "throughput":
        raise table.error("metric", "must be throughput for a claim with a toggle")
    if claim.phase is None and claim.counter is None:
        raise table.error("toggle", "needs phase or counter: where it is to be seen")
