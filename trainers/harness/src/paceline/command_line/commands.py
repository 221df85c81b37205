"""All commands by their names, each with its arguments and what it does.

Only what measures is imported for every call: a host waits for each repetition's harness to start.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from .. import manifest
from ..reports import comparison, report
from . import listing, run_command, script_command
from .command_output import (
    ProgressReporter,
    check_output_paths,
    print_message,
    read_document,
    write_and_show,
)
from .termination import end_on_signals


def _add_init_arguments(starting: argparse.ArgumentParser) -> None:
    from ..init import command

    command.add_arguments(starting)
    starting.set_defaults(command=_initialize_repository)


def _add_list_arguments(lists: argparse.ArgumentParser) -> None:
    lists.add_argument("--manifest", type=Path, help="instead of the paceline.toml found upwards from here")
    lists.set_defaults(command=_list_benchmarks)


def _add_run_arguments(run: argparse.ArgumentParser) -> None:
    run_command.add_arguments(run)
    run.set_defaults(command=run_command.run_benchmark)


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
    from ..claims import command

    command.add_arguments(proving)
    proving.set_defaults(command=_test_claims)


def _add_doctor_arguments(doctoring: argparse.ArgumentParser) -> None:
    from ..doctor import command

    command.add_arguments(doctoring)
    doctoring.set_defaults(command=_check_host)


def _add_push_arguments(pushing: argparse.ArgumentParser) -> None:
    from ..site import push

    push.add_arguments(pushing)
    pushing.set_defaults(command=push.push_documents)


def _add_check_arguments(checking: argparse.ArgumentParser) -> None:
    from ..site import check

    check.add_arguments(checking)
    # 1 says that it is.
    checking.set_defaults(command=_check_commit, failure=check.UNANSWERED)


def _initialize_repository(arguments: argparse.Namespace) -> int:
    end_on_signals()
    from ..init import command

    return command.initialize_repository(arguments, arguments.passed)


def _list_benchmarks(arguments: argparse.Namespace) -> int:
    path = arguments.manifest or manifest.find_manifest(Path.cwd())
    for benchmark in manifest.load_manifest(path).benchmarks.values():
        print(listing.describe_benchmark(benchmark))
    return 0


def _show_document(arguments: argparse.Namespace) -> int:
    print(report.format_document(read_document(arguments.document)))
    return 0


def _compare_documents(arguments: argparse.Namespace) -> int:
    before, after = read_document(arguments.before), read_document(arguments.after)
    try:
        print(comparison.compare_documents(before, after))
    except comparison.ComparisonError as error:
        raise comparison.ComparisonError(f"{arguments.before} and {arguments.after}: {error}") from error
    return 0


def _test_claims(arguments: argparse.Namespace) -> int:
    from ..claims import command

    end_on_signals()
    check_output_paths(arguments.json, arguments.readme)
    print(command.run_claims(arguments, print_message))
    return 0


def _check_host(arguments: argparse.Namespace) -> int:
    from ..doctor import command

    end_on_signals()
    check_output_paths(arguments.report)
    return command.run_doctor(arguments)


def _check_commit(arguments: argparse.Namespace) -> int:
    from ..site import check

    end_on_signals()
    return check.check_commit(arguments)


def _measure_script(arguments: argparse.Namespace) -> int:
    end_on_signals()
    check_output_paths(arguments.document, arguments.progress, arguments.trace)
    progress = ProgressReporter(arguments.progress)
    raw, status = script_command.measure_script(arguments, progress)
    return write_and_show(raw, arguments.document, progress) or status


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
