"""Why something couldn't be measured."""

from __future__ import annotations


class MeasurementError(Exception):
    """The benchmark couldn't be measured: one sentence, and the last lines of its output."""

    def __init__(self, sentence: str, output: str = "", status: int = 0, taken: int = 0) -> None:
        super().__init__(sentence)
        self.output = output
        self.status = status  # that of the script, where it failed by itself
        self.taken = taken  # whole steps before it ended, as far as is known
        self.shown = False  # all of it has been passed on already, to its last line


class TimeLimitError(MeasurementError):
    """The time limit was over before everything was measured."""


class NothingMeasuredError(MeasurementError):
    """The script ended without an error, and without what was to be measured: its output doesn't say why."""


class TooFewStepsError(NothingMeasuredError):
    """The script's loop ended before its window was complete, after `taken` whole steps."""

    def __init__(self, seen: str, advice: str, output: str = "", taken: int = 0) -> None:
        super().__init__(f"{seen}, {advice}", output, taken=taken)
        self.seen = seen
        self.advice = advice
