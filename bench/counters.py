"""Which counters repeat exactly: frameworks' scripts, counted in processes with other hash seeds."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from paceline.document_building import counters
from paceline.manifest.environment_variables import THREAD_VARIABLES
from paceline.measured.plan import ProcessPlan
from paceline.watching.process import MeasuredProcess

from .lines import Line, format_part

SCRIPTS = Path(__file__).resolve().parent / "frameworks"
WARMUP_STEPS = 24
STEPS = 24
LONGEST = 600

Counts = dict[tuple[str, str], float]


def framework_names() -> list[str]:
    """Return the scripts' names."""
    return sorted(path.stem for path in SCRIPTS.glob("[a-z]*.py"))


def count_processes(name: str, processes: int) -> list[Counts]:
    """Count the script in so many processes, each with a hash seed of its own, two side by side."""
    with ThreadPoolExecutor(2) as running:
        return list(running.map(partial(_count_process, name), range(processes)))


def _count_process(name: str, hash_seed: int) -> Counts:
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), "PYTHONHASHSEED": str(hash_seed)}
    with tempfile.TemporaryDirectory() as folder:
        plan = ProcessPlan(
            kind="counting",
            script=f"{name}.py",
            arguments=[],
            folder=str(SCRIPTS),
            warmup_steps=WARMUP_STEPS,
            steps=STEPS,
            seed=0,
            result="",
            progress="",
            package="",
            parent=0,
            auto=True,
        )
        with MeasuredProcess(plan, Path(folder), environment) as process:
            if not process.wait(LONGEST):
                raise SystemExit(f"{name} took longer than {LONGEST} s")
            return dict(_read_counters(process.outcome()["result"]))


def _read_counters(result: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    for row in counters.counter_rows([result]):
        if row["kind"] == "counter":
            yield (row["name"], row["phase"] or ""), row["value"]


def differing_counters(found: list[Counts]) -> dict[str, tuple[float, float]]:
    """Return the counters that differed between processes, with their smallest and largest value."""
    values: defaultdict[str, set[float]] = defaultdict(set)
    for name, phase in {key for counts in found for key in counts}:
        label = f"{name}:{phase}" if phase else name
        values[label] = {counts.get((name, phase), 0.0) for counts in found}
    return {label: (min(seen), max(seen)) for label, seen in sorted(values.items()) if len(seen) > 1}


def measure_counters(processes: int) -> str:
    """Return the table for a terminal."""
    lines = [_count_framework(name, processes) for name in framework_names()]
    title = f"Counters of frameworks' scripts in {processes} processes, each with another hash seed"
    return format_part(title, ["", "repeat exactly", "differ"], lines)


def _count_framework(name: str, processes: int) -> Line:
    print(f"counting {name}", file=sys.stderr, flush=True)
    found = count_processes(name, processes)
    differing = differing_counters(found)
    number = len({key for counts in found for key in counts})
    shown = [f"{label} {low:.6g} .. {high:.6g}" for label, (low, high) in [*differing.items()][:4]]
    return Line(name, f"{number - len(differing)} of {number}", "; ".join(shown) or "none")
