"""How far pairs of one commit lie apart: processes one after the other, and such whose steps take turns.

Nothing changed between the two of a pair: all that is found is the noise that an experiment meets.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from paceline import document
from paceline.measured.turns import FIRST, SECOND

from .lines import Line, format_part

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"one after the other": False, "steps in turn": True}


def measure_turns(benchmark: str, settings: Sequence[str], pairs: int) -> str:
    """Measure so many pairs of each kind, alternating, and return their table."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for number in range(pairs):
        for kind in KINDS if number % 2 == 0 else reversed(KINDS):
            found[kind].append(_measure_pair(benchmark, settings, KINDS[kind]))
    lines = [_noise_line(kind, measured) for kind, measured in found.items()]
    serial, turns = (statistics.stdev(log for log, _ in found[kind]) for kind in KINDS)
    lines.append(Line("", f"{serial / turns:.1f} times less", f"{pairs} pairs of each"))
    title = f"Pairs of one commit, {' '.join([benchmark, *settings])} --quick: deviation of their ratio"
    return format_part(title, ["", "", "a pair takes"], lines)


def _noise_line(kind: str, measured: Sequence[tuple[float, float]]) -> Line:
    deviation = statistics.stdev(log for log, _ in measured)
    return Line(kind, f"{100 * deviation:.2f} %", f"{statistics.mean(took for _, took in measured):.1f} s")


def _measure_pair(benchmark: str, settings: Sequence[str], in_turns: bool) -> tuple[float, float]:
    """Return the logarithm of the ratio of two step times, and the seconds that both took."""
    started = perf_counter()
    with tempfile.TemporaryDirectory() as name:
        sides = [Path(name, side) for side in (FIRST, SECOND)]
        commands = [_run_command(benchmark, settings, side, in_turns) for side in sides]
        if in_turns:
            running = [_start_run(command) for command in commands]
            _wait_for_all(running)
        else:
            for command in commands:
                _wait_for_all([_start_run(command)])
        documents = [document.read_document(side.with_suffix(".json").read_bytes()) for side in sides]
        times = [measured.metric("step_time") for measured in documents]
    first, second = (row.value for row in times if row is not None)
    return math.log(second / first), perf_counter() - started


def _run_command(benchmark: str, settings: Sequence[str], side: Path, in_turns: bool) -> list[str]:
    command = [sys.executable, "-P", "-m", "paceline", "run", benchmark, "--quick", "--timed-only"]
    command += [f"--set={setting}" for setting in settings]
    command += ["--repetitions=1", f"--document={side.with_suffix('.json')}"]
    return [*command, f"--turns={side}"] if in_turns else command


def _start_run(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait_for_all(running: Sequence[subprocess.Popen[bytes]]) -> None:
    if any([process.wait() for process in running]):  # noqa: C419  # all are waited for
        raise SystemExit("the benchmark failed; run it by hand to see why")
