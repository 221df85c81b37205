"""The parts that run the manifest's benchmarks: each case in short, and claims only a device can test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from .. import claims, manifest
from ..claims.bench import ClaimBench
from ..claims.judging import judge_claim
from ..document import Document
from ..manifest.benchmarks import Benchmark, Case
from ..manifest.toml_table import ManifestError
from ..measurement import MeasurementRequest
from ..units import format_amount, format_number
from ..watching.measurement_errors import MeasurementError, TimeLimitError
from .findings import Finding, LeftOutError
from .workbench import Workbench, metric_value

# A first start on a host may compile, or train what it keeps.
CASE_SECONDS, LEAST_LIMIT = 120, 60
# A case is begun while so much of the time is left, and a claim while twice as much is.
LEAST_SECONDS = 10
NO_TIME = "left out, its share of the time is over"


def find_benchmarks(bench: Workbench) -> dict[str, Benchmark]:
    """Those of the manifest found upwards from the folder; raises LeftOutError."""
    try:
        path = manifest.find_manifest(bench.folder)
        return dict(manifest.load_manifest(path).benchmarks)
    except ManifestError as error:
        raise LeftOutError(str(error)) from error


def check_benchmark(bench: Workbench, benchmark: Benchmark, folder: Path) -> list[Finding]:
    """Each case in short: how fast it is beside the first, where it ran, and what it warned of.

    The last one goes first: it uses most of what the host has.
    """
    found: dict[str, Document | Finding] = {}
    for case in reversed(benchmark.cases):
        # Of each benchmark one, whatever others took.
        if found and not bench.may_begin(LEAST_SECONDS):
            found[case.key] = Finding(case.key, NO_TIME)
            continue
        limit = _case_limit(bench)
        try:
            found[case.key] = measure_short(bench, benchmark, case, folder, limit)
        except MeasurementError as failure:
            found[case.key] = _failed_case(bench, case, failure, limit)
    return list(_case_findings({case.key: found[case.key] for case in benchmark.cases}))


def _case_findings(found: Mapping[str, Document | Finding]) -> Iterator[Finding]:
    first = next(iter(found.values()), None)
    base = metric_value(first, "throughput") if isinstance(first, Document) else None
    for key, row in found.items():
        if isinstance(row, Finding):
            yield row
            continue
        speed = metric_value(row, "throughput") or 0.0
        ratio = f", {speed / base:.2f} times the first case" if base and row is not first else ""
        yield Finding(key, describe_speed(row) + ratio)


def _case_limit(bench: Workbench) -> int:
    """Seconds that a case may take: the part's share, but time enough for most; and what is left."""
    share = bench.begin_until - perf_counter()
    return int(max(1, min(CASE_SECONDS, max(share, LEAST_LIMIT), bench.seconds_left())))


def _failed_case(bench: Workbench, case: Case, failure: MeasurementError, limit: int) -> Finding:
    if isinstance(failure, TimeLimitError) and bench.is_over():
        return Finding(case.key, "left out, the time was over before it ended")
    if isinstance(failure, TimeLimitError) and limit < CASE_SECONDS:
        return Finding(case.key, f"left out, it would take longer than {limit} s")
    if isinstance(failure, TimeLimitError):
        return Finding(case.key, f"didn't end within {limit} s", "to run", False)
    last = failure.output.splitlines()[-1:] or [""]
    return Finding(case.key, f"{failure}: {last[0]}"[:300], "to run", False)


def measure_short(bench: Workbench, benchmark: Benchmark, case: Case, folder: Path, limit: int) -> Document:
    """One quick repetition, within `limit` seconds."""
    short = replace(benchmark.as_quick(), repetitions=1, countings=0, time_limit=limit)
    if benchmark.quick.params:
        case = replace(case, params={**case.params, **benchmark.quick.params})
    return bench.measure_request(MeasurementRequest(short, case, folder, quick=True))


def describe_speed(measured: Document) -> str:
    path = measured.environment["path"]
    text = f"{path}, {format_amount(metric_value(measured, 'throughput') or 0.0, 'steps/s')}"
    memory = metric_value(measured, "device_memory")
    busy = metric_value(measured, "gpu_utilization")
    text += f", {format_amount(memory, 'bytes')} of the device" if memory else ""
    text += f", busy {busy:.0f} %" if busy is not None else ""
    tainting = sorted({warning.code for warning in measured.warnings if warning.taints})
    return text + (f", warns of {', '.join(tainting)}" if tainting else "")


def check_claims(bench: Workbench, benchmark: Benchmark, folder: Path) -> list[Finding]:
    """The document's claims that only a device can test, by one pair each while time is left."""
    bench.need_cuda()
    rows = []
    quick = benchmark.as_quick()
    claim_bench = ClaimBench(quick, folder, True, 1, lambda _: None)
    found = list(device_claims(benchmark, folder))
    claim_bench.note_cases_to_count(found)
    for claim in found:
        if not bench.may_begin(2 * LEAST_SECONDS):
            rows.append(Finding(claim.key, NO_TIME))
            continue
        # All its sides end within what is left. What was measured is kept for the claims that follow.
        limit = int(min(CASE_SECONDS, max(bench.seconds_left() / count_sides(claim, claim_bench), 1)))
        result = judge_claim(claim, replace(claim_bench, benchmark=replace(quick, time_limit=limit)))
        if result.too_slow:
            rows.append(Finding(claim.key, f"left out, a side of it would take longer than {limit} s"))
            continue
        value = f"{format_number(result.measured.value)}{result.unit}, " if result.measured else ""
        rows.append(Finding(claim.key, f"{value}{result.verdict}", _document_value(claim)))
    return rows


def count_sides(claim: claims.Claim, bench: ClaimBench) -> int:
    """How many measurements a claim may take."""
    comparisons = filter(None, (claim.main_comparison, claim.equal_comparison))
    return sum(bench.rounds(comparison) * len(comparison.cases) for comparison in comparisons)


def device_claims(benchmark: Benchmark, folder: Path) -> Iterator[claims.Claim]:
    path = folder / benchmark.script_folder / claims.FILE_NAME
    if path.exists():
        yield from (claim for claim in claims.load_claims(path).claims if claim.needs_cuda)


def _document_value(claim: claims.Claim) -> str:
    return "" if claim.low is None else f"the document says {format_number(claim.low)}"
