"""A/A: how far the runs of one commit lie apart, before and after the median of their repetitions."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from paceline import document
from paceline.document import Document
from paceline.document_rows import MetricValue
from paceline.statistics import median

from .lines import Line, format_part

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".paceline" / "bench"


def measure_repeatability(benchmark: str, settings: Sequence[str], runs: int, quick: bool) -> str:
    """Measure so many times, and return the tables of spreads and of counters."""
    documents = [_run_benchmark(benchmark, settings, number, quick) for number in range(runs)]
    found: defaultdict[tuple[str, str], list[MetricValue]] = defaultdict(list)
    for each in documents:
        for value in each.metrics:
            found[value.name, value.phase or ""].append(value)
    counters = {key: values for key, values in found.items() if values[0].kind == "counter"}
    spreads = [_spread_line(*key, values) for key, values in found.items() if key not in counters]
    title = f"A/A: {runs} runs of {' '.join([benchmark, *settings])}{' --quick' if quick else ''}"
    return "\n".join(
        [
            format_part(f"{title}: MAD of the median, (range)", ["", "repetitions", "runs"], spreads),
            format_part("Counters", ["", "", ""], _counter_lines(counters, runs)),
        ]
    )


def _run_benchmark(benchmark: str, settings: Sequence[str], number: int, quick: bool) -> Document:
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"repeat-{number}.json"
    command = [sys.executable, "-P", "-m", "paceline", "run", benchmark, "--document", str(path)]
    command += [word for setting in settings for word in ("--set", setting)]
    command += ["--quick"] * quick
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return document.read_document(path.read_bytes())


def _spread_line(name: str, phase: str, values: list[MetricValue]) -> Line:
    single = [sample for value in values for sample in value.samples]
    return Line(
        f"{name}:{phase}" if phase else name,
        _format_spread(single),
        _format_spread([value.value for value in values]),
    )


def _format_spread(values: Sequence[float]) -> str:
    middle = median(values) if values else 0.0
    if not middle:
        return "all 0" if not any(values) else f"{min(values):.4g} .. {max(values):.4g}"
    deviation = median([abs(value - middle) for value in values]) / abs(middle)
    spread = (max(values) - min(values)) / abs(middle)
    return f"{100 * deviation:.2f} % ({100 * spread:.1f} %)"


def _counter_lines(found: dict[tuple[str, str], list[MetricValue]], runs: int) -> list[Line]:
    lines = []
    alike = 0
    for (name, phase), values in found.items():
        seen = sorted({value.value for value in values})
        if len(seen) == 1 and len(values) == runs:
            alike += 1
            continue
        marked = "marked inexact" if not all(value.exact for value in values) else "marked EXACT"
        title = f"{name}:{phase}" if phase else name
        lines.append(Line(title, f"{seen[0]:.6g} .. {seen[-1]:.6g}", marked))
    return [Line("repeat exactly in every run", f"{alike} of {len(found)}", ""), *lines]
