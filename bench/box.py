"""What the box costs: how long its start takes, and whether a step inside takes longer than outside."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from paceline import document

from workers.host.box.box import KINDS, NO_BOX, Box, BoxError, BoxView, Sandbox, open_box
from workers.host.execution import launching
from workers.host.logs import Log

from .lines import Line, format_part

ROOT = Path(__file__).resolve().parent.parent
# Milliseconds, of a run that takes seconds at least.
START_TARGET = 150


def measure_box(benchmark: str, settings: Sequence[str], starts: int, pairs: int) -> str:
    """Time so many starts of each kind and, where pairs are wanted, steps inside and outside; the tables."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        boxes = {"none": NO_BOX, **find_boxes(home)}
        parts = [start_part(boxes, home, starts)]
        if pairs:
            parts.append(step_part(boxes, home, benchmark, settings, pairs))
    return "\n".join(parts)


def find_boxes(home: Path) -> dict[str, Box]:
    """The kinds of box that this machine gives, by their names."""
    found: dict[str, Box] = {}
    for kind in KINDS:
        try:
            box = open_box(Sandbox(), home, (kind,))
        except BoxError as error:
            print(error)
            continue
        if box.encloses:
            found[box.kind] = box
    return found


def start_part(boxes: dict[str, Box], home: Path, starts: int) -> str:
    """The time of `/bin/true` in each box, less that of none, in turns."""
    times: dict[str, list[float]] = {kind: [] for kind in boxes}
    for _ in range(starts):
        for kind, box in boxes.items():
            times[kind].append(time_start(box, home))
    bare = statistics.median(times.pop("none"))
    lines = []
    for kind, measured in times.items():
        cost = 1000 * (statistics.median(measured) - bare)
        verdict = "ok" if cost < START_TARGET else "too much"
        lines.append(Line(kind, f"{cost:.0f} ms", f"{verdict}: below {START_TARGET} ms"))
    return format_part(f"Start and end of a box, median of {starts}", ["", "", "target"], lines)


def time_start(box: Box, home: Path) -> float:
    """Seconds from the start of a boxed command that does nothing to its end."""
    with tempfile.TemporaryDirectory(dir=home) as name:
        checkout, scratch = Path(name, "checkout"), Path(name, "scratch")
        checkout.mkdir()
        (scratch / "home").mkdir(parents=True)
        view = BoxView(writable=[scratch], private=[scratch / "home"], layered=checkout)
        started = perf_counter()
        with box.wrap_command(["/bin/true"], checkout, view, {}) as boxed:
            subprocess.run(boxed.command, check=True)
        return perf_counter() - started


def step_part(boxes: dict[str, Box], home: Path, benchmark: str, settings: Sequence[str], pairs: int) -> str:
    """The step time of one repetition after the other, each box beside none, alternating."""
    ratios: dict[str, list[float]] = {kind: [] for kind in boxes if kind != "none"}
    for number in range(pairs):
        for kind, found in ratios.items():
            order = [NO_BOX, boxes[kind]] if number % 2 == 0 else [boxes[kind], NO_BOX]
            measured = {box.kind: measure_step(box, home, benchmark, settings) for box in order}
            found.append(measured[boxes[kind].kind] / measured["none"])
    lines = [Line(kind, format_change(found), f"{pairs} pairs") for kind, found in ratios.items()]
    title = f"Step time in the box against outside, {' '.join([benchmark, *settings])} --quick"
    return format_part(title, ["", "", ""], lines)


def format_change(ratios: Sequence[float]) -> str:
    """The median ratio as a change in percent, with the standard error of the mean."""
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    return f"{100 * (statistics.median(ratios) - 1):+.2f} % ± {100 * error:.2f}"


def measure_step(box: Box, home: Path, benchmark: str, settings: Sequence[str]) -> float:
    """Seconds per step of one repetition."""
    params = {name: parse_value(value) for name, _, value in (word.partition("=") for word in settings)}
    measurement = launching.Measurement(
        benchmark=benchmark,
        params=params,
        repetitions=1,
        quick=True,
        time_limit=600,
        checkout=ROOT,
        python=Path(sys.executable),
        without=launching.TIMED_ONLY,
    )
    with launching.scratch_folder(home, "bench") as scratch:
        written = document.read_document(
            launching.run_harness(measurement, scratch, Log(), threading.Event(), box)
        )
    row = written.metric("step_time")
    if row is None:
        raise SystemExit(f"{benchmark} has no step time")
    return row.value


def parse_value(word: str) -> object:
    """A parameter's value as `--set` reads it: JSON, else a text."""
    try:
        return json.loads(word)
    except ValueError:
        return word
