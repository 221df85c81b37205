"""What an experiment says: its answer in one sentence, and why there is no clearer one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.models import Experiment
from dashboard.sentences import labels, numbers

State = Experiment.State
Verdict = Experiment.Verdict

VERDICT_LABELS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.REFUTED: "refuted",
    Verdict.WHOLE: "has it",
    Verdict.NONE: "doesn't have it",
    Verdict.PART: "has a part of it",
    Verdict.ESTIMATED: "estimated",
    Verdict.UNDECIDED: "undecided",
    Verdict.UNTESTABLE: "doesn't run",
}
SURE = {
    "bad": "it surely has a part of the step at least",
    "good": "it surely lacks a part of the step at least",
    "between": "it surely has a part of the step, and lacks one",
}


def experiment_state_label(experiment: Experiment) -> str:
    """Its verdict, where there is one, else its state."""
    return VERDICT_LABELS[Verdict(experiment.verdict)] if experiment.verdict else experiment.state


def reason_sentence(reason: Mapping[str, Any]) -> str:
    """Why there is no clearer verdict, or why it was cancelled; empty without a reason."""
    if not reason:
        return ""
    took = (
        f"after {reason['pairs']} pairs in {numbers.format_duration(reason['seconds'])}"
        if "pairs" in reason
        else ""
    )
    match reason["code"]:
        case "too few pairs":
            if reason["calm"] < reason["pairs"]:
                return f"only {reason['calm']} of {reason['pairs']} pairs were undisturbed"
            return f"{reason['pairs']} pairs spent the budget, and 4 are needed"
        case "both answers possible":
            return f"{took} the interval still allows both answers"
        case "budget spent":
            return f"{took} {SURE[reason['sure']]}"
        case "lost":
            return f"its worker was lost {reason['attempts']} times: no heartbeat came within the lease"
        case "side failed":
            return str(reason["text"])
        case "triaged":
            person, action = reason.get("person"), reason.get("action")
            return f"{person} called it {action}." if person else "The regression was triaged."
        case "withdrawn":
            return "The regression was withdrawn."
        case "absorbed":
            return "The regression turned out to be another one."
        case "cancelled":
            return f"Cancelled by {reason['person']}."
    return str(reason.get("text", ""))


def answer_sentence(experiment: Experiment) -> str:
    """An estimate so far: `step time +2.1 % [1.3, 2.9]`, or no difference larger than so much."""
    metric = experiment.metric.name.replace("_", " ")
    if experiment.state == State.REQUESTED:
        return "Waiting for a machine."
    if experiment.verdict == Verdict.UNTESTABLE:
        return f"It can't be measured: {reason_sentence(experiment.reason)}".rstrip(".") + "."
    if experiment.state == State.CANCELLED:
        return reason_sentence(experiment.reason) or "Cancelled."
    if experiment.low is None or experiment.high is None:
        return "Too few pairs to tell."
    change = f"{metric} {labels.format_change(experiment)}"
    bound = largest_difference(experiment.low, experiment.high)
    if not experiment.low <= 1 <= experiment.high:
        return f"{labels.upper_first(change)}."
    return f"No difference of {metric} larger than {bound}: {labels.format_change(experiment)}."


def largest_difference(low: float, high: float) -> str:
    """`1.2 %`: how far the ratio may at most lie from 1."""
    return numbers.format_percent(100 * max(abs(low - 1), abs(high - 1)))


def sides_text(experiment: Experiment) -> str:
    """`abc1234567 against def8901234`, or of a toggle both cases at their commit."""
    if experiment.is_toggle:
        cases = f"{experiment.head_configuration.case} against {experiment.base_configuration.case}"
        return f"{cases} at {experiment.head_commit.short}"
    return f"{experiment.head_commit.short} against {experiment.base_commit.short}"
