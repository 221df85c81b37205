"""The command line: init, list, run, script, show, compare, claims, doctor, push, check."""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # The current folder: its json.py or queue.py must not stand before the standard library's.
    sys.path.pop(0)
if 0 < gc.get_threshold()[0] < 100_000:
    # What is imported stays: to look through it at every 700 objects takes a twelfth of the start.
    gc.set_threshold(100_000, *gc.get_threshold()[1:])

import argparse
import os
from io import TextIOWrapper
from typing import Any, NoReturn

from . import __version__
from .command_line.commands import COMMANDS
from .command_line.termination import TerminatedError
from .document import DocumentError
from .init.script_words import split_arguments
from .manifest.toml_table import ManifestError
from .reports.comparison import ComparisonError
from .site.errors import SiteError
from .watching.measurement_errors import MeasurementError, NothingMeasuredError, TimeLimitError

# Ends what a measured process printed, be it nothing, where that isn't why nothing was measured. Workers
# know the line.
ENDED_WELL = "--- it ended without an error"
# Ends them where its time was over, which they don't say either.
TIMED_OUT = "--- its time limit was over"
# Of the caller's making: each is one sentence.
FAILURES = (ManifestError, DocumentError, ComparisonError, SiteError, TerminatedError)


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
    """All commands, with the arguments of the one that is called, or of each one."""
    parser = _ArgumentParser(prog="paceline", description="Measures training code.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(failure=1)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (help_line, add_arguments) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line)
        if called in (None, name):
            add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
