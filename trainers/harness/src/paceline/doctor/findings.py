"""What a part of the check found: figures beside what was wanted, and how the part ended."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class State(enum.StrEnum):
    """How a part ended. `LEFT_OUT`: this host lacks what it needs, or no time was left."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure. `right` is None where nothing was wanted of it.

    A fact of the host `matters` or not, None where that isn't known; `command` would change it, and
    `wanted` says why it matters.
    """

    what: str
    value: str
    wanted: str = ""
    right: bool | None = None
    matters: bool | None = None
    command: str = ""

    def to_json(self) -> dict[str, Any]:
        raw = {"what": self.what, "value": self.value, "wanted": self.wanted, "right": self.right}
        if self.matters is not None:
            raw |= {"matters": self.matters, "command": self.command}
        return raw


@dataclass(slots=True)
class PartResult:
    """A part of the check: its findings, and the documents that they were read from, cut to what counts."""

    name: str
    state: State
    sentence: str = ""
    findings: Sequence[Finding] = ()
    documents: Sequence[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def look_at(self) -> list[str]:
        """What somebody should look at: findings that aren't as wanted, and what failed altogether."""
        wrong = [row for row in self.findings if row.right is False]
        sentences = [f"{self.name}: {row.what} is {row.value}, wanted {row.wanted}" for row in wrong]
        if self.state == State.FAILED and self.sentence:
            sentences.append(f"{self.name}: {self.sentence}")
        return sentences

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": str(self.state),
            "sentence": self.sentence,
            "seconds": round(self.seconds, 1),
            "findings": [row.to_json() for row in self.findings],
            "documents": list(self.documents),
        }


class LeftOutError(Exception):
    """This host can't run the part; the sentence says why."""


def compare_with(what: str, value: float | None, wanted: float, tolerance: float, unit: str = "") -> Finding:
    """A figure that must lie within `tolerance` (a share) of what is wanted; 0 for exactly."""
    if value is None:
        return Finding(what, "not measured", f"{wanted:,.6g}{unit}", False)
    off = abs(value - wanted)
    shown = f"{value:,.6g}{unit}"
    if not tolerance:
        return Finding(what, shown, f"{wanted:,.6g}{unit}", off == 0)
    within = f"{wanted:,.6g}{unit} within {tolerance:.0%}"
    return Finding(what, shown, within, off <= tolerance * abs(wanted))


def part_state(findings: Sequence[Finding]) -> State:
    return State.FAILED if any(row.right is False for row in findings) else State.PASSED
