"""Results of claims in a file of JSON, kept from one call to the next.

A claim is measured again when it is asked for; one whose definition changed since is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..manifest.toml_table import ManifestError
from .claim import Claim, ClaimResult, Estimate, Evidence
from .table import effect_location
from .verdicts import DOUBT, judge_estimate

Row = dict[str, Any]


def load_results(path: Path, claims: Iterable[Claim]) -> dict[str, ClaimResult]:
    """Return what the file holds of these claims as they are now, by their keys; raises ManifestError."""
    if not path.exists():
        return {}
    try:
        rows = {row["definition"]: row for row in json.loads(path.read_text(encoding="utf-8"))}
        return {
            claim.key: _result_from_row(claim, rows[claim.definition])
            for claim in claims
            if claim.definition in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"{path}: holds no results of claims: {error!r}") from error


def store_results(path: Path, results: Sequence[ClaimResult]) -> None:
    """Write the results, whole or not at all."""
    text = json.dumps([_row_from_result(result) for result in results], indent=1) + "\n"
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def _row_from_result(result: ClaimResult) -> Row:
    claim = result.claim
    return {
        "id": claim.key,
        "claim": claim.claim,
        "document": [claim.low, claim.high],
        "metric": claim.metric,
        "direction": claim.direction,
        "toggle": claim.toggle,
        "seen": effect_location(result),
        "measured": _row_from_estimate(result.measured),
        "unit": result.unit,
        "phase": claim.phase,
        "phase_measured": _row_from_estimate(result.phase),
        "equal_training": _row_from_estimate(result.equal_training),
        "counter": claim.counter,
        "counted": list(result.counter) if result.counter else None,
        "verdict": result.verdict,
        "evidence": asdict(result.evidence) if result.evidence else None,
        "definition": claim.definition,
    }


def _result_from_row(claim: Claim, row: Row) -> ClaimResult:
    measured = _estimate_from_row(row["measured"])
    return ClaimResult(
        claim=claim,
        verdict=row["verdict"] if measured is None else _judge_again(claim, measured, row["verdict"]),
        measured=measured,
        unit=row["unit"],
        phase=_estimate_from_row(row["phase_measured"]),
        equal_training=_estimate_from_row(row["equal_training"]),
        counter=tuple(row["counted"]) if row["counted"] else None,
        evidence=Evidence(**row["evidence"]) if row["evidence"] else None,
    )


def _judge_again(claim: Claim, measured: Estimate, kept: str) -> str:
    """Judge the figures as they are judged today; the doubt of too few pairs stays."""
    return judge_estimate(claim, measured) + kept[len(kept.rstrip(DOUBT)) :]


def _row_from_estimate(measured: Estimate | None) -> list[float] | None:
    return None if measured is None else [measured.value, measured.low, measured.high]


def _estimate_from_row(numbers: list[float] | None) -> Estimate | None:
    return None if numbers is None else Estimate(*numbers)
