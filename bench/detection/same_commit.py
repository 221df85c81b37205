"""What detection makes of runs of one commit: first `make bench BENCH=repeat AA=30`, then
`python -m bench.detection.same_commit`.

Nothing changed between the runs, so every change, suspicion and alert is a false one. The documents are those
that the part `repeat` left; they are judged as a site would, after each run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from paceline import document
from paceline.document import Document

from bench.repeat import KEPT
from dashboard.detection import FalseAlarmBudget, judge_series, shift_p_value
from dashboard.detection.smallest_effect import minimum_detectable_effect
from dashboard.detection.types import Point, Series

BUDGETS = (1.0, 10.0)
NEW_POINTS = 3


@dataclass(slots=True)
class Judged:
    """One headline series: how often a change was reported, whether one stands, and what it would show."""

    points: int
    smallest: float
    reported: int = 0
    standing: int = 0
    p_values: list[float] = field(default_factory=list)


def read_documents() -> list[Document]:
    """The kept documents in the order of their runs."""
    paths = sorted(KEPT.glob("repeat-*.json"), key=lambda path: int(re.findall(r"\d+", path.name)[-1]))
    return [document.read_document(path.read_bytes()) for path in paths]


def headline_series(runs: Sequence[Document]) -> dict[str, Series]:
    """The series that may raise a suspicion, by their metric's name."""
    found: dict[str, Series] = {}
    for value in runs[0].metrics:
        rows = [run.metric(value.name, value.phase) for run in runs]
        if value.headline and all(rows):
            points = [
                Point(row.value, tuple(row.samples), tainted=run.taints(value.kind))
                for run, row in zip(runs, rows, strict=True)
                if row
            ]
            name = f"{value.name}:{value.phase}" if value.phase else value.name
            found[name] = Series(points, value.better, value.kind, exact=value.exact)
    return found


def judge_growing(series: Series) -> Judged:
    """Judge a growing series after each of its points."""
    judged = Judged(len(series.points), minimum_detectable_effect(series, NEW_POINTS))
    known: list[int] = []
    for end in range(1, len(series.points) + 1):
        part = Series(series.points[:end], series.better, series.kind, series.exact)
        now = [change.index for change in judge_series(part, known)]
        judged.reported += len(set(now) - set(known))
        judged.standing, known = len(now), now
        values = [point.value for point in part.points if not point.tainted]
        judged.p_values.append(1.0 if series.exact or not values else shift_p_value(values))
    return judged


def count_alerts(judged: dict[str, Judged], per_100_commits: float) -> int:
    """How many runs would have raised an alert under this budget, with nobody checking."""
    budget, count = FalseAlarmBudget(per_100_commits), 0
    for at in range(max(series.points for series in judged.values())):
        decision, budget = budget.decide({name: series.p_values[at] for name, series in judged.items()})
        count += bool(decision.raised)
    return count


def result_lines(runs: Sequence[Document]) -> Iterator[str]:
    judged = {name: judge_growing(series) for name, series in headline_series(runs).items()}
    yield f"{len(runs)} runs of one commit; {sum(run.tainted for run in runs)} of them tainted\n"
    yield f"| headline series | changes reported | standing at the end | {NEW_POINTS} points would show |"
    yield "|---|---|---|---|"
    for name, series in judged.items():
        yield f"| {name} | {series.reported} | {series.standing} | {100 * series.smallest:.0f} % |"
    yield ""
    for per_100_commits in BUDGETS:
        count = count_alerts(judged, per_100_commits)
        yield f"alerts without a proof, at a budget of {per_100_commits:g} in 100 commits: {count}"


def main() -> None:
    """Print the table."""
    runs = read_documents()
    if not runs:
        raise SystemExit("there are no documents: run `make bench BENCH=repeat AA=30` first")
    print("\n".join(result_lines(runs)))


if __name__ == "__main__":
    main()
