"""The command `run`: measure a case of the manifest."""

from __future__ import annotations

import argparse
import json
import threading
from dataclasses import replace
from pathlib import Path

from .. import manifest, protocol
from ..manifest import preparation
from ..manifest.benchmarks import Benchmark, make_case
from ..manifest.toml_table import ManifestError, Scalar, check_scalar
from ..measured import turns
from ..measurement import MeasurementRequest
from .command_output import ProgressReporter, check_output_paths, print_message, write_and_show
from .script_command import is_profile_wanted
from .termination import end_on_signals, end_with_stdin


def add_arguments(run: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    run.add_argument("name", help="a benchmark of the manifest")
    run.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="choose or change a case"
    )
    run.add_argument(
        "--exact",
        action="store_true",
        help="--set gives all parameters: no case of the manifest adds its own",
    )
    run.add_argument("--repetitions", type=int, metavar="R", help="instead of the manifest's")
    run.add_argument("--seed", type=int, metavar="N", help="instead of the manifest's seeds")
    run.add_argument(
        "--hash-seed", type=int, metavar="N", help="what Python's hashes of texts begin with; else the seed"
    )
    run.add_argument(
        "--quick", action="store_true", help="a short look: the manifest's quick table, no guard"
    )
    run.add_argument(
        "--timed-only", action="store_true", help="only the timed repetitions: no counting, no sweep"
    )
    run.add_argument(
        "--no-counting", action="store_true", help="only what is timed: the repetitions and the sweep"
    )
    run.add_argument("--no-sweep", action="store_true", help="the repetitions and the counting alone")
    run.add_argument(
        "--turns",
        type=Path,
        metavar="FOLDER/first",
        help="take the steps in turn with another run, which is given FOLDER/second",
    )
    run.add_argument(
        "--profile-device", action="store_true", help="with --quick too: one more repetition, profiled"
    )
    run.add_argument(
        "--trace", type=Path, metavar="PATH", help="keep its trace, for chrome://tracing and Perfetto"
    )
    run.add_argument(
        "--counted",
        type=Path,
        metavar="PATH",
        help="a commit counted before and its document, to take over counters that must be the same",
    )
    run.add_argument("--document", type=Path, metavar="PATH", help="where to write the document")
    run.add_argument("--progress", type=Path, metavar="PATH", help="keep the progress in this file, as JSON")
    run.add_argument("--manifest", type=Path, help="instead of the paceline.toml found upwards from here")
    run.add_argument("--folder", type=Path, help="where scripts are found; default: the manifest's folder")
    run.add_argument("--prepared", action="store_true", help="run no prepare command, the data is there")
    run.add_argument("--watch-stdin", action="store_true", help="end when the standard input does")


def run_benchmark(arguments: argparse.Namespace) -> int:
    """Measure the case that is asked for, write its document and show it; return the exit status."""
    end_on_signals()
    if arguments.watch_stdin:
        threading.Thread(target=end_with_stdin, daemon=True).start()
    request = build_request(arguments)
    if not arguments.prepared:
        bench = request.benchmark
        preparation.prepare_by_hand(bench.prepare, request.folder, bench.python_path, print_message)
    progress = ProgressReporter(arguments.progress)
    return write_and_show(protocol.measure_case(request, progress), arguments.document, progress)


def build_request(arguments: argparse.Namespace) -> MeasurementRequest:
    """The case of the manifest as the arguments change it; raises ManifestError."""
    check_output_paths(arguments.document, arguments.progress, arguments.trace)
    path = arguments.manifest or manifest.find_manifest(Path.cwd())
    benchmarks = manifest.load_manifest(path).benchmarks
    if arguments.name not in benchmarks:
        names = ", ".join(benchmarks)
        raise ManifestError(f"{path}: has no benchmark {arguments.name!r}, it has {names}")
    benchmark = benchmarks[arguments.name]
    settings = _parse_settings(arguments.set)
    case = make_case(settings) if arguments.exact else benchmark.case(settings)
    if arguments.quick:
        case = replace(case, params={**case.params, **(benchmark.quick.params or {})})
        benchmark = benchmark.as_quick()
    if arguments.timed_only or arguments.no_sweep:
        benchmark = benchmark.without_sweep()
    if arguments.timed_only or arguments.no_counting:
        benchmark = replace(benchmark, countings=0, learning_seeds=())
    if arguments.repetitions is not None:
        if not 1 <= arguments.repetitions <= 100:
            raise ManifestError(f"--repetitions is {arguments.repetitions}, must be between 1 and 100")
        benchmark = replace(benchmark, repetitions=arguments.repetitions)
    for option, seed in (("--seed", arguments.seed), ("--hash-seed", arguments.hash_seed)):
        if seed is not None and not 0 <= seed <= manifest.SEED_LIMIT:
            raise ManifestError(f"{option} is {seed}, must be between 0 and {manifest.SEED_LIMIT}")
    if arguments.seed is not None:
        benchmark = replace(benchmark, seed=arguments.seed, learning_seeds=())
    folder = (arguments.folder or path.parent).resolve()
    if not benchmark.module and not (folder / benchmark.script).is_file():
        raise ManifestError(f"benchmarks.{benchmark.name}.script: there is no {benchmark.script} in {folder}")
    if not (folder / benchmark.working_directory).is_dir():
        absent = f"there is no folder {benchmark.working_directory} in {folder}"
        raise ManifestError(f"benchmarks.{benchmark.name}.working_directory: {absent}")
    for name in benchmark.python_path:
        if not (folder / name).is_dir():
            raise ManifestError(f"environment.python_path: there is no folder {name} in {folder}")
    if arguments.turns is not None:
        _check_turns(arguments.turns, benchmark)
    return MeasurementRequest(
        benchmark,
        case,
        folder,
        arguments.quick,
        turns=arguments.turns and arguments.turns.resolve(),
        profile_device=is_profile_wanted(arguments),
        trace=arguments.trace,
        counted=arguments.counted,
        hash_seed=arguments.hash_seed,
    )


def _check_turns(pipe: Path, benchmark: Benchmark) -> None:
    """Refuse options with which the run would wait for another one for ever."""
    if pipe.name not in (turns.FIRST, turns.SECOND):
        raise ManifestError(f"--turns {pipe} must end in {turns.FIRST} or {turns.SECOND}")
    if not pipe.parent.is_dir():
        raise ManifestError(f"--turns {pipe}: there is no folder {pipe.parent}")
    for side in (turns.FIRST, turns.SECOND):
        if (path := pipe.with_name(side)).exists() and not path.is_fifo():
            raise ManifestError(f"--turns {pipe}: {path} is something else than a pipe, name another folder")
    if benchmark.processes > 1:
        sentence = f"{benchmark.name} has {benchmark.processes} ranks, of which none can be stopped alone"
        raise ManifestError(f"--turns {pipe}: {sentence}; measure one side after the other")
    if benchmark.repetitions != 1:
        raise ManifestError(f"--turns {pipe} needs --repetitions 1: each one has a partner of its own")


def _parse_settings(spellings: list[str]) -> dict[str, Scalar]:
    settings: dict[str, Scalar] = {}
    for spelling in spellings:
        name, equals, text = spelling.partition("=")
        if not equals or not name.isidentifier():
            raise ManifestError(f"--set {spelling!r} must be KEY=VALUE")
        error = ManifestError(f"--set {name}: must be a number, a boolean, or a string without comma")
        try:
            settings[name] = check_scalar(json.loads(text), error)
        except ValueError:
            settings[name] = check_scalar(text, error)
    return settings
