"""What detection is given, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Better = Literal["lower", "higher"]
Kind = Literal["time", "rate", "memory", "utilization", "counter", "quality"]
# "moved": parts grew by as much as others shrank, and the whole stands still.
Direction = Literal["regression", "improvement", "moved"]
Verdict = Literal["~", "higher", "lower", "?"]


class Point(NamedTuple):
    """One run's value, in the metric's unit, with its repetitions' values (may be empty).

    A tuple, since a judgement makes tens of thousands of them.
    """

    value: float
    samples: tuple[float, ...] = ()
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Points in the order of their commits. `exact`: the metric repeats to the last digit.

    `floor`: the smallest relevant step, a fraction of the level, where it isn't that of the kind. `is_cut`:
    there were points before these.
    """

    points: Sequence[Point]
    better: Better
    kind: Kind
    exact: bool = False
    floor: float | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason to look twice, as a code of `dashboard.detection.doubts` with what it is about."""

    code: str
    about: Mapping[str, float | list[str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, **self.about}


@dataclass(frozen=True, slots=True)
class Change:
    """A new level starts at `points[index]`, the first bad (or first better) point.

    `before` and `after` are levels in the metric's unit, medians of the points' values. `ratio` is
    after / before as judged, which for times and rates means by the best repetitions, or where only some
    processes show it by all of them (then `after` is `ratio` times `before`); it lies in [`low`, `high`] with
    95 % probability. `confidence` (0..1) is the probability that the step isn't noise.
    It may as well have started anywhere from `earliest` to `latest` (both are
    positions in `points`): there the step fits nearly as well as at the index.
    """

    index: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    direction: Direction
    confidence: float
    earliest: int
    latest: int
    doubts: tuple[Doubt, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Comparison:
    """How group b stands to group a. `ratio` is b / a, in [`low`, `high`] with 95 % probability.

    The verdict is `~` where no difference is seen, `higher`, `lower`, or a question mark where there are too
    few samples to tell.
    """

    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    doubts: tuple[Doubt, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Difference:
    """How far group b lies from group a, in the unit of both: in [`low`, `high`] with 95 % probability.

    The verdicts are those of a Comparison.
    """

    difference: float
    low: float | None
    high: float | None
    verdict: Verdict
    doubts: tuple[Doubt, ...] = field(default=())
