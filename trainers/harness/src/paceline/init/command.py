"""The command `init`: finds the training script of a repository, tries it, and writes its manifest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import manifest
from ..document import Document
from ..manifest.toml_table import ManifestError
from ..protocol import process_environment
from ..reports import report
from ..reports.report_sections import step_lines
from ..units import format_amount, format_count
from ..watching import nvml
from ..watching.measurement_errors import MeasurementError
from ..watching.missing_steps import LAZY, MARK
from . import sentences
from .arguments import ArgumentGuess
from .candidates import Candidate, find_candidates, rate_candidate
from .exploration import Attempt, Exploration, has_learning
from .manifest_text import write_manifest
from .packages import EnvironmentGuess, guess_environment
from .preparation_guess import format_preparation, guess_preparation
from .readme import CommandLine, find_command_lines
from .repository import Repository, read_repository
from .trial import TrialState, build_benchmark
from .window import Window

# Of a script that couldn't be tried.
UNTRIED = Window(40, 160, 0.0, 0.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; what follows `--` is the script's."""
    parser.description = (
        "Looks at a repository, finds its training script and how it is started, tries it with this Python, "
        "writes a paceline.toml, and shows the phases of a short measurement. It runs the repository's own "
        "code. What follows -- is passed to the script."
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="the repository; default: here")
    parser.add_argument("--script", metavar="PATH", help="the training script, from the repository's root")
    parser.add_argument("-m", "--module", metavar="MODULE", help="started as python -m MODULE, instead of it")
    parser.add_argument("--force", action="store_true", help="replace a paceline.toml that is there")


def initialize_repository(arguments: argparse.Namespace, words: tuple[str, ...] | None) -> int:
    """Write the manifest and print what was guessed and measured.

    Raises ManifestError and MeasurementError.
    """
    folder = arguments.folder.resolve()
    target = folder / manifest.FILE_NAME
    if not folder.is_dir():
        raise ManifestError(f"{arguments.folder}: is no folder")
    if target.exists() and not arguments.force:
        raise ManifestError(f"{target}: is there already, --force replaces it")
    repository = read_repository(folder)
    commands = find_command_lines(repository)
    found = find_candidates(repository, commands)
    candidates = _choose_candidates(arguments, repository, commands, found)
    first = candidates[0]
    if first.missing:
        _write_untried(repository, commands, found, first, first.missing, words)
    exploration = Exploration(repository, commands, _has_device(first), words, _print_message)
    ready = [candidate for candidate in candidates if not candidate.missing]
    attempt = exploration.find_running(ready)
    if attempt is None:
        _print_failed(exploration.failed)
        lacking = next((failed for failed in exploration.failed if failed.trial.missing_module), None)
        if lacking is not None:
            missing = [lacking.trial.missing_module]
            _write_untried(repository, commands, found, lacking.candidate, missing, words)
        raise _describe_failure(exploration.failed[0])
    attempt, window, measured = exploration.measure_attempt(attempt)
    environment = _guess_environment(repository, attempt.candidate)
    _write_attempt(target, attempt, window, environment)
    _print_guesses(
        repository, found, attempt.candidate, attempt.guess, environment, _preparation_row(attempt)
    )
    print(sentences.format_rows([("steps", sentences.describe_window(window, attempt.trial.taken))]))
    _print_failed(exploration.failed)
    print(f"\n{_format_measured(measured)}\n")
    _print_next(target, attempt.candidate)
    return 0


def _choose_candidates(
    arguments: argparse.Namespace,
    repository: Repository,
    commands: Sequence[CommandLine],
    found: Sequence[Candidate],
) -> list[Candidate]:
    """The one that was named, or all; raises ManifestError where there is none."""
    if arguments.script and arguments.module:
        raise ManifestError("--script and --module: name one of them")
    if arguments.module:
        place = arguments.module.replace(".", "/")
        names = [f"{root}{place}{end}" for root in ("", "src/") for end in (".py", "/__main__.py")]
        path = next((name for name in names if name in repository.files), "")
        if not path:
            raise ManifestError(
                f"--module {arguments.module}: there is no such module in {repository.folder}"
            )
        line = CommandLine("the command line", 0, path, (), arguments.module)
        start_commands = [line, *(other for other in commands if other.script == path)]
        return [rate_candidate(repository, path, start_commands, commands)]
    if arguments.script:
        path = Path(arguments.script).as_posix().removeprefix("./")
        if path not in repository.files:
            raise ManifestError(
                f"--script {arguments.script}: there is no such Python file in {repository.folder}"
            )
        return [
            rate_candidate(repository, path, [line for line in commands if line.script == path], commands)
        ]
    if not found:
        raise ManifestError(
            f"{repository.folder}: of {format_count(len(repository.files), 'Python file')} none imports "
            "PyTorch or a library over it, trains, and can be started; name the script by --script PATH"
            f"{_describe_marks(repository)}"
        )
    return list(found)


def _describe_marks(repository: Repository) -> str:
    """What the libraries need whose steps aren't seen by themselves, where the repository imports them."""
    imported = {name.split(".")[0] for facts in repository.files.values() for name in facts.imports}
    found = [library for library in LAZY if library in imported]
    if not found:
        return ""
    return f", and write its loop as {MARK}: steps of {' and '.join(found)} aren't seen by themselves"


def _has_device(candidate: Candidate) -> bool:
    devices = nvml.probe_devices(
        process_environment.child_environment(build_benchmark(candidate, UNTRIED, 1))
    )
    try:
        return bool(devices.visible)
    finally:
        devices.close()


def _guess_environment(repository: Repository, candidate: Candidate) -> EnvironmentGuess:
    return guess_environment(repository.folder, candidate.folder, candidate.python_path)


def _write_untried(
    repository: Repository,
    commands: Sequence[CommandLine],
    found: Sequence[Candidate],
    candidate: Candidate,
    missing: Sequence[str],
    words: tuple[str, ...] | None,
) -> None:
    """Write a manifest that wasn't tried, and raise the sentence that says what is missing."""
    environment = _guess_environment(repository, candidate)
    preparation = guess_preparation(repository, commands, candidate, words or (), documented_only=True)
    text = write_manifest(
        candidate, words or (), UNTRIED, environment, preparation, {"steps": "not tried: a guess"}
    )
    _write_checked(repository.folder / manifest.FILE_NAME, text)
    guess = ArgumentGuess(words or ())
    place = candidate.working_directory
    preparation_outcome = f"{format_preparation(preparation, place)}: not tried" if preparation else ""
    own = [name for name in missing if environment.install and repository.find_module(name, candidate.folder)]
    _print_guesses(repository, found, candidate, guess, environment, preparation_outcome)
    lacking = sentences.describe_missing(candidate, missing, environment, own)
    raise ManifestError(
        f"{lacking}; {manifest.FILE_NAME} was written without having been tried, init --force tries it then"
    )


def _write_attempt(target: Path, attempt: Attempt, window: Window, environment: EnvironmentGuess) -> None:
    added = "; ".join(sorted({sentences.REASONS[why] for _, why in attempt.guess.added}))
    notes: Mapping[str, str] = {
        "auto": "times the script as it is, without marks in it",
        "arguments": added,
        "params": added,
        "processes": "it asks its environment which rank it is",
        "steps": f"a step took {format_amount(window.step_seconds, 's')} here",
    }
    text = write_manifest(
        attempt.candidate, attempt.guess.words, window, environment, attempt.preparation, notes
    )
    _write_checked(target, text)


def _write_checked(target: Path, text: str) -> None:
    """Write the manifest's text, which must be one that `run` reads; raises ManifestError."""
    manifest.parse_manifest(text, str(target))
    partial = target.with_name(f".{target.name}.partial")
    partial.write_text(text)
    partial.replace(target)


def _preparation_row(attempt: Attempt) -> str:
    if not attempt.preparation:
        return ""
    command = format_preparation(attempt.preparation, attempt.candidate.working_directory)
    return f"{command}: {attempt.preparation_outcome}"


def _print_guesses(
    repository: Repository,
    found: Sequence[Candidate],
    candidate: Candidate,
    guess: ArgumentGuess,
    environment: EnvironmentGuess,
    preparation: str,
) -> None:
    rows = [
        ("looked at", f"{format_count(len(repository.files), 'Python file')} in {repository.folder}"),
        ("script", f"{sentences.describe_start(candidate, ())}: {', '.join(candidate.reasons)}"),
        ("others", sentences.describe_others(found, candidate)),
        ("ranks", sentences.describe_ranks(candidate)),
        ("arguments", sentences.describe_arguments(guess)),
        ("environment", sentences.describe_environment(environment)),
        ("data", preparation),
    ]
    print(sentences.format_rows(rows))


def _format_measured(measured: Document) -> str:
    speed = {row.name: format_amount(row.value, row.unit) for row in measured.metrics if row.phase is None}
    lines = [f"{speed['step_time']} a step, {speed['throughput']}"]
    if measured.step is not None:
        lines += step_lines(measured.step)
    if not has_learning(measured):
        lines.append("no learning came within these steps: raise warmup_steps, or let learning begin sooner")
    return "\n".join([*lines, "", report.phases_table(measured)])


def _print_next(target: Path, candidate: Candidate) -> None:
    here = "" if target.parent == Path.cwd() else f"cd {target.parent} && "
    print(f"Wrote {target}. Next:")
    print(f"  {here}python -m paceline run {candidate.name}")
    slug = target.parent.name.lower().replace("_", "-")
    print(f"  manage.py add_project {slug} --repository {target.parent}   # on a site, once it is committed")


def _print_failed(attempts: Sequence[Attempt]) -> None:
    rows = [
        ("failed", f"{sentences.describe_start(other.candidate, other.guess.words)}: {_find_reason(other)}")
        for other in attempts
    ]
    if rows:
        print(sentences.format_rows(rows))


def _find_reason(attempt: Attempt) -> str:
    if attempt.trial.state is TrialState.NO_STEP:
        # It ended well, or goes on: what it printed last is no reason.
        return attempt.trial.sentence or f"no step within {attempt.trial.start_seconds:.0f} s"
    return sentences.find_error(attempt.trial.output) or attempt.trial.sentence


def _describe_failure(attempt: Attempt) -> MeasurementError:
    tried = f"{sentences.describe_start(attempt.candidate, attempt.guess.words)}: "
    if attempt.trial.misses_file and attempt.preparation_outcome:
        why = f"its data is missing: {attempt.preparation_outcome}"
    elif attempt.trial.misses_file:
        why = f"{sentences.find_error(attempt.trial.output)}; no command that makes its data was found"
    else:
        why = attempt.trial.sentence or f"took no step within {attempt.trial.start_seconds:.0f} s"
    if attempt.candidate.processes > 1:
        why = (
            f"it asks its environment which rank it is, and in {attempt.candidate.processes} processes {why}"
        )
    return MeasurementError(
        f"{tried}{why}; no {manifest.FILE_NAME} was written. Give arguments behind --, or another --script",
        attempt.trial.output,
    )


def _print_message(text: str) -> None:
    print(f"paceline: {text}", file=sys.stderr, flush=True)
