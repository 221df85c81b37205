"""Scaling: one parameter swept over several values, each in fresh processes that run their whole loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .fields import Fields, Scalar

VALUES_LIMIT = 20
REPETITIONS_LIMIT = 10


@dataclass(frozen=True, slots=True)
class Sweep:
    """Which values of a parameter are measured, how often each, and what else is set for it."""

    parameter: str
    values: tuple[float, ...]
    repetitions: int
    params: Mapping[str, Scalar]


def parse(fields: Fields | None) -> Sweep | None:
    """Read the manifest's table `scaling`; raises ManifestError."""
    if fields is None:
        return None
    parameter = fields.required_text("parameter")
    values = fields.required_numbers("values")
    sweep = Sweep(
        parameter=parameter,
        values=tuple(sorted(values)),
        repetitions=fields.integer("repetitions", 2, minimum=1, maximum=REPETITIONS_LIMIT),
        params=fields.scalars("params") or {},
    )
    fields.finish()
    if not (parameter.isascii() and parameter.isidentifier()):
        raise fields.error("parameter", f"is {parameter!r}, must be a parameter of the script")
    if parameter in sweep.params:
        raise fields.error(f"params.{parameter}", "is the swept parameter itself")
    if not 3 <= len(set(values)) == len(values) <= VALUES_LIMIT:
        raise fields.error("values", f"must be 3 to {VALUES_LIMIT} different numbers")
    if min(values) <= 0:
        raise fields.error("values", f"has {min(values):g}, must be above 0")
    return sweep
