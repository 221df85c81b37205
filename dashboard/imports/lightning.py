"""Reports of Lightning's SimpleProfiler and AdvancedProfiler, as they print them or write them to a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from dashboard.imports import units
from dashboard.imports.json_file import ReportProgress, locate_commit
from dashboard.imports.results import (
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportOrigin,
    ImportRefused,
    printable_text,
)
from dashboard.name_lengths import LONGEST_PHASE

LONGEST_REPORT = 64 * 1024 * 1024
# A row of the SimpleProfiler: action, mean, calls, total, percent; without calls and percent before 1.5, and
# with `extended=False`.
ROW = re.compile(
    r"^\|?\s*(?P<action>\S.*?)\s*\|\s*(?P<mean>[-+.\deE]+)\s*\|"
    r"(?:\s*(?P<calls>\d+)\s*\|)?\s*(?P<total>[-+.\deE]+)\s*(?:\|(?:\s*[-+.\deE]+\s*\|?)?)?\s*$"
)
# What the AdvancedProfiler says of an action: the profile of all its calls together.
ACTION = re.compile(r"^\s*Profile stats for: (?P<action>.+?)(?: rank: \d+)?\s*$")
SECONDS = re.compile(
    r"^\s*\d+ function calls(?: \(\d+ primitive calls\))? in (?P<seconds>[.\d]+) seconds\s*$"
)
BATCH = "run_training_batch"
DATA = ("[_TrainingEpochLoop].train_dataloader_next", "get_train_batch")


def read_lightning(
    path: Path, origin: ImportOrigin, report_progress: ReportProgress = None
) -> ImportedResults:
    """A report of the commit that `origin` names; raises ImportRefused."""
    try:
        if path.stat().st_size > LONGEST_REPORT:
            raise ImportRefused(f"{path} has more than {LONGEST_REPORT >> 20} MiB: it is no report.")
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportRefused(f"{path} can't be read: {reason}.") from error
    commit, date = locate_commit(origin, path)
    values = tuple(_read_simple(lines)) or tuple(_read_advanced(lines))
    if not values:
        raise ImportRefused(
            f"{path} holds no report of the SimpleProfiler or the AdvancedProfiler; of the PyTorchProfiler "
            "its trace can be imported, by --format chrome-trace."
        )
    if report_progress:
        report_progress(1, 1)
    benchmark = origin.benchmark or "lightning"
    return ImportedResults([ImportedRun(commit, date, benchmark, {}, origin.pool or "imported", values)])


def _read_simple(lines: list[str]) -> Iterator[ImportedValue]:
    """Of training batches: the seconds of each action per batch, which is a step."""
    actions: dict[str, tuple[float, float]] = {}
    for line in lines:
        row = ROW.match(line)
        if row and row["action"] != "Total" and (total := _parse_seconds(row["total"])) is not None:
            # Where calls aren't counted, the mean tells how many they were, to five digits.
            mean = _parse_seconds(row["mean"])
            calls = float(row["calls"]) if row["calls"] else total / mean if mean else 0.0
            actions[row["action"]] = (calls, total)
    steps, batch_seconds = actions.get(BATCH, (0.0, 0.0))
    if not steps:
        yield from _total_times((action, total) for action, (_, total) in actions.items())
        return
    data_seconds = next((actions[name][1] for name in DATA if name in actions), 0.0)
    yield ImportedValue(units.standard_metric("step_time"), (batch_seconds + data_seconds) / steps)
    metric = units.standard_metric("phase_time")
    for action, (_, total) in actions.items():
        yield ImportedValue(metric, total / steps, phase=printable_text(action, LONGEST_PHASE))


def _read_advanced(lines: list[str]) -> Iterator[ImportedValue]:
    """It doesn't count how often an action ran: the seconds are those of the whole training."""
    action, found = "", {}
    for line in lines:
        if named := ACTION.match(line):
            action = named["action"]
        elif action and (timing := SECONDS.match(line)):
            found[action], action = float(timing["seconds"]), ""
    yield from _total_times(iter(found.items()))


def _total_times(actions: Iterator[tuple[str, float]]) -> Iterator[ImportedValue]:
    metric = units.reported_metric("action_time", "s", "lower")
    for action, seconds in actions:
        yield ImportedValue(metric, seconds, phase=printable_text(action, LONGEST_PHASE))


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None
