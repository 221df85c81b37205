"""The command `doctor`: runs the parts one after the other, within its minutes, and writes one report."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter

from .. import __version__, manifest
from ..manifest.toml_table import ManifestError
from ..watching.measurement_errors import MeasurementError, TimeLimitError
from . import (
    benchmark_parts,
    device_parts,
    framework_parts,
    harness_parts,
    host_part,
    timeline_parts,
)
from .findings import Finding, LeftOutError, PartResult, State, part_state
from .workbench import Workbench

FORMAT = "paceline.doctor/1"
MINUTES = 8.0
REPORT = Path("doctor.json")
CLAIMS = " claims"
# Seconds after which a driver that doesn't answer is given up.
LONGEST_START = 120.0

Check = Callable[[Workbench], list[Finding]]

HOST_PARTS: dict[str, Check] = {
    "host": host_part.check_host,
    "counters": harness_parts.check_counters,
    "overhead": harness_parts.check_overhead,
    "device time": device_parts.check_device_time,
    "device memory": device_parts.check_memory,
    "CUDA graph": device_parts.check_graph,
    "two streams": device_parts.check_streams,
    "neighbour": device_parts.check_neighbour,
    "timeline": timeline_parts.check_timeline,
    "FLOPs": timeline_parts.check_flops,
    "energy": timeline_parts.check_energy,
    "fragments": timeline_parts.check_fragments,
    "ranks": framework_parts.check_ranks,
    "lightning": framework_parts.check_lightning,
    "transformers": framework_parts.check_transformers,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `doctor`."""
    parser.description = (
        "Tries the harness on this host: counters, device time, memory, warnings and overhead against known "
        "work, then each benchmark of the manifest in short. It needs no site and no network."
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="M", help=f"at most; {MINUTES:g}")
    parser.add_argument(
        "--part", action="append", default=[], metavar="NAME", help="only this one; repeatable"
    )
    parser.add_argument("--report", type=Path, default=REPORT, metavar="PATH", help=f"JSON; {REPORT}")


def run_doctor(arguments: argparse.Namespace) -> int:
    """Run the parts, print what they find and write the report; 1 where a part failed."""
    if not 0 < arguments.minutes <= 60:
        raise ManifestError(f"--minutes is {arguments.minutes:g}, must be above 0 and at most 60")
    bench = Workbench(perf_counter() + 60 * arguments.minutes, Path.cwd())
    parts, results = chosen_parts(bench, arguments.part), []
    bench.has_cuda = can_use_cuda()
    for number, (name, check) in enumerate(parts):
        bench.begin_until = share_of_time(bench, [later for later, _ in parts[number:]])
        result = run_part(name, check, bench)
        print(format_result(result), flush=True)
        results.append(result)
        # After each part: whoever ends the check has what it found so far.
        write_report(results, arguments.report)
    print(format_conclusion(results, arguments.report))
    return int(any(result.state == State.FAILED for result in results))


def can_use_cuda() -> bool:
    """Whether torch computes on a device here; asked in a process of its own, which may be slow or crash."""
    code = "import torch; torch.ones(1, device='cuda').item()"
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-c", code], stdout=nowhere, stderr=nowhere)
    try:
        return process.wait(LONGEST_START) == 0
    except subprocess.TimeoutExpired:
        # Not waited for: one that waits inside its driver ends when that answers.
        process.kill()
        return False


def chosen_parts(bench: Workbench, names: Sequence[str]) -> list[tuple[str, Check]]:
    """All parts, or those that are named; raises ManifestError with one sentence for an unknown name."""
    parts = {**HOST_PARTS, **dict(find_benchmark_parts(bench))}
    for name in names:
        if name not in parts:
            raise ManifestError(f"--part is {name!r}, must be one of {', '.join(parts)}")
    return [(name, parts[name]) for name in names or parts]


def find_benchmark_parts(bench: Workbench) -> Iterator[tuple[str, Check]]:
    """A part for each benchmark, and behind all of them one for each one's claims about a device."""
    try:
        benchmarks = benchmark_parts.find_benchmarks(bench)
    except LeftOutError as why:
        # Bound now: the name is gone when the part runs.
        yield "benchmarks", partial(_leave_out, str(why))
        return
    folder = manifest.find_manifest(bench.folder).parent.resolve()
    for benchmark in benchmarks.values():
        yield (
            benchmark.name,
            partial(benchmark_parts.check_benchmark, benchmark=benchmark, folder=folder),
        )
    for benchmark in benchmarks.values():
        if any(benchmark_parts.device_claims(benchmark, folder)):
            claims = partial(benchmark_parts.check_claims, benchmark=benchmark, folder=folder)
            yield benchmark.name + CLAIMS, claims


def share_of_time(bench: Workbench, names: Sequence[str]) -> float:
    """When the first of these parts is to begin nothing new: benchmarks and claims share what is left."""
    sharing = [name for name in names if shares_time(bench, name)]
    if names[0] not in sharing:
        return math.inf
    return perf_counter() + bench.seconds_left() / len(sharing)


def shares_time(bench: Workbench, name: str) -> bool:
    return name not in HOST_PARTS and (bench.has_cuda or not name.endswith(CLAIMS))


def _leave_out(why: str, _bench: Workbench) -> list[Finding]:
    raise LeftOutError(why)


def run_part(name: str, check: Check, bench: Workbench) -> PartResult:
    """Run one part; whatever happens in it, the next one follows."""
    bench.documents, started = [], perf_counter()
    if bench.seconds_left() < benchmark_parts.LEAST_SECONDS:
        return PartResult(name, State.LEFT_OUT, "the time is over")
    try:
        findings = check(bench)
        result = PartResult(name, part_state(findings), findings=findings)
    except LeftOutError as why:
        result = PartResult(name, State.LEFT_OUT, str(why))
    except TimeLimitError as failure:
        over = bench.is_over()
        sentence = "the time was over before it ended" if over else str(failure)
        result = PartResult(name, State.LEFT_OUT if over else State.FAILED, sentence)
    except MeasurementError as failure:
        last = failure.output.splitlines()[-5:]
        result = PartResult(name, State.FAILED, " / ".join([str(failure), *last])[:1000])
    except Exception as error:  # noqa: BLE001  # a part's border: what it could not do is in the report
        result = PartResult(name, State.FAILED, f"{type(error).__name__}: {error}"[:1000])
    result.documents, result.seconds = bench.documents, perf_counter() - started
    return result


def format_result(result: PartResult) -> str:
    head = f"{result.name}: {result.state}, {result.seconds:.0f} s"
    head += f" ({result.sentence})" if result.sentence else ""
    rows = [describe_finding(row) for row in result.findings]
    width = max((len(what) for what, _ in rows), default=0)
    lines = [head]
    for row, (what, text) in zip(result.findings, rows, strict=True):
        lines.append(f"  {what.ljust(width)}  {text}")
        if row.matters and row.command:
            lines.append(f"  {''.ljust(width)}    $ {row.command}")
    noise = [row.matters for row in result.findings]
    if True in noise or False in noise:
        lines.append(f"  {noise.count(True)} facts matter here, {noise.count(False)} don't")
    return "\n".join(lines)


def describe_finding(row: Finding) -> tuple[str, str]:
    if row.matters is not None:
        why = f": {row.wanted}" if row.wanted else ""
        return row.what, f"{row.value}, {'MATTERS' if row.matters else 'fine'}{why}"
    wanted = f" (wanted {row.wanted})" if row.wanted and row.right is not None else ""
    beside = f" ({row.wanted})" if row.wanted and row.right is None else ""
    return row.what, f"{'WRONG: ' if row.right is False else ''}{row.value}{wanted}{beside}"


def format_conclusion(results: Sequence[PartResult], report: Path) -> str:
    """How many parts ended how, what was left out and why, and what to look at."""
    states = [result.state for result in results]
    counts = ", ".join(f"{states.count(state)} {state}" for state in State if state in states)
    left_out: dict[str, list[str]] = {}
    for result in results:
        if result.state == State.LEFT_OUT:
            left_out.setdefault(result.sentence, []).append(result.name)
    look_at = [sentence for result in results for sentence in result.look_at]
    lines = [f"\n{counts}. The report is {report}."]
    lines += [f"Left out, since {why}: {', '.join(names)}." for why, names in left_out.items()]
    noisy = [row.what for result in results for row in result.findings if row.matters]
    if noisy:
        lines.append(f"What makes this host noisy: {', '.join(noisy)}.")
    if look_at:
        lines += ["Look at:", *(f"- {sentence}" for sentence in look_at)]
    elif not noisy:
        lines.append("Nothing to look at.")
    return "\n".join(lines)


def write_report(results: Sequence[PartResult], path: Path) -> None:
    raw = {
        "format": FORMAT,
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "harness": __version__,
        "seconds": round(sum(result.seconds for result in results), 1),
        "look_at": [sentence for result in results for sentence in result.look_at],
        "parts": [result.to_json() for result in results],
    }
    partial_path = path.with_name(f".{path.name}.partial")
    partial_path.write_text(json.dumps(raw) + "\n")
    partial_path.replace(path)
