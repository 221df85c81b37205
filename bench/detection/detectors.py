"""Our detectors beside others on the same trials: `python -m bench.detection [--data FOLDER] [--peers FILE]`.

The peers are functions of a Python file, each `detect(values) -> indices`; what they need is installed in an
environment of their own, whose Python runs this then. Without data the trials are simulated.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from bench.detection import scoring
from bench.detection.printing import print_line
from bench.detection.scoring import (
    Alarms,
    Detector,
    detection_delay,
    false_alarms_by,
    lower_median,
    share_within,
)
from bench.detection.trials import Trial, Trials, load_trials, simulate_trials
from dashboard.detection import Point, Series, detect, judge_series, suspect


def judge_plain(values: Sequence[float]) -> list[int]:
    """What the site reports of a step time without samples: steps that are relevant too."""
    points = [Point(float(value)) for value in values]
    return [change.index for change in judge_series(Series(points, better="lower", kind="time"))]


OURS: dict[str, Detector] = {
    "paceline detect": detect,
    "paceline suspect": suspect,
    "paceline judge": judge_plain,
}
PERCENTS = (3, 5, 10)
COLUMNS = (
    "detector",
    "false alarms /1000: real, permuted, disturbed",
    "recall 3/5/10 %",
    "delay 5/10 %",
    "GPU: delay, within 5",
    "offline F1",
    "annotated F1/cover",
    "ms, n=1000",
)


def load_peers(path: Path) -> dict[str, Detector]:
    """The functions of a file that take the values alone; not what it imports, and not private ones."""
    spec = importlib.util.spec_from_file_location("peers", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: function for name, function in vars(module).items() if is_peer(module, name, function)}


def is_peer(module: ModuleType, name: str, function: object) -> bool:
    """A public function whose first argument is `v` or `values`, all others having defaults."""
    if name.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
        return False
    first, *others = inspect.signature(function).parameters.values()
    return first.name in ("v", "values") and all(other.default is not other.empty for other in others)


def table_row(name: str, detector: Detector, trials: Trials) -> str:
    """One line of the table; a peer that fails says with what."""
    try:
        detector([1.0, 1.1] * 20)
        cells = list(score_cells(detector, trials))
    except Exception as error:  # noqa: BLE001 - a peer is foreign code: its failure is a line of the table
        return f"| {name} | {type(error).__name__}: {str(error)[:80]} |" + " |" * (len(COLUMNS) - 2)
    return f"| {name} | " + " | ".join(cells) + " |"


def score_cells(detector: Detector, trials: Trials) -> Iterator[str]:
    """The cells of a line."""
    groups = false_alarms_by(lambda trial: trial.group, detector, trials.change_free)
    disturbed = false_alarms_by(lambda _: "", detector, trials.disturbed).get("", Alarms())
    kinds = (groups.get("real", Alarms()), groups.get("permuted", Alarms()), disturbed)
    yield ", ".join(f"{alarms.per_1000:.2f}" for alarms in kinds)
    online = {p: detection_delays(detector, [t for t in trials.online if t.percent == p]) for p in PERCENTS}
    yield "/".join(f"{share_within(online[p]):.2f}" for p in PERCENTS)
    yield "/".join(f"{lower_median(online[p]):g}" for p in PERCENTS[1:])
    device = detection_delays(detector, trials.device)
    yield f"{lower_median(device):g}, {share_within(device, 5):.2f}" if device else "-"
    yield f"{scoring.f1_of_all(detector, trials.offline):.2f}"
    yield annotated_scores(detector, trials)
    yield f"{scoring.processor_milliseconds(detector, 1000):.0f}"


def detection_delays(detector: Detector, trials: Sequence[Trial]) -> list[float]:
    """The delay of each trial."""
    return [detection_delay(detector, trial) for trial in trials]


def annotated_scores(detector: Detector, trials: Trials) -> str:
    """F1 and covering of the series that people have annotated."""
    found = [(detector(list(values)), people, len(values)) for values, people in trials.annotated]
    if not found:
        return "-"
    f1 = sum(scoring.f1_of_annotators(starts, people) for starts, people, _ in found) / len(found)
    cover = sum(scoring.covering_score(starts, people, n) for starts, people, n in found) / len(found)
    return f"{f1:.3f}/{cover:.3f}"


def source_table(trials: Trials) -> Iterator[str]:
    """Our false alarms per 1,000 points, by the source of the series."""
    real = [trial for trial in trials.change_free if trial.group == "real"]
    tracks = {"as they are": real, "disturbed": trials.disturbed}
    tables = [
        false_alarms_by(source_of, detector, some) for detector in OURS.values() for some in tracks.values()
    ]
    yield (
        "| source | " + " | ".join(f"{name.split()[-1]}, {track}" for name in OURS for track in tracks) + " |"
    )
    yield "|---|" + "---|" * len(tables)
    for source in sorted(set().union(*tables)):
        cells = (table.get(source) for table in tables)
        yield f"| {source} | " + " | ".join(f"{c.per_1000:.2f}" if c else "-" for c in cells) + " |"


def source_of(trial: Trial) -> str:
    """Where a series comes from."""
    return trial.source


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, and our false alarms by source."""
    parser = argparse.ArgumentParser(description="Compare change detectors.")
    parser.add_argument("--data", type=Path, help="folder with the trials; simulated without it")
    parser.add_argument("--peers", type=Path, help="Python file with other detectors")
    parser.add_argument("--only", default="", help="peers to show, separated by commas; all without it")
    options = parser.parse_args(arguments)
    trials = load_trials(options.data) if options.data else simulate_trials()
    others = load_peers(options.peers) if options.peers else {}
    chosen = [name for name in options.only.split(",") if name] or others
    print_line("| " + " | ".join(COLUMNS) + " |")
    print_line("|---" * len(COLUMNS) + "|")
    for name, detector in {**OURS, **{name: others[name] for name in chosen}}.items():
        print_line(table_row(name, detector, trials))
    print_line("")
    for line in source_table(trials):
        print_line(line)
