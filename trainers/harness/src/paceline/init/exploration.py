"""Tries the candidates until the steps of one were seen to come, and measures that one in short."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from .. import document, protocol
from ..document import Document
from ..manifest.preparation import Preparation, PreparationError, prepare_by_hand
from ..measurement import MeasurementRequest
from ..units import format_count
from ..watching.measurement_errors import MeasurementError, TooFewStepsError
from . import sentences, trial
from .arguments import ArgumentGuess, learn_sooner, propose_arguments, shorten_arguments
from .candidates import Candidate
from .preparation_guess import format_preparation, guess_preparation
from .readme import CommandLine
from .repository import Repository
from .trial import Trial, TrialState
from .window import Window, choose_window, shorten_window

# More aren't begun after so many seconds.
TRIALS_SECONDS = 120.0
CANDIDATES_TRIED = 6
PREPARATION_SECONDS = 180.0
# Of a script that asks its environment which rank it is.
RANKS = 2
PREPARED = "tried, its data is here now"
# A word that names a file or an address.
_PATH = re.compile(r"[\w~.:-]*/[\w./-]+|[\w-]+\.\w{1,6}\b")
LEARNING_PHASES = ("backward", "optimizer")


@dataclass(slots=True)
class Attempt:
    """One candidate with one way to start it, and what came of it."""

    candidate: Candidate
    guess: ArgumentGuess
    trial: Trial
    preparation: tuple[str, ...] = ()
    preparation_outcome: str = ""

    @property
    def has_steps(self) -> bool:
        return self.trial.state in (TrialState.STEPPED, TrialState.ENDED)


@dataclass(slots=True)
class Exploration:
    """A repository that is tried: `words` are arguments that were given, and nothing else is tried then."""

    repository: Repository
    commands: Sequence[CommandLine]
    has_device: bool
    words: tuple[str, ...] | None
    print_message: Callable[[str], None]
    failed: list[Attempt] = field(default_factory=list)
    started: float = field(default_factory=perf_counter)

    def find_running(self, candidates: Sequence[Candidate]) -> Attempt | None:
        """The first candidate whose steps come, or else one that fails behind them.

        Those that fail are kept in `failed`.
        """
        return self._find_stepping(candidates) or self._find_failing_late()

    def _find_stepping(self, candidates: Sequence[Candidate]) -> Attempt | None:
        for candidate in candidates[:CANDIDATES_TRIED]:
            for guess in self._propose_guesses(candidate):
                attempt = self._try_start(candidate, guess)
                if attempt.has_steps:
                    return attempt
                self.failed.append(attempt)
                if perf_counter() - self.started > TRIALS_SECONDS:
                    return None
                if attempt.trial.missing_module:
                    if attempt.trial.importing_file != str(self.repository.folder / candidate.path):
                        return None  # the others that import what imports it would fail alike
                    break
                # A start without the words that a README tells may fail in any way for want of them.
                if guess.words and not attempt.trial.blames_arguments:
                    break
        return None

    def _find_failing_late(self) -> Attempt | None:
        """One that could be measured, since a measurement ends before it fails."""
        late = next((attempt for attempt in self.failed if attempt.trial.failed_late), None)
        if late is None:
            return None
        self.failed.remove(late)
        failure, taken = late.trial.sentence, late.trial.taken
        self.print_message(f"{failure}, behind {taken} steps: those before are measured")
        return replace(late, trial=replace(late.trial, state=TrialState.ENDED))

    def _propose_guesses(self, candidate: Candidate) -> list[ArgumentGuess]:
        if self.words is not None:
            return [ArgumentGuess(self.words, "the command line")]
        return propose_arguments(candidate, self.repository.folder, has_device=self.has_device)

    def _try_start(self, candidate: Candidate, guess: ArgumentGuess) -> Attempt:
        seen = self._watch(candidate, guess)
        if seen.missing_rank:
            candidate = replace(candidate, processes=RANKS)
            seen = self._watch(candidate, guess)
        elsewhere = "" if candidate.working_directory else candidate.folder
        if seen.misses_file and not candidate.module and self._may_lie_in(elsewhere, candidate, seen):
            moved = replace(candidate, working_directory=elsewhere)
            again = self._watch(moved, guess)
            if not again.misses_file:
                candidate, seen = moved, again
        preparation = guess_preparation(
            self.repository, self.commands, candidate, guess.words, documented_only=not seen.misses_file
        )
        outcome = "not tried, its data is here" if preparation else ""
        if seen.misses_file and preparation:
            outcome = self._prepare_data(candidate, preparation)
            if outcome == PREPARED:
                seen = self._watch(candidate, guess)
        shorter = shorten_arguments(guess, candidate)
        if seen.state is TrialState.NO_STEP and not seen.sentence and shorter != guess and self.words is None:
            guess, seen = shorter, self._watch(candidate, shorter)
        return Attempt(candidate, guess, seen, preparation, outcome)

    def _may_lie_in(self, folder: str, candidate: Candidate, seen: Trial) -> bool:
        """Whether what it misses may be named as seen from this folder: is there, or isn't named."""
        named = _PATH.findall(sentences.find_error(seen.output))
        place = self.repository.folder / folder
        is_other = folder != candidate.working_directory
        return is_other and (not named or any((place / name).exists() for name in named))

    def _prepare_data(self, candidate: Candidate, words: Sequence[str]) -> str:
        """Run the command; returns what came of it."""
        command = Preparation(format_preparation(words, candidate.working_directory))
        try:
            prepare_by_hand(
                [command],
                self.repository.folder,
                candidate.python_path,
                self.print_message,
                PREPARATION_SECONDS,
            )
        except PreparationError as error:
            return str(error)
        return PREPARED

    def _watch(self, candidate: Candidate, guess: ArgumentGuess) -> Trial:
        ranks = f" in {candidate.processes} processes" if candidate.processes > 1 else ""
        self.print_message(f"trying {sentences.describe_start(candidate, guess.words)}{ranks}")
        return trial.watch_script(candidate, guess.words, self.repository.folder)

    def measure_attempt(self, attempt: Attempt) -> tuple[Attempt, Window, Document]:
        """One timed repetition; where it holds no learning, once more with learning that begins sooner."""
        window = choose_window(attempt.trial.start_seconds, attempt.trial.progress, attempt.trial.taken)
        window, measured = self._measure_window(attempt, window)
        sooner = learn_sooner(attempt.guess, attempt.candidate)
        if has_learning(measured) or sooner == attempt.guess or self.words is not None:
            return attempt, window, measured
        again = replace(attempt, guess=sooner, trial=self._watch(attempt.candidate, sooner))
        if not again.has_steps:
            return attempt, window, measured
        window = choose_window(again.trial.start_seconds, again.trial.progress, again.trial.taken)
        return again, *self._measure_window(again, window)

    def _measure_window(self, attempt: Attempt, window: Window) -> tuple[Window, Document]:
        try:
            return self._measure_once(attempt, window)
        except TooFewStepsError as short:
            if short.taken < 2:
                raise
            window = choose_window(window.start_seconds, attempt.trial.progress, short.taken)
            return self._measure_once(attempt, window)

    def _measure_once(self, attempt: Attempt, window: Window) -> tuple[Window, Document]:
        """Measure the window; returns it with the time that a step took."""
        short = shorten_window(window)
        self.print_message(f"measuring {format_count(short.steps, 'step')} after {short.warmup_steps}, once")
        benchmark = trial.build_benchmark(attempt.candidate, short, 1)
        folder = self.repository.folder
        request = MeasurementRequest(
            benchmark, benchmark.cases[0], folder, quick=True, arguments=attempt.guess.words
        )
        raw = _measure_quietly(request)
        measured = document.read_document(json.dumps(raw))
        step = measured.metric("step_time")
        return replace(window, step_seconds=step.value) if step else window, measured


def has_learning(measured: Document) -> bool:
    """Whether the window holds any learning."""
    return any(part in LEARNING_PHASES for row in measured.phases for part in row.path.split("/"))


def _measure_quietly(request: MeasurementRequest) -> dict[str, Any]:
    """Measure without passing on what the script prints; a failure has its last lines."""
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
            return protocol.measure_case(request, _ignore_progress)
    except MeasurementError as failure:
        failure.shown = False
        raise


def _ignore_progress(_fraction: float, _text: str) -> None:
    """Each step of the command says itself what it does."""
