"""What disturbed a run and what to do about it; and when a disturbed one is measured again."""

from __future__ import annotations

from dashboard.models import Run
from dashboard.querysets.disturbances import TaintedCase
from dashboard.sentences.formatting.english import join_clauses, upper_first

# What happened, and what to do, by the code of a warning that taints.
ADVICE = {
    "processor_contention": (
        "other work kept the measured thread from its processor",
        "end other work on the machine while it measures",
    ),
    "calibration_drift": (
        "the machine changed its speed while it measured",
        "look for other work on the machine, or for a clock that was lowered",
    ),
    "unstable_repetitions": (
        "the repetitions of a run differ by too much",
        "measure on a quieter machine, or with longer windows",
    ),
    "throttling": ("a device's clock was held down", "look at its cooling and its power limit"),
    "co_tenant": (
        "another process computed on the device",
        "end it, or give the worker a device of its own",
    ),
    "clock_change": ("a device changed its clock between repetitions", "lock its clock where you may"),
    "device_lost": ("the driver lost a device", "look into the driver's log"),
    "memory_pressure": (
        "the benchmark needs nearly all of the memory",
        "make it smaller, or measure it on a machine with more",
    ),
    "warmup_never_ended": ("its warm-up reaches into the measured window", "raise warmup_steps"),
    "quality_below_guard": ("it learns less than its guard asks for", "look at what changed"),
    "quality_diverged": ("training diverged: a quality is no finite number", "look at what changed"),
    "quality_missing": (
        "it never reports the quality that it has a guard on",
        "report it in the loop, or after it where its steps are marked",
    ),
}
UNKNOWN = ("their warnings say why", "do what their warnings advise")


def tainted_case_sentence(case: TaintedCase) -> str:
    """`3 of the newest 5 runs are kept out of judgement: ...`."""
    causes = join_clauses([ADVICE.get(code, UNKNOWN)[0] for code in case.codes] or [UNKNOWN[0]])
    verb = "is" if case.tainted == 1 else "are"
    return f"{case.tainted} of the newest {case.measured} runs {verb} kept out of judgement: {causes}."


def tainted_case_advice(case: TaintedCase) -> str:
    """`End other work on the machine while it measures.`."""
    advice = [ADVICE.get(code, UNKNOWN)[1] for code in case.codes] or [UNKNOWN[1]]
    return f"{upper_first(join_clauses(advice))}."


def remeasuring_sentence(again: Run) -> str:
    """Of a run that is kept out of judgement, by the next one of its commit and case."""
    if again.is_postponed:
        return f"Measured again at {again.not_before:%H:%M} UTC, since this run was disturbed."
    if again.state == Run.State.REQUESTED:
        return "Measured again as soon as a machine is free."
    if again.state in Run.HELD:
        return "It is being measured again."
    if again.state == Run.State.DONE:
        return f"It was measured again{' and kept out of judgement again' if again.tainted else ''}."
    ended = "failed" if again.state == Run.State.FAILED else "was cancelled"
    return f"It was to be measured again, but that run {ended}."


def waiting_sentence(run: Run) -> str:
    """What a requested run waits for."""
    if run.is_postponed:
        return (
            f"waits until {run.not_before:%H:%M} UTC, since an earlier run of this commit was disturbed; "
            "whoever asks for it has it measured at once"
        )
    return ""
