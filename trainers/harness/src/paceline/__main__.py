"""The command line: init, list, run, script, show, compare, claims, doctor, push, check."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # The current folder: its json.py or queue.py must not stand before the standard library's.
    sys.path.pop(0)

import argparse
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from . import (
    __version__,
    comparison,
    document,
    listing,
    manifest,
    preparation,
    protocol,
    report,
    run_arguments,
    script_command,
)
from .benchmarks import Benchmark
from .init.script_words import split_arguments
from .measured import turns
from .measurement import MeasurementRequest
from .refused_parts import without_refused_parts
from .site.errors import SiteError
from .toml_table import ManifestError, Scalar, check_scalar
from .watching.process import MeasurementError, NothingMeasuredError, TimeLimitError


class TerminatedError(BaseException):
    """The harness was told to end by a signal; no failure that a script may survive."""


# Ends what a measured process printed, be it nothing, where that isn't why nothing was measured. Workers
# know the line.
ENDED_WELL = "--- it ended without an error"
# Ends them where its time was over, which they don't say either.
TIMED_OUT = "--- its time limit was over"
# Of the caller's making: each is one sentence.
FAILURES = (ManifestError, document.DocumentError, comparison.ComparisonError, SiteError, TerminatedError)


def main() -> int:
    """Run one command; errors of the caller's are one sentence on stderr, with status 1, or 2 of `check`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A phase may have a name that the terminal can't show.
            stream.reconfigure(errors="backslashreplace")
    words, passed = split_arguments(sys.argv[1:])
    parser = _build_parser(next((word for word in words if not word.startswith("-")), ""))
    arguments, unknown = parser.parse_known_args(words)
    arguments.passed = passed
    if unknown:
        _print_failure(f"unrecognized arguments: {' '.join(unknown)}; see {parser.prog} --help")
        return int(arguments.failure)
    try:
        status = int(arguments.command(arguments))
        print(end="", flush=True)
        return status
    except BrokenPipeError:
        # The reader of the output has closed it; Python's own flush at the end must still succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return int(arguments.failure)
    except (MeasurementError, *FAILURES, OSError) as failure:
        _print_failure(_describe_failure(failure))
        if getattr(arguments, "keep_running", False) and isinstance(failure, MeasurementError):
            # The training is theirs: where it ended well, nothing of it failed.
            return failure.status
        return int(arguments.failure)


def _describe_failure(failure: BaseException) -> str:
    """One sentence; what a measured process printed last stands before it, and whether it ended well."""
    if isinstance(failure, OSError):
        return f"{failure.filename or 'file'}: {failure.strerror or failure}"
    if isinstance(failure, MeasurementError):
        printed = failure.output and not failure.shown
        repeated = f"--- the last lines of its output\n{failure.output}\n" if printed else ""
        ends = {NothingMeasuredError: ENDED_WELL, TimeLimitError: TIMED_OUT}
        end = next((end for kind, end in ends.items() if isinstance(failure, kind)), "")
        # Of a silent one too: a worker knows by the mark alone that it didn't crash.
        if end or failure.shown or failure.output:
            print(f"{repeated}{end or '---'}", file=sys.stderr)
    return str(failure)


def _print_failure(sentence: str) -> None:
    print(f"paceline: {sentence}", file=sys.stderr)


class _ArgumentParser(argparse.ArgumentParser):
    """Ends with one sentence and the status of a failure, as every other wrong argument does."""

    def __init__(self, **options: Any) -> None:
        # Half an option's name is a slip of the keyboard, and another option tomorrow.
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        _print_failure(f"{message}; see {self.prog} --help")
        self.exit(self.get_default("failure") or 1)


def _build_parser(called: str | None = None) -> argparse.ArgumentParser:
    """All commands, with the arguments of the one that is called, or of each one.

    Only what measures is imported for every call: a host waits for each repetition's harness to start.
    """
    parser = _ArgumentParser(prog="paceline", description="Measures training code.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(failure=1)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (help_line, add_arguments) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line)
        if called in (None, name):
            add_arguments(command)
    return parser


def _add_init_arguments(starting: argparse.ArgumentParser) -> None:
    from .init import command

    command.add_arguments(starting)
    starting.set_defaults(command=_initialize_repository)


def _add_list_arguments(lists: argparse.ArgumentParser) -> None:
    lists.add_argument("--manifest", type=Path, help="instead of the paceline.toml found upwards from here")
    lists.set_defaults(command=_list_benchmarks)


def _add_run_arguments(run: argparse.ArgumentParser) -> None:
    run_arguments.add_arguments(run)
    run.set_defaults(command=_run_benchmark)


def _add_script_arguments(unmodified: argparse.ArgumentParser) -> None:
    script_command.add_arguments(unmodified)
    unmodified.set_defaults(command=_measure_script)


def _add_show_arguments(showing: argparse.ArgumentParser) -> None:
    showing.add_argument("document", type=Path)
    showing.set_defaults(command=_show_document)


def _add_compare_arguments(comparing: argparse.ArgumentParser) -> None:
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.set_defaults(command=_compare_documents)


def _add_claims_arguments(proving: argparse.ArgumentParser) -> None:
    from .claims import command

    command.add_arguments(proving)
    proving.set_defaults(command=_test_claims)


def _add_doctor_arguments(doctoring: argparse.ArgumentParser) -> None:
    from .doctor import command

    command.add_arguments(doctoring)
    doctoring.set_defaults(command=_check_host)


def _add_push_arguments(pushing: argparse.ArgumentParser) -> None:
    from .site import push

    push.add_arguments(pushing)
    pushing.set_defaults(command=push.push_documents)


def _add_check_arguments(checking: argparse.ArgumentParser) -> None:
    from .site import check

    check.add_arguments(checking)
    # 1 says that it is.
    checking.set_defaults(command=_check_commit, failure=check.UNANSWERED)


def _initialize_repository(arguments: argparse.Namespace) -> int:
    _end_on_signals()
    from .init import command

    return command.initialize_repository(arguments, arguments.passed)


def _list_benchmarks(arguments: argparse.Namespace) -> int:
    path = arguments.manifest or manifest.find_manifest(Path.cwd())
    for benchmark in manifest.load_manifest(path).benchmarks.values():
        print(listing.describe_benchmark(benchmark))
    return 0


def _show_document(arguments: argparse.Namespace) -> int:
    print(report.format_document(_read_document(arguments.document)))
    return 0


def _compare_documents(arguments: argparse.Namespace) -> int:
    before, after = _read_document(arguments.before), _read_document(arguments.after)
    try:
        print(comparison.compare_documents(before, after))
    except comparison.ComparisonError as error:
        raise comparison.ComparisonError(f"{arguments.before} and {arguments.after}: {error}") from error
    return 0


def _test_claims(arguments: argparse.Namespace) -> int:
    from .claims import command

    _end_on_signals()
    _check_output_paths(arguments.json, arguments.readme)
    print(command.run_claims(arguments, _print_message))
    return 0


def _check_host(arguments: argparse.Namespace) -> int:
    from .doctor import command

    _end_on_signals()
    _check_output_paths(arguments.report)
    return command.run_doctor(arguments)


def _check_commit(arguments: argparse.Namespace) -> int:
    from .site import check

    _end_on_signals()
    return check.check_commit(arguments)


def _print_message(text: str) -> None:
    print(f"paceline: {text}", file=sys.stderr, flush=True)


def _read_document(path: Path) -> document.Document:
    try:
        return document.read_document(path.read_bytes())
    except document.DocumentError as error:
        raise document.DocumentError(f"{path}: {error.path}".rstrip(": "), error.sentence) from error


def _run_benchmark(arguments: argparse.Namespace) -> int:
    _end_on_signals()
    if arguments.watch_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    request = _build_request(arguments)
    if not arguments.prepared:
        bench = request.benchmark
        preparation.prepare_by_hand(bench.prepare, request.folder, bench.python_path, _print_message)
    progress = _ProgressReporter(arguments.progress)
    return _write_and_show(protocol.measure_case(request, progress), arguments.document, progress)


def _measure_script(arguments: argparse.Namespace) -> int:
    _end_on_signals()
    _check_output_paths(arguments.document, arguments.progress, arguments.trace)
    progress = _ProgressReporter(arguments.progress)
    raw, status = script_command.measure_script(arguments, progress)
    return _write_and_show(raw, arguments.document, progress) or status


def _write_and_show(raw: dict[str, Any], target: Path | None, progress: protocol.Progress) -> int:
    try:
        measured = _check_and_write(raw, target)
    except document.DocumentError:
        measured = _check_and_write(without_refused_parts(raw), target)
    progress(1.0, "done")
    print(report.format_document(measured))
    return 0


def _check_and_write(raw: dict[str, Any], target: Path | None) -> document.Document:
    return document.write_document(raw, target) if target else document.read_document(json.dumps(raw))


def _build_request(arguments: argparse.Namespace) -> MeasurementRequest:
    _check_output_paths(arguments.document, arguments.progress, arguments.trace)
    path = arguments.manifest or manifest.find_manifest(Path.cwd())
    benchmarks = manifest.load_manifest(path).benchmarks
    if arguments.name not in benchmarks:
        names = ", ".join(benchmarks)
        raise ManifestError(f"{path}: has no benchmark {arguments.name!r}, it has {names}")
    benchmark = benchmarks[arguments.name]
    case = benchmark.case(_parse_settings(arguments.set))
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
        profile_device=script_command.is_profile_wanted(arguments),
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


def _check_output_paths(*paths: Path | None) -> None:
    """Refuse a file that couldn't be written, before minutes are spent on measuring."""
    for path in paths:
        if path is None:
            continue
        if not path.parent.is_dir():
            raise ManifestError(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise ManifestError(f"{path}: is a folder, name a file in it")
        # A file is replaced whole, for which the folder counts.
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ManifestError(f"{path}: the folder {path.parent} can't be written")


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


class _ProgressReporter:
    """Keeps a progress file, replaced whole; on a terminal also a line."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._before = ""

    def __call__(self, fraction: float, text: str) -> None:
        # Nobody's measurement ends because a disk is full for a moment, or because nobody reads.
        with suppress(OSError):
            self._write_file(fraction, text)
        if text != self._before:
            self._before = text
            with suppress(OSError):
                print(f"paceline: {text}", file=sys.stderr, flush=True)

    def _write_file(self, fraction: float, text: str) -> None:
        if self._path is not None:
            partial = self._path.with_name(f".{self._path.name}.partial")
            partial.write_text(json.dumps({"fraction": fraction, "text": text}))
            partial.replace(self._path)


def _end_on_signals() -> None:
    def end(number: int, _: FrameType | None) -> None:
        # Only once: a second signal must not interrupt the ending itself.
        for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        raise TerminatedError(f"was told to end by {signal.Signals(number).name}")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # What was started under nohup, or behind a shell's &, goes on.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def _end_with_stdin() -> None:
    """End by SIGTERM when the process that started this one is gone and the pipe from it closes."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


# Each with the line of the overview, and what adds its arguments.
COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "init": ("look at a repository and write a manifest that runs", _add_init_arguments),
    "list": ("list the manifest's benchmarks and cases", _add_list_arguments),
    "run": ("measure a case and write its document", _add_run_arguments),
    "script": ("measure any PyTorch script, without a change to it", _add_script_arguments),
    "show": ("show a document as tables", _add_show_arguments),
    "compare": ("compare two documents: ratios with intervals, ~ for none", _add_compare_arguments),
    "claims": ("put a document's claims about a benchmark to the test", _add_claims_arguments),
    "doctor": ("try the harness on this host, its GPU above all", _add_doctor_arguments),
    "push": ("post documents to a site, as runs of a commit", _add_push_arguments),
    "check": ("ask a site whether a commit is slower than its merge base", _add_check_arguments),
}


if __name__ == "__main__":
    sys.exit(main())
