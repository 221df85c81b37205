"""The drawings of docs/method/, made by the code that they explain: `python -m bench.drawings`.

The histories and the pairs in them are simulated, always the same ones; what is drawn over them (levels,
intervals, ranges, which commit is next) is what the product's own functions say. A test compares the files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from dashboard.detection import (
    FalseAlarmBudget,
    GuardedPoint,
    Point,
    Series,
    judge_guarded,
    judge_series,
    pairs,
)

FOLDER = Path(__file__).resolve().parent.parent / "docs/images/method"
INK, MUTED, BLUE, ORANGE, PAPER = "#1f2933", "#7b8794", "#2563a8", "#c2571a", "#ffffff"
WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 30, 48


@dataclass(slots=True)
class Drawing:
    """An SVG whose data lie between `x` and `y`; what is drawn first lies below."""

    title: str
    x: tuple[float, float]
    y: tuple[float, float]
    height: int = HEIGHT
    parts: list[str] = field(default_factory=list)

    def across(self, value: float) -> float:
        low, high = self.x
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def down(self, value: float) -> float:
        low, high = self.y
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - TOP - BOTTOM)

    def line(
        self, points: Sequence[tuple[float, float]], color: str = INK, width: float = 1.5, dash: str = ""
    ) -> None:
        path = " ".join(f"{self.across(x):.1f},{self.down(y):.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{dashed}/>'
        )

    def band(self, points: Sequence[tuple[float, float]], color: str = BLUE) -> None:
        path = " ".join(f"{self.across(x):.1f},{self.down(y):.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" fill="{color}" fill-opacity="0.15"/>')

    def box(self, x: tuple[float, float], y: tuple[float, float], color: str = BLUE) -> None:
        self.band([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])], color)

    def dot(self, x: float, y: float, color: str = INK, *, filled: bool = True, size: float = 3.5) -> None:
        fill = color if filled else PAPER
        self.parts.append(
            f'<circle cx="{self.across(x):.1f}" cy="{self.down(y):.1f}" r="{size:g}" fill="{fill}" '
            f'stroke="{color}" stroke-width="1.2"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        color: str = INK,
        anchor: str = "start",
        shift: tuple[float, float] = (0, 0),
    ) -> None:
        self.parts.append(
            f'<text x="{self.across(x) + shift[0]:.1f}" y="{self.down(y) + shift[1]:.1f}" fill="{color}" '
            f'text-anchor="{anchor}">{escape(words)}</text>'
        )

    def name_axes(self, across: str, down: str) -> None:
        self.parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{self.height - 10}" fill="{MUTED}" text-anchor="end">'
            f"{escape(across)}</text>"
            f'<text x="12" y="18" fill="{MUTED}">{escape(down)}</text>'
        )

    def mark_heights(self, marks: Sequence[tuple[float, str]]) -> None:
        for value, words in marks:
            self.line([(self.x[0], value), (self.x[1], value)], "#e4e7eb", 1)
            self.text(self.x[0], value, words, color=MUTED, anchor="end", shift=(-8, 4))

    def mark_places(self, marks: Sequence[tuple[float, str]]) -> None:
        for value, words in marks:
            self.text(value, self.y[0], words, color=MUTED, anchor="middle", shift=(0, 18))

    def as_svg(self) -> str:
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            'font-family="system-ui, sans-serif" font-size="13">\n'
            f"<title>{escape(self.title)}</title>\n"
            f'<rect width="{WIDTH}" height="{self.height}" fill="{PAPER}"/>\n{body}\n</svg>\n'
        )


def draw_detection() -> Drawing:
    """A history of a step time with one slow run and one step, and what is found in it."""
    rng = np.random.default_rng(5)
    levels = np.where(np.arange(40) < 25, 10.0, 11.3)
    values = levels[:, None] * np.exp(rng.normal(0, 0.02, (40, 3)))
    values[11] *= 1.14
    points = [Point(float(np.median(row)), tuple(row.tolist())) for row in values]
    (change,) = judge_series(Series(points, better="lower", kind="time"))
    drawn = Drawing(
        "A history, the two levels found in it, and the change between them", (0, 41), (9.3, 12.3)
    )
    drawn.mark_heights([(10, "10 ms"), (11, "11 ms"), (12, "12 ms")])
    drawn.box((change.earliest + 0.5, change.latest + 1.5), drawn.y, ORANGE)
    for index, point in enumerate(points):
        drawn.dot(index + 1, point.value, MUTED, filled=index != 11)
    drawn.line([(1, change.before), (change.index + 0.5, change.before)], BLUE, 3)
    drawn.line([(change.index + 0.5, change.after), (40, change.after)], ORANGE, 3)
    drawn.text(12, points[11].value, "one slow run: an outlier", color=MUTED, shift=(8, 4))
    ends = f"[{100 * (change.low - 1):.0f}, {100 * (change.high - 1):.0f}]"
    drawn.text(40, change.after, f"+{100 * (change.ratio - 1):.0f} % {ends}", anchor="end", shift=(0, 48))
    drawn.text(1, change.before, "level before", color=BLUE, shift=(0, 36))
    drawn.name_axes("commits in the order of the branch", "step time")
    return drawn


def simulate_pairs(count: int, step: float, noise: float, seed: int) -> tuple[list[float], list[float]]:
    """Logarithms of both sides' values: the machine wanders for both, and each has a noise of its own."""
    rng = np.random.default_rng(seed)
    machine = np.cumsum(rng.normal(0, 0.02, count))
    base = machine + rng.normal(0, noise, count)
    head = machine + step + rng.normal(0, noise, count)
    return base.tolist(), head.tolist()


def draw_experiment() -> Drawing:
    """The pairs of an estimate, and its interval after each."""
    base, head = simulate_pairs(16, math.log(1.05), 0.01, 7)
    drawn = Drawing("The interval of an experiment narrows pair by pair", (0.5, 16.8), (-3, 13), height=300)
    drawn.mark_heights([(value, f"{value:+d} %" if value else "0") for value in (0, 5, 10)])
    low, high, middle = [], [], []
    for count in range(pairs.FEWEST_PAIRS, len(base) + 1):
        share = pairs.estimate_share(base[:count], head[:count], 0.003)
        if share.low is None or share.high is None:
            continue
        low.append((count, max(-3.0, 100 * math.expm1(share.low))))
        high.append((count, min(13.0, 100 * math.expm1(share.high))))
        middle.append((count, 100 * math.expm1(share.share)))
    drawn.band([*low, *reversed(high)])
    drawn.line(middle, BLUE, 2.5)
    drawn.line([(0.5, 0), (16.8, 0)], INK, 1.2)
    for index, (first, second) in enumerate(zip(base, head, strict=True)):
        drawn.dot(index + 1, 100 * math.expm1(second - first), ORANGE)
    drawn.mark_places([(count, str(count)) for count in (1, 4, 8, 12, 16)])
    drawn.text(0.7, -2, "each dot is one pair: the head against the base", color=ORANGE)
    ends = f"[{low[-1][1]:.1f}, {high[-1][1]:.1f}]"
    drawn.text(
        16.6, 11.3, f"after {len(base)} pairs: {middle[-1][1]:+.1f} % {ends}", color=BLUE, anchor="end"
    )
    drawn.name_axes("pairs", "difference")
    return drawn


def draw_verdicts() -> Drawing:
    """Five intervals of a test, and what each says."""
    rows = ((0.75, 0.2), (0.95, 0.55), (0.1, 0.25), (0.4, 0.5), (0.25, 0.6))
    drawn = Drawing("What the interval of a test says", (-0.6, 2.2), (0.3, len(rows) + 0.6))
    for value, words in ((0, "nothing"), (pairs.HALF, "half"), (1, "the whole step")):
        drawn.line([(value, drawn.y[0]), (value, drawn.y[1])], MUTED, 1, "4 4")
        drawn.text(value, drawn.y[0], words, color=MUTED, anchor="middle", shift=(0, 18))
    words_of = {"confirmed": "confirmed", "refuted": "refuted", "open": "another pair"}
    colors = {"confirmed": ORANGE, "refuted": BLUE, "open": MUTED}
    for row, (middle, half) in enumerate(rows):
        height = len(rows) - row
        verdict = pairs.step_verdict(pairs.ShareEstimate(8, middle, middle - half, middle + half), 0.15)
        drawn.line([(middle - half, height), (middle + half, height)], colors[verdict], 3)
        drawn.dot(middle, height, colors[verdict], size=5)
        drawn.text(1.75, height, words_of[verdict], color=colors[verdict], shift=(0, 4))
    drawn.name_axes("part of the suspected step", "")
    return drawn


def draw_budget() -> Drawing:
    """What a commit may risk, before and after an alert that was refuted."""
    budget, risks = FalseAlarmBudget(), []
    for commit in range(1, 151):
        risks.append((commit, 100 * budget.risk))
        _, budget = budget.decide({})
        if commit == 30:
            budget = budget.after_refutation()
    drawn = Drawing("What each commit may risk, and what a refuted alert does to it", (0, 152), (0, 1.25))
    drawn.mark_heights([(0, "0"), (0.5, "0.5 %"), (1, "1 %")])
    drawn.line(risks, BLUE, 2.5)
    drawn.dot(31, risks[30][1], ORANGE, size=5)
    drawn.text(
        31, risks[30][1], "an alert is refuted: the next ones are believed less", color=ORANGE, shift=(12, 16)
    )
    drawn.text(2, 1, "a hundredth of one false alert per 100 commits", color=BLUE, shift=(0, -10))
    drawn.mark_places([(commit, str(commit)) for commit in (1, 30, 60, 90, 120, 150)])
    drawn.name_axes("commits", "risk of a false alert")
    return drawn


def draw_sentinel() -> Drawing:
    """One pinned commit, measured daily on two machines, of which one gets slower."""
    rng = np.random.default_rng(11)
    drawn = Drawing("One pinned commit, measured daily on two machines", (0, 33), (9.2, 11.6))
    drawn.mark_heights([(10, "10 ms"), (11, "11 ms")])
    for name, moved, color in (("gpu-1", 1.0, BLUE), ("gpu-2", 1.07, ORANGE)):
        day = np.arange(30)
        values = 10 * np.where(day < 18, 1.0, moved)[:, None] * np.exp(rng.normal(0, 0.008, (30, 3)))
        points = [Point(float(np.median(row)), tuple(row.tolist())) for row in values]
        for index, point in enumerate(points):
            drawn.dot(index + 1, point.value, color, filled=color == ORANGE)
        for change in judge_series(Series(points, better="lower", kind="time")):
            drawn.line([(change.index + 0.5, 9.2), (change.index + 0.5, 11.6)], ORANGE, 1.2, "4 4")
            words = f"{name} moved by {100 * (change.ratio - 1):+.0f} %"
            drawn.text(change.index + 0.5, 11.4, words, color=ORANGE, shift=(8, 0))
        drawn.text(30.4, points[-1].value, name, color=color, shift=(4, 4))
    drawn.name_axes("days", "step time of the same code")
    return drawn


def draw_bisection() -> Drawing:
    """Which commit of a range is measured next, round by round, with one that doesn't run."""
    from dashboard.regressions.decision.bisection import narrow_range

    line = [str(index) for index in range(17)]
    culprit, broken = 11, 12
    rounds: list[tuple[int, int, int | None, str]] = []
    verdicts: dict[str, str] = {}
    while True:
        left = narrow_range(line, verdicts)
        good, bad = int(left.good), int(left.bad)
        if left.middle is None:
            rounds.append((good, bad, None, ""))
            break
        middle = int(left.middle)
        verdict = "whole" if middle >= culprit else "none"
        verdict = "untestable" if middle == broken else verdict
        verdicts[left.middle] = verdict
        rounds.append((good, bad, middle, verdict))
    verdict_texts = {
        "whole": "has the step",
        "none": "doesn't have it",
        "untestable": "doesn't run: left out",
    }
    drawn = Drawing(
        "Each experiment leaves about half of the range",
        (-0.5, 24.5),
        (0.3, len(rounds) + 0.6),
        height=72 + 34 * len(rounds),
    )
    for row, (good, bad, measured, verdict) in enumerate(rounds):
        height = len(rounds) - row
        drawn.box((good + 0.5, bad + 0.5), (height - 0.36, height + 0.36))
        for commit in range(17):
            drawn.dot(commit, height, MUTED if commit != measured else ORANGE, filled=commit == measured)
        words = (
            f"commit {measured} {verdict_texts[verdict]}" if measured is not None else f"left: commit {bad}"
        )
        drawn.text(17.2, height, words, color=ORANGE if measured is not None else BLUE, shift=(0, 4))
        drawn.text(
            -0.5,
            height,
            f"{row + 1}" if measured is not None else "end",
            color=MUTED,
            anchor="end",
            shift=(-8, 4),
        )
    drawn.mark_places([(commit, str(commit)) for commit in (0, 4, 8, 12, 16)])
    drawn.name_axes("commits; blue: where the cause may lie", "experiment")
    return drawn


def draw_regression() -> Drawing:
    """The ranges of four changes: three have one cause, the fourth another."""
    from dashboard.regressions.decision.ranges import Range

    rows = (
        ("step time, case A", Range(4, 9)),
        ("throughput, case A", Range(4, 10)),
        ("step time, case B", Range(6, 9)),
        ("peak memory, case A", Range(12, 14)),
    )
    groups: list[tuple[list[str], Range]] = []
    for name, span in rows:
        for index, (names, common) in enumerate(groups):
            if both := common.overlap(span):
                groups[index] = ([*names, name], both)
                break
        else:
            groups.append(([name], span))
    count = len(rows) + len(groups)
    drawn = Drawing("Changes whose commit ranges overlap have one cause", (-4.4, 21), (0.2, count + 0.8))
    for row, (name, span) in enumerate(rows):
        drawn.text(-0.4, count - row, name, anchor="end", shift=(0, 4))
        drawn.line([(span.good + 0.5, count - row), (span.bad + 0.5, count - row)], MUTED, 6)
    for row, (names, common) in enumerate(groups):
        height = len(groups) - row
        color = (ORANGE, BLUE)[row % 2]
        drawn.box((common.good + 0.5, common.bad + 0.5), (height - 0.4, count + 0.5), color)
        drawn.text(-0.4, height, f"regression {row + 1}", color=color, anchor="end", shift=(0, 4))
        drawn.line([(common.good + 0.5, height), (common.bad + 0.5, height)], color, 6)
        words = f"{common.width} commits left, {len(names)} change{'s' if len(names) > 1 else ''}"
        drawn.text(common.bad + 0.7, height, words, color=color, shift=(0, 4))
    drawn.mark_places([(commit, str(commit)) for commit in (1, 4, 8, 12, 16)])
    drawn.name_axes("commits", "")
    return drawn


def draw_repair() -> Drawing:
    """A step and an improvement, and how much of the step a repair may leave."""
    from dashboard.regressions.decision.repair import LEFT_OVER

    rng = np.random.default_rng(3)
    levels = np.select([np.arange(36) < 12, np.arange(36) < 25], [10.0, 11.5], 10.15)
    values = levels * np.exp(rng.normal(0, 0.006, 36))
    drawn = Drawing("A repair leaves little of the step", (0, 37), (9.5, 12.1))
    drawn.mark_heights([(10, "10 ms"), (11, "11 ms"), (12, "12 ms")])
    bound = 10 + LEFT_OVER * 1.5
    drawn.box((25.5, 36.5), (9.5, bound))
    drawn.line([(25.5, bound), (36.5, bound)], BLUE, 1.2, "4 4")
    for index, value in enumerate(values):
        drawn.dot(index + 1, float(value), ORANGE if 12 <= index < 25 else MUTED)
    drawn.text(13, 11.85, "the regression", color=ORANGE)
    drawn.text(
        36.5,
        bound,
        f"recovered: at most {100 * LEFT_OVER:.0f} % of the step is left",
        color=BLUE,
        anchor="end",
        shift=(0, -8),
    )
    drawn.name_axes("commits in the order of the branch", "step time")
    return drawn


def draw_learning() -> Drawing:
    """What three seeds learn at each commit, and where the guard is left and kept again."""
    rng = np.random.default_rng(8)
    levels = np.select([np.arange(30) < 14, np.arange(30) < 22], [9.3, 2.0], 9.2)
    seeds = rng.normal(levels[:, None], 0.6, (30, 3))
    points = [Point(float(np.mean(row)), tuple(row.tolist())) for row in seeds]
    guarded = [GuardedPoint(point.value, failed=point.value < 3) for point in points]
    lost, repaired = judge_guarded(Series(points, better="higher", kind="quality"), guarded)
    drawn = Drawing("A commit after which training no longer learns", (0, 31), (0, 12))
    drawn.mark_heights([(4, "4"), (8, "8"), (12, "12")])
    drawn.box((lost.index + 0.5, repaired.index + 0.5), drawn.y, ORANGE)
    drawn.line([(0, 3), (31, 3)], INK, 1.2, "4 4")
    drawn.text(1, 3, "the guard: at least 3", shift=(0, -8))
    for index, row in enumerate(seeds):
        for value in row:
            drawn.dot(index + 1, float(value), MUTED, size=2.5)
    for start, end, level, color in (
        (1, lost.index + 0.5, lost.before, BLUE),
        (lost.index + 0.5, repaired.index + 0.5, lost.after, ORANGE),
        (repaired.index + 0.5, 30, repaired.after, BLUE),
    ):
        drawn.line([(start, level), (end, level)], color, 3)
    words = f"{lost.after:.1f} instead of {lost.before:.1f}"
    drawn.text((lost.index + repaired.index) / 2 + 0.5, 6, words, color=ORANGE, anchor="middle")
    drawn.name_axes("commits in the order of the branch", "score of each seed")
    return drawn


def draw_explanation() -> Drawing:
    """One step before and after, split into its phases."""
    before = {"rollout": 4.0, "replay/sample": 2.0, "learn": 3.0, "(unattributed)": 2.0}
    after = {"rollout": 4.1, "replay/sample": 3.4, "learn": 3.0, "(unattributed)": 2.0}
    drawn = Drawing("A step before and after, split into its phases", (0, 14.4), (0.2, 3.1), height=230)
    moved = sum(after.values()) - sum(before.values())
    for height, name, phases in ((2.4, "before", before), (1.4, "after", after)):
        drawn.text(0, height, name, color=MUTED, anchor="end", shift=(-8, 4))
        start = 0.0
        for phase, took in phases.items():
            color = ORANGE if phase == "replay/sample" else BLUE
            drawn.box((start + 0.03, start + took - 0.03), (height - 0.34, height + 0.34), color)
            drawn.text(start + 0.1, height, phase, color=INK, shift=(0, 4))
            start += took
        drawn.text(start, height, f"{start:.1f} ms", shift=(8, 4))
    lost = after["replay/sample"] - before["replay/sample"]
    words = f"replay/sample lost {lost:.1f} of {moved:.1f} ms: it explains {100 * lost / moved:.0f} %"
    drawn.text(0, 0.5, words, color=ORANGE)
    drawn.name_axes("own time per step", "")
    return drawn


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "detection": draw_detection,
    "experiment": draw_experiment,
    "verdicts": draw_verdicts,
    "false_alarm_budget": draw_budget,
    "sentinel": draw_sentinel,
    "bisection": draw_bisection,
    "regression": draw_regression,
    "repair": draw_repair,
    "learning": draw_learning,
    "explanation": draw_explanation,
}


def write_drawings() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(draw().as_svg())


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    write_drawings()
