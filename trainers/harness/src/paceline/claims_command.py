"""The command `claims`: which claims to test, how often, and where their table goes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from . import claims, claims_table, manifest, toggles
from .claim_testing import ClaimBench, PrintMessage, judge_claim
from .toml_table import ManifestError

PAIRS = 3
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
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results there too")
    parser.add_argument(
        "--readme", type=Path, metavar="PATH", help="put the table between this file's markers"
    )
    parser.add_argument("--manifest", type=Path, help="instead of the paceline.toml found upwards from here")


def run_claims(arguments: argparse.Namespace, print_message: PrintMessage) -> str:
    """Test the claims that the arguments choose, and return their table; raises MeasurementError."""
    if not 1 <= arguments.pairs <= PAIRS_LIMIT:
        raise ManifestError(f"--pairs is {arguments.pairs}, must be between 1 and {PAIRS_LIMIT}")
    path = arguments.manifest or manifest.find_manifest(Path.cwd())
    benchmarks = manifest.load_manifest(path).benchmarks
    if arguments.name not in benchmarks:
        raise ManifestError(f"{path}: has no benchmark {arguments.name!r}, it has {', '.join(benchmarks)}")
    benchmark, folder = benchmarks[arguments.name], path.parent.resolve()
    file = folder / Path(benchmark.script).with_name(claims.FILE_NAME)
    chosen = claims.load_claims(file).chosen(arguments.claim, str(file), toggles=arguments.toggles)
    layout = claims_table.TOGGLES if arguments.toggles else claims_table.CLAIMS
    if arguments.readme:
        layout.check_markers(arguments.readme)
    measured = benchmark.as_quick() if arguments.quick else benchmark
    bench = ClaimBench(measured, folder, arguments.quick, arguments.pairs, print_message)
    toggles.measure_toggles(chosen, bench)
    results = [judge_claim(claim, bench) for claim in chosen]
    notes = claims_table.table_notes(results, arguments.pairs, bench.conditions())
    text = f"{layout.table(results)}\n\n{notes}"
    if arguments.json:
        arguments.json.write_text(json.dumps(claims_table.results_to_json(results), indent=1) + "\n")
    if arguments.readme:
        layout.insert(arguments.readme, text)
    return text
