"""The command `claims`: which claims to test, how often, and where their results go."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import manifest
from ..manifest.benchmarks import Benchmark
from ..manifest.preparation import prepare_by_hand
from ..manifest.toml_table import ManifestError
from . import claims_file, kept_results, rounds, table
from .bench import ClaimBench, PrintMessage
from .claim import Claim, ClaimResult
from .judging import judge_claim
from .unfinished import UnfinishedMeasurements, open_unfinished

PAIRS = 4
PAIRS_LIMIT = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `claims`."""
    parser.add_argument("name", help="a benchmark of the manifest, with claims.toml beside its script")
    parser.add_argument("--quick", action="store_true", help="with the windows of the manifest's quick table")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"pairs a claim; {PAIRS}")
    parser.add_argument(
        "--claim", action="append", default=[], metavar="ID", help="only this claim; repeatable"
    )
    parser.add_argument(
        "--toggles",
        action=argparse.BooleanOptionalAction,
        help="only claims about toggles, as a table of these; or all claims but those",
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="keep the results there, beside those of other claims"
    )
    parser.add_argument(
        "--missing", action="store_true", help="only claims without a result in the file of --json"
    )
    parser.add_argument("--no-measuring", action="store_true", help="only tell what the file of --json holds")
    parser.add_argument(
        "--readme", type=Path, metavar="PATH", help="put the table between this file's markers"
    )
    parser.add_argument("--manifest", type=Path, help="instead of the paceline.toml found upwards from here")


@dataclass(frozen=True, slots=True)
class ResultBook:
    """All claims of a file with the results known of them, written to `path` whenever one is added."""

    claims: tuple[Claim, ...]
    results: dict[str, ClaimResult]
    path: Path | None

    def add(self, result: ClaimResult) -> None:
        """Take a result in the place of an older one."""
        self.results[result.claim.key] = result
        if self.path is not None:
            kept_results.store_results(self.path, self.known())

    def known(self) -> list[ClaimResult]:
        """Return the results in the order of the claims."""
        return [self.results[claim.key] for claim in self.claims if claim.key in self.results]

    def all_claims(self) -> list[ClaimResult]:
        """Return a result for each claim; one that nobody measured says so."""
        return [
            self.results.get(claim.key) or ClaimResult(claim, "not measured yet") for claim in self.claims
        ]


def run_claims(arguments: argparse.Namespace, print_message: PrintMessage) -> str:
    """Test the claims that the arguments choose, and return their table; raises MeasurementError."""
    if not 1 <= arguments.pairs <= PAIRS_LIMIT:
        raise ManifestError(f"--pairs is {arguments.pairs}, must be between 1 and {PAIRS_LIMIT}")
    for option in ("missing", "no_measuring"):
        if getattr(arguments, option) and arguments.json is None:
            name = option.replace("_", "-")
            raise ManifestError(f"--{name} needs --json, the file that holds the results")
    path = arguments.manifest or manifest.find_manifest(Path.cwd())
    benchmarks, folder = manifest.load_manifest(path).benchmarks, path.parent.resolve()
    benchmark = _find_benchmark(path, benchmarks, arguments.name)
    file = _find_file(benchmark, benchmarks, folder)
    found = claims_file.load_claims(file)
    chosen = found.chosen(arguments.claim, str(file), toggles=arguments.toggles)
    layout = table.TOGGLES if arguments.toggles else table.CLAIMS
    if arguments.readme:
        layout.check_markers(arguments.readme)
    kept = kept_results.load_results(arguments.json, found.claims) if arguments.json else {}
    book = ResultBook(found.claims, kept, arguments.json)
    wanted = [claim for claim in chosen if not arguments.missing or claim.key not in kept]
    if arguments.no_measuring:
        wanted = []
    measured = benchmark.as_quick() if arguments.quick else benchmark
    if measured.scaling is None and benchmark.scaling is not None:
        # Quick windows have no sweep: such a claim stays as it is until it is measured in full.
        wanted = [claim for claim in wanted if not claim.main_comparison.sweeps]
    unfinished = UnfinishedMeasurements()
    if arguments.json is not None and wanted:
        unfinished = open_unfinished(arguments.json, measured, folder)
    if wanted:
        prepare_by_hand(measured.prepare, folder, measured.python_path, print_message)
    bench = ClaimBench(measured, folder, arguments.quick, arguments.pairs, print_message, unfinished)
    measure_claims(wanted, bench, book)
    unfinished.forget_used()
    return _report_results(arguments, book, layout, {claim.key for claim in chosen})


def measure_claims(wanted: list[Claim], bench: ClaimBench, book: ResultBook) -> None:
    """Measure the claims, those that share a case in rounds, and judge each as soon as it can be."""
    testable = [claim for claim in wanted if claim.untestable is None]
    if any(claim.needs_cuda for claim in testable) and not bench.has_cuda():
        testable = [claim for claim in testable if not claim.needs_cuda]
    bench.note_cases_to_count(testable)
    groups = rounds.group_by_shared_case(rounds.timed_comparisons(testable))
    left = {claim.key: claim for claim in wanted}
    if groups:
        bench.print_message(rounds.estimate_duration(groups, bench))
    for group in groups:
        rounds.measure_group(group, bench)
        for claim in testable:
            if claim.key in left and _is_measured(claim, bench):
                book.add(judge_claim(left.pop(claim.key), bench))
    for claim in left.values():
        book.add(judge_claim(claim, bench))


def _is_measured(claim: Claim, bench: ClaimBench) -> bool:
    """Whether all pairs of a claim are there."""
    comparisons = rounds.timed_comparisons([claim])
    return bool(comparisons) and all(comparison.key in bench.measured for comparison in comparisons)


def _find_benchmark(path: Path, benchmarks: Mapping[str, Benchmark], name: str) -> Benchmark:
    if name not in benchmarks:
        raise ManifestError(f"{path}: has no benchmark {name!r}, it has {', '.join(benchmarks)}")
    return benchmarks[name]


def _find_file(benchmark: Benchmark, benchmarks: Mapping[str, Benchmark], folder: Path) -> Path:
    """Return the file of its claims; without one the usual one: reading it tells that it is missing."""
    found = claims_file.find_claims_file(benchmark, benchmarks, lambda path: (folder / path).exists())
    return folder / (found or benchmark.script_folder / claims_file.FILE_NAME)


def _report_results(
    arguments: argparse.Namespace, book: ResultBook, layout: table.TableLayout, chosen: set[str]
) -> str:
    """Return the table of the chosen claims; the README gets one of all claims."""
    known = book.known()
    if arguments.readme:
        whole = [result for result in book.all_claims() if _is_selected(result, arguments.toggles)]
        layout.insert(arguments.readme, f"{layout.table(whole)}\n\n{table.table_notes(whole)}")
    chosen_results = [result for result in known if result.claim.key in chosen]
    return f"{layout.table(chosen_results)}\n\n{table.table_notes(chosen_results)}"


def _is_selected(result: ClaimResult, toggles: bool | None) -> bool:
    return toggles is None or (result.claim.toggle is not None) == toggles
