"""Claims in words: what is claimed, what was measured, what that says, and why nothing is."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from paceline.claims.claim import Claim as ClaimText
from paceline.claims.claims_file import parse_definition
from paceline.claims.verdicts import (
    HOLDS,
    LARGER,
    MEASURED,
    NOT_KNOWN,
    VERDICT_TEXTS,
    accepted_range,
)
from paceline.manifest import case_key

from dashboard.models import Claim, ClaimMeasurement, Delivery
from dashboard.sentences.formatting.english import upper_first
from dashboard.sentences.formatting.metric_labels import metric_label
from dashboard.sentences.formatting.numbers import format_interval, format_number, format_quantity

# By what a verdict is coloured.
TONES = {HOLDS: "holds", NOT_KNOWN: "unknown", MEASURED: "unknown", LARGER: "more"}
HEADS = {
    Delivery.Event.CLAIM_REFUTED: "Claim refuted",
    Delivery.Event.CLAIM_HOLDS: "Claim holds again",
}
TOGGLE_HEADS = {
    Delivery.Event.CLAIM_REFUTED: "Stopped paying",
    Delivery.Event.CLAIM_HOLDS: "Pays again",
}
# What a claim rests on where its value repeats exactly.
COUNTED = "counted"


def verdict_text(verdict: str) -> str:
    return VERDICT_TEXTS.get(verdict, "") or "not measured"


def verdict_tone(verdict: str) -> str:
    """A style's name: holds, refuted, more or unknown."""
    return TONES.get(verdict, "refuted") if verdict else "unknown"


def claimed_text(claim: ClaimText) -> str:
    """`2 to 5x`, `at least 2x`, `up to 1.05x apart`, `768 reads`, `better`; empty where nothing is said."""
    unit = claim.unit if claim.before is None else "x"
    low, high = claim.low, claim.high
    if low is None and high is None:
        return claim.direction if claim.before is not None else ""
    if claim.direction == "same":
        return f"at most {_with_unit(high, unit)} apart"
    if low is None:
        text = f"at most {_with_unit(high, unit)}"
    elif high is None:
        text = f"at least {_with_unit(low, unit)}"
    elif low == high:
        text = _with_unit(low, unit)
    else:
        text = f"{format_number(low)} to {_with_unit(high, unit)}"
    return f"{text} worse" if claim.direction == "worse" else text


def accepted_text(claim: ClaimText) -> str:
    """`1.9 to 5.4x agrees`: what the verdict accepts, the tolerance included; empty where nothing is said."""
    accepted = accepted_range(claim)
    if accepted is None:
        return ""
    unit = claim.unit if claim.before is None else "x"
    if math.isinf(accepted.low):
        return f"up to {_with_unit(accepted.high, unit)} agrees"
    if math.isinf(accepted.high):
        return f"{_with_unit(accepted.low, unit)} and more agrees"
    return f"{format_number(accepted.low)} to {_with_unit(accepted.high, unit)} agrees"


def _with_unit(value: float | None, unit: str) -> str:
    number = "" if value is None else format_number(value)
    return f"{number}x" if unit == "x" else f"{number} {unit}".rstrip()


def measured_text(measurement: ClaimMeasurement) -> str:
    """`1.52x [1.48, 1.56]`; empty where there is no estimate."""
    if measurement.value is None or measurement.low is None or measurement.high is None:
        return ""
    if measurement.unit == "x" or not _is_known_unit(measurement.unit):
        text = _with_unit(measurement.value, measurement.unit)
        ends = f"[{format_number(measurement.low)}, {format_number(measurement.high)}]"
    else:
        text = format_quantity(measurement.value, measurement.unit)
        ends = format_interval(measurement.low, measurement.high, measurement.unit, measurement.value)
    return text if measurement.low == measurement.high else f"{text} {ends}"


def _is_known_unit(unit: str) -> bool:
    """Whether amounts of it are shown in a fitting size, as in seconds and bytes."""
    return unit in ("s", "bytes")


def evidence_text(measurement: ClaimMeasurement) -> str:
    """`12 pairs, 1 more was disturbed`, `5 repetitions`, `counted`."""
    found = measurement.evidence
    if not found:
        return ""
    if found.get("kind") == COUNTED:
        return COUNTED
    samples, disturbed = int(found.get("samples", 0)), int(found.get("disturbed", 0))
    noun = str(found.get("kind", "pairs"))
    text = f"{samples} {noun.removesuffix('s') if samples == 1 else noun}"
    were = "was" if disturbed == 1 else "were"
    return f"{text}, {disturbed} more {were} disturbed" if disturbed else text


def reason_text(reason: Mapping[str, Any]) -> str:
    """Why a claim isn't measured here, or why its verdict isn't clearer; empty where there is no reason."""
    match reason.get("code", ""):
        case "":
            return ""
        case "untestable":
            return f"the file says it can't be tested: {reason.get('text')}"
        case "no device":
            return f"it needs a CUDA device, and no machine of pool {reason.get('pool')} has one"
        case "own window":
            return "it has a window or seeds of its own: paceline claims measures it by hand"
        case "sweep":
            return "it is about a sweep: paceline claims measures it by hand"
        case "same sides":
            return "both of its cases are the same with the manifest's parameters"
        case "quick windows":
            return f"the quick windows set {reason.get('parameter')} themselves"
        case "no pairs":
            return f"pairs don't measure {reason.get('metric')}: claim the value of one case"
        case "no run":
            case = case_key(reason.get("case") or {}) or "the case"
            if reason.get("listed"):
                return f"it is judged as soon as a run has measured {case}"
            return f"no run has measured {case} yet: name it among the manifest's cases"
        case "tainted runs":
            case = case_key(reason.get("case") or {}) or "the case"
            return f"all runs of {case} are tainted: their pages say why, and what to do"
        case "unknown metric":
            return f"no run has reported {reason.get('metric')} so far"
        case "not measured":
            return f"its run has no {reason.get('metric')}"
        case "too few repetitions":
            return "three repetitions at least give an interval"
        case "too few pairs":
            return "too few undisturbed pairs within its minutes"
        case "no ratio":
            return "a side is 0, which has no ratio"
        case "precision not reached":
            return "its minutes were spent before it was precise enough"
        case "side failed":
            return f"a side doesn't run: {reason.get('text', '')}"
        case "newer commit":
            return "a newer commit is measured instead"
        case "cancelled":
            return f"{reason.get('person') or 'somebody'} cancelled it"
        case "lost":
            return "its machine was lost several times"
    return ""


def hand_command(claim: Claim) -> str:
    """What measures, in a checkout, a claim that the site doesn't; empty for what it does measure."""
    if claim.reason.get("code") not in ("own window", "sweep"):
        return ""
    return shlex.join(["paceline", "claims", claim.benchmark, "--claim", claim.key])


def claim_headline(measurement: ClaimMeasurement) -> str:
    """`fused of snake_dqn: 1.01x [1, 1.02], claimed 1.3x`."""
    claim = measurement.claim
    toggle = parse_definition(claim.definition).toggle
    name = f"{toggle} of {claim.benchmark}" if toggle else f"“{claim.text}” of {claim.benchmark}"
    return f"{name}: {claim_figures(measurement)}"


def claim_figures(measurement: ClaimMeasurement) -> str:
    """`1.01x [1, 1.02], claimed 1.3x`."""
    figure = measured_text(measurement) or "nothing that could be measured"
    claimed = claimed_text(parse_definition(measurement.claim.definition))
    return figure + (f", claimed {claimed}" if claimed else "")


def standing_sentence(claim: Claim) -> str:
    """`Refuted: no difference. Measured 1.01x [0.99, 1.03], claimed 1.5x.`; `claim.newest` is read."""
    claimed = claimed_text(parse_definition(claim.definition))
    measured = measured_text(claim.newest) if claim.newest else ""
    figures = [f"measured {measured}" if measured else "", f"claimed {claimed}" if claimed else ""]
    figure_text = ", ".join(filter(None, figures))
    return ". ".join(upper_first(text) for text in (verdict_text(claim.verdict), figure_text) if text) + "."


def claim_head(measurement: ClaimMeasurement, event: str) -> str:
    """What happened, in words of a toggle where it is one."""
    toggled = "toggle" in measurement.claim.definition
    return (TOGGLE_HEADS if toggled else HEADS)[Delivery.Event(event)]


def claim_title(measurement: ClaimMeasurement, event: str) -> str:
    return (
        f"{claim_head(measurement, event)} in {measurement.claim.project.slug}: {claim_headline(measurement)}"
    )


def claim_subject(measurement: ClaimMeasurement, event: str) -> str:
    slug = measurement.claim.project.slug
    return f"[{slug}] {claim_head(measurement, event)}: {claim_headline(measurement)}"


def claim_sentence(measurement: ClaimMeasurement, event: str) -> str:
    """What happened to the claim, and what proves it."""
    claim, commit = measurement.claim, measurement.commit
    rests = evidence_text(measurement)
    proof = rests if rests == COUNTED else f"measured by {rests}" if rests else "measured"
    began = "no longer holds" if event == Delivery.Event.CLAIM_REFUTED else "holds again"
    toggled = "toggle" in claim.definition
    figures = claim_headline(measurement) if toggled else claim_figures(measurement)
    whose = "" if toggled else f" of {claim.benchmark}"
    return (
        f"The claim “{claim.text}”{whose} {began} at {commit.short} “{commit.subject}”: "
        f"{figures}, {proof} ({verdict_text(measurement.verdict)})."
    )


def claim_facts(measurement: ClaimMeasurement) -> list[tuple[str, str]]:
    """(name, text) of what a person wants to know first."""
    claim = measurement.claim
    return [
        ("project", claim.project.slug),
        ("claim", claim.text),
        ("case", f"{measurement.head.case} on pool {measurement.head.pool}"),
        ("claimed", claimed_text(parse_definition(claim.definition)) or "no number"),
        ("measured", measured_text(measurement) or "-"),
        ("verdict", verdict_text(measurement.verdict)),
        ("commit", f"{measurement.commit.short} {measurement.commit.subject}"),
    ]


def metric_text(claim: ClaimText) -> str:
    """The metric in words: `throughput`, `time of act + env`."""
    name, _, phases = claim.metric.partition(":")
    if name == "phase_share":
        return f"share of {phases.replace('+', ' + ')} in a step"
    if "+" in phases:
        return f"{metric_label(name, '')} of {phases.replace('+', ' + ')}"
    return metric_label(name, phases)


def sides_text(claim: ClaimText) -> tuple[str, str]:
    """The parameters before and after, in which they differ; of one case nothing and its parameters."""
    if claim.before is None:
        return "", case_key(claim.after or {}) or "the case as it is"
    before, after = (
        set(filter(None, case_key(side or {}).split(","))) for side in (claim.before, claim.after)
    )
    return (
        ", ".join(sorted(before - after)) or "the case as it is",
        ", ".join(sorted(after - before)) or "the case as it is",
    )
