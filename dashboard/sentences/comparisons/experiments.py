"""What an experiment says: its answer in one sentence, and why there is no clearer one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dashboard.experiments.pair_deviation import MOST_PAIRS, SMALL_DIFFERENCE, PairDeviation
from dashboard.models import Experiment, Metric
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change
from dashboard.sentences.formatting.english import lower_first, upper_first
from dashboard.sentences.formatting.metric_labels import experiment_metric_label

Purpose = Experiment.Purpose
Question = Experiment.Question
State = Experiment.State
Verdict = Experiment.Verdict

VERDICT_LABELS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.REFUTED: "refuted",
    Verdict.WHOLE: "has it",
    Verdict.NONE: "doesn't have it",
    Verdict.PART: "has a part of it",
    Verdict.ESTIMATED: "estimated",
    Verdict.WORSE: "worse",
    Verdict.NOT_WORSE: "not worse",
    Verdict.UNDECIDED: "undecided",
    Verdict.UNTESTABLE: "doesn't run",
}
PURPOSE_LABELS = {
    Purpose.PROOF: "proof",
    Purpose.BISECTION: "bisection",
    Purpose.MERGE: "merged branch",
    Purpose.CHECK: "check",
    Purpose.PERSON: "person",
    Purpose.SCRIPT: "script",
    Purpose.CLAIM: "claim",
}
# Of a place: what it says of the step that is looked for.
PLACES = {
    Verdict.WHOLE: "has the step",
    Verdict.NONE: "doesn't have the step",
    Verdict.PART: "has a part of the step",
}
# Of a place that counts as without the step, whose pairs surely show less than a quarter of it.
SMALL_PART = "has a small part of"
SURE = {
    Verdict.WHOLE: "it surely has a part of the step at least",
    Verdict.NONE: "it surely lacks a part of the step at least",
    Verdict.PART: "it surely has a part of the step, and lacks one",
}


# Known so many times less precisely than was asked, nothing is said of how small a difference is.
FAR_FROM_WANTED = 5.0


def experiment_state_label(experiment: Experiment) -> str:
    """Its verdict, where there is one, else its state."""
    if has_small_part(experiment):
        return f"{SMALL_PART} it"
    return VERDICT_LABELS[Verdict(experiment.verdict)] if experiment.verdict else experiment.state


def has_small_part(experiment: Experiment) -> bool:
    """Whether a commit that counts as without the step is surely worse all the same."""
    return experiment.verdict == Verdict.NONE and effect_direction(experiment) == "worse"


def purpose_label(experiment: Experiment) -> str:
    return PURPOSE_LABELS[Purpose(experiment.purpose)]


def reason_sentence(reason: Mapping[str, Any]) -> str:
    """Why there is no clearer verdict, or why it was cancelled; empty without a reason."""
    if not reason:
        return ""
    pairs = numbers.format_count(reason["pairs"], "pair") if "pairs" in reason else ""
    took = f"after {pairs} in {numbers.format_duration(reason['seconds'])}" if pairs else ""
    match reason["code"]:
        case "too few pairs":
            undisturbed = reason["calm"]
            if undisturbed < reason["pairs"]:
                few = f"only {undisturbed}" if undisturbed else "none"
                return f"{few} of {pairs} {'were' if undisturbed > 1 else 'was'} undisturbed"
            return f"{pairs} spent the budget, and 4 are needed"
        case "both answers possible":
            return f"{took} the interval still allows both answers"
        case "too noisy":
            most = numbers.format_count(reason["most"], "pair")
            return f"{took} it was clear that {most}, its whole budget, wouldn't tell either"
        case "budget spent":
            return f"{took} {SURE[reason['sure']]}"
        case "precision not reached":
            return f"{took} {reached_text(reason)}{disturbed_text(reason)}"
        case "proved on the branch":
            return f"measured on the branch by check {reason['check']}, before the merge"
        case "measured for another regression":
            return f"measured for regression {reason['regression']}, which suspected the same commits"
        case "in phases" | "work moved":
            return phases_text(reason)
        case "lost":
            times = numbers.format_count(reason["attempts"], "time")
            return f"its worker was lost {times}: no heartbeat came within the lease"
        case "held too long":
            times = numbers.format_count(reason["attempts"], "time")
            return f"its worker held it {times} for longer than it may take, without reaching a verdict"
        case "side failed":
            return str(reason["text"])
        case "triaged":
            person, action = reason.get("person"), reason.get("action")
            return f"{person} called it {action}." if person else "The regression was triaged."
        case "withdrawn":
            return "The regression was withdrawn."
        case "project removed":
            return "Its project was removed."
        case "absorbed":
            return "The regression turned out to be another one."
        case "newer commit":
            return "The claim is measured at a newer commit."
        case "newer head":
            return "The pull request has a newer head."
        case "pull request closed":
            return "The pull request was closed."
        case "cancelled":
            return f"Cancelled by {reason['person']}."
    return str(reason.get("text", ""))


def reached_text(reason: Mapping[str, Any]) -> str:
    """`it is known to ±3 %, not to the ±1 % that was asked for`, of a precision that wasn't reached."""
    wanted, reached = (format_precision(reason[name]) for name in ("wanted", "reached"))
    return f"it is known to {reached}, not to the {wanted} that was asked for"


def disturbed_text(reason: Mapping[str, Any]) -> str:
    """`: other work disturbed 72 of them`, where that was a good part of the pairs; else empty."""
    pairs = reason.get("pairs", 0)
    disturbed = pairs - reason.get("calm", pairs)
    return f": other work disturbed {disturbed} of them" if disturbed > pairs / 4 else ""


def phases_text(reason: Mapping[str, Any]) -> str:
    """`learn +10 % [8, 13], which makes the step +1.0 % [0.7, 1.4]`, of what phases have decided.

    Where other phases took it back `learn +10 % [8, 13], which other phases took back`; empty of the rest.
    """
    if "phases" not in reason:
        return ""
    phase = numbers.format_ratio(*reason["phase"])
    grown = f"{', '.join(reason['phases'])} {phase or 'is new'}"
    if reason["code"] == "work moved":
        return f"{grown}, which other phases took back: work moved, nothing was lost"
    return f"{grown}, which makes the step {numbers.format_ratio(*reason['step'])}"


def answer_sentence(experiment: Experiment) -> str:
    """What it says by now, in one sentence: `Step time +38 % [35, 41]: worse.`"""
    reason = reason_sentence(experiment.reason).rstrip(".")
    if experiment.state == State.REQUESTED:
        return "Waiting for a machine."
    if experiment.verdict == Verdict.UNTESTABLE:
        return f"It can't be measured: {reason}."
    if experiment.state == State.CANCELLED:
        return f"{reason}." if reason else "Cancelled."
    if interval_of_effect(experiment) is None:
        if experiment.state == State.MEASURING:
            return "Being measured: too few pairs to tell yet."
        return f"Undecided: {reason}." if reason else "Undecided."
    if experiment.state == State.MEASURING:
        return f"So far: {lower_first(effect_sentence(experiment))}"
    return _ended_sentence(experiment, reason)


def _ended_sentence(experiment: Experiment, reason: str) -> str:
    effect = f"{_metric_words(experiment)} {format_change(experiment)}"
    # The whole's own pairs stand behind what its phases have decided.
    phases = phases_text(experiment.reason)
    match Verdict(experiment.verdict):
        case Verdict.CONFIRMED:
            return f"Confirmed: {f'{phases}; ' if phases else ''}{effect}."
        case Verdict.REFUTED:
            return f"Refuted: {f'{phases}; ' if phases else ''}{effect}{_suspected_text(experiment)}."
        case Verdict.UNDECIDED:
            return f"Undecided: {reason}; {effect}." if reason else f"Undecided: {effect}."
        case Verdict.WHOLE | Verdict.NONE | Verdict.PART as place:
            placement = f"{SMALL_PART} the step" if has_small_part(experiment) else PLACES[place]
            return f"{experiment.head_commit.short} {placement}: {f'{phases}; ' if phases else ''}{effect}."
    return effect_sentence(experiment)


def _suspected_text(experiment: Experiment) -> str:
    """`, where +38 % was suspected`; empty where the suspected levels have no ratio."""
    before, after = experiment.before, experiment.after
    if before is None or after is None or min(before, after) <= 0 or experiment.metric.is_exponent:
        return ""
    ratio = experiment.metric.ratio(before, after)
    if ratio is None:
        return ""
    return f", where {numbers.format_percent_change(ratio)} was suspected"


def effect_sentence(experiment: Experiment) -> str:
    """How large the difference is: `Step time +38 % [35, 41]: worse.`, or what it is surely smaller than."""
    interval = interval_of_effect(experiment)
    metric, change = _metric_words(experiment), format_change(experiment)
    if interval is None:
        return "Too few pairs to tell."
    low, high = interval
    if low == high == 0:
        return f"No difference of {metric}: both sides count the same."
    if low <= 0 <= high:
        if is_too_uncertain(experiment):
            return f"Too uncertain to tell whether {metric} differs: {change}."
        return f"No difference of {metric} larger than {largest_difference(experiment)}: {change}."
    exactly = ", exactly" if low == high else ""
    return f"{upper_first(metric)} {change}{exactly}: {'worse' if is_worse(experiment) else 'better'}."


def is_too_uncertain(experiment: Experiment) -> bool:
    """True where the difference is known far less precisely than was asked: that there is none isn't said."""
    reached, wanted = reached_precision(experiment), experiment.precision
    return reached is not None and wanted is not None and reached > FAR_FROM_WANTED * wanted


def reached_precision(experiment: Experiment) -> float | None:
    """To which part of itself the ratio is known; None where that isn't known."""
    if experiment.low is None or experiment.high is None or experiment.metric.is_exponent:
        reached = experiment.reason.get("reached")
        return None if reached is None else float(reached)
    return math.sqrt(experiment.high / experiment.low) - 1


def ended_sentence(experiment: Experiment, pairs: int) -> str:
    """Why an estimate needed no more pairs: `It ended after 9 pairs in 3 min: known to ±0.8 %, ...`.

    Empty of what hasn't ended, and of what has a reason of its own.
    """
    if experiment.verdict != Verdict.ESTIMATED or experiment.reason:
        return ""
    took = f"{numbers.format_count(pairs, 'pair')} in {numbers.format_duration(experiment.seconds)}"
    return f"It ended after {took}: {_why_enough(experiment)}."


def _why_enough(experiment: Experiment) -> str:
    low, high, reached = experiment.low, experiment.high, reached_precision(experiment)
    interval = interval_of_effect(experiment)
    if interval is not None and interval[0] == interval[1]:
        return "both sides repeat exactly"
    least, most = experiment.range_low, experiment.range_high
    if reached is None or experiment.precision is None:
        return "the difference was known precisely enough"
    wanted = f"the {format_precision(experiment.precision)} that was asked for"
    if reached <= experiment.precision or low is None or high is None or (least is None and most is None):
        return f"it is known to {format_precision(reached)}, as precisely as was asked for"
    outside = (most is not None and low > most) or (least is not None and high < least)
    where = "outside of" if outside else "within"
    return (
        f"its whole interval lies {where} what agrees with the claim, {_range_text(least, most)}, "
        f"so that {wanted} was not needed"
    )


def _range_text(least: float | None, most: float | None) -> str:
    """`+10 % to +30 %`, or `+10 % or more`."""
    low, high = (numbers.format_percent_change(end) for end in (least, most))
    if least is None:
        return f"{high} or less"
    return f"{low} or more" if most is None else f"{low} to {high}"


def ending_text(experiment: Experiment) -> str:
    """`until it is known to ±1 %, for 20 min at most`: what an estimate ends by."""
    until = f"until it is known to {format_precision(experiment.precision)}, " if experiment.precision else ""
    return f"{until}for {numbers.format_duration(experiment.most_seconds)} at most"


def interval_of_effect(experiment: Experiment) -> tuple[float, float] | None:
    """The ends of the difference that was measured, 0 for none: as logarithms of ratios, or in the unit.

    None while the pairs don't tell.
    """
    if experiment.low is not None and experiment.high is not None:
        return math.log(experiment.low), math.log(experiment.high)
    if experiment.difference_low is not None and experiment.difference_high is not None:
        return experiment.difference_low, experiment.difference_high
    return None


def is_worse(experiment: Experiment) -> bool:
    """Whether the head moved towards the worse."""
    interval = interval_of_effect(experiment)
    rose = interval is not None and sum(interval) > 0
    return rose == (experiment.metric.better == Metric.Better.LOWER)


def effect_direction(experiment: Experiment) -> str:
    """`worse` or `better`; empty where the interval holds no difference, or there is none."""
    interval = interval_of_effect(experiment)
    if interval is None or interval[0] <= 0 <= interval[1]:
        return ""
    return "worse" if is_worse(experiment) else "better"


def largest_difference(experiment: Experiment) -> str:
    """`1.2 %`: how far the head may at most be from the base."""
    interval = interval_of_effect(experiment) or (0.0, 0.0)
    farthest = max(map(abs, interval))
    if experiment.ratio is None:
        return numbers.format_quantity(farthest, experiment.metric.unit)
    if experiment.metric.is_exponent:
        return numbers.format_fixed(farthest, 2)
    ends = [abs(math.expm1(end)) for end in interval]
    return numbers.format_signed(100 * max(ends)).lstrip("+") + " %"


def format_precision(share: float) -> str:
    """`±1 %`, `±0.25 %`."""
    return f"±{numbers.format_number(100 * share, 2)} %"


def pair_deviation_sentence(deviation: PairDeviation) -> str:
    """How far pairs lie apart, and how many a small difference would take."""
    means = numbers.format_percent(100 * deviation.by_means)
    if deviation.by_steps is None:
        deviation_text = f"A pair deviates by {means}"
    else:
        steps = numbers.format_percent(100 * deviation.by_steps)
        deviation_text = (
            f"A pair deviates by {steps} by its single steps, by {means} by the means of its windows"
        )
    small, few = f"{numbers.format_number(100 * SMALL_DIFFERENCE)} %", deviation.pairs
    pairs = f"about {few:,} such pairs" if few else f"more than {MOST_PAIRS:,} such pairs"
    took = f", {numbers.format_duration(few * deviation.seconds)}" if few and deviation.seconds else ""
    return f"{deviation_text}: to prove a difference of {small} takes {pairs}{took}."


def _metric_words(experiment: Experiment) -> str:
    return lower_first(experiment_metric_label(experiment))


def sides_text(experiment: Experiment) -> str:
    """`abc1234567 against def8901234`, or of a toggle what differs: `fast=false against fast=true`."""
    if not experiment.has_two_cases:
        return f"{experiment.head_commit.short} against {experiment.base_commit.short}"
    base, head = toggled_texts(experiment)
    text = f"{head} against {base}"
    if experiment.base_commit_id == experiment.head_commit_id:
        return f"{text} at {experiment.head_commit.short}"
    return f"{text}, {experiment.head_commit.short} against {experiment.base_commit.short}"


def toggled_texts(experiment: Experiment) -> tuple[str, str]:
    """The parameters in which both cases differ, of the base and of the head: (`fast=true`, `fast=false`)."""
    base, head = experiment.differing_settings
    return ", ".join(sorted(base)) or "the case as it is", ", ".join(sorted(head)) or "the case as it is"


def asker_text(experiment: Experiment) -> str:
    """Who asked: `ada`, `a claim`; empty of what a regression asked for, which is named beside it."""
    match Purpose(experiment.purpose):
        case Purpose.PERSON:
            person = experiment.requested_by
            return person.get_username() if person else "a former account"
        case Purpose.SCRIPT:
            return "a command or a script"
        case Purpose.CHECK:
            return "a check"
        case Purpose.CLAIM:
            return "a claim"
    return ""
