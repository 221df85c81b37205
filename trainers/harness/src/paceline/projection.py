"""The full job: how long it would take, from the measured rate or from the scaling fit."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Fields

STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Job:
    """So many units of work; the unit is `steps`, the swept parameter, or a count that the code reports."""

    amount: float
    unit: str


def parse(fields: Fields | None) -> Job | None:
    """Read the manifest's table `job`; raises ManifestError."""
    if fields is None:
        return None
    unit = fields.required_text("unit")
    amount = fields.required_number("amount")
    fields.finish()
    if not unit.isprintable() or len(unit) > 100:
        raise fields.error("unit", "must be a printable name of at most 100 characters")
    if amount <= 0:
        raise fields.error("amount", f"is {amount:g}, must be above 0")
    return Job(amount, unit)
