"""What a run's page begins with: its headline metrics beside those of the run before, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.document import CODES_TAINTING_ALL

from dashboard.detection.comparison import ENOUGH_SAMPLES
from dashboard.models import Run
from dashboard.querysets.run_points import PreviousRun, RunPoint
from dashboard.sentences.formatting.change_sizes import describe_movement
from dashboard.sentences.measurements import runs

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """A metric beside what the run before measured. `verdict`: worse, better, empty where the intervals don't
    tell the two runs apart, a question mark where they do and rest on too few repetitions."""

    before: float
    verdict: str
    size: str


def summary_context(run: Run, metrics: Json, document: Json, warnings: Sequence[Mapping[str, Any]]) -> Json:
    """`metrics`: the context of `pages.runs.metrics`, whose headlines are reported."""
    previous: PreviousRun | None = metrics["previous"]
    headlines = [{**row, "compared": compare_metric(row, previous)} for row in metrics["headlines"]]
    facts = runs.RunFacts(
        headlines=[(row["name"], row["label"], row["value"], row["unit"]) for row in headlines],
        compared=[
            (row["label"], row["compared"].verdict, row["compared"].size)
            for row in headlines
            if row["compared"]
        ],
        incomparable=[row["label"] for row in headlines if is_incomparable(row, previous)],
        previous=(previous.run.pk, previous.run.commit.short) if previous else None,
        branch=run.commit.branch,
        phases=largest_phases(document),
        warnings=len(warnings),
        tainted=(tainted_part(warnings) or "the run") if run.tainted else "",
    )
    return {
        "headlines": headlines,
        "summary": runs.summary_sentences(facts),
        "tainting": tainted_part(warnings),
        "warnings": [{**row, "tainting": tainted_part([row])} for row in warnings],
        "changed_counters": sum(count.has_changed for count in metrics["counters"]),
    }


def tainted_part(warnings: Iterable[Mapping[str, Any]]) -> str:
    """What these warnings keep out of judgement: `the run`, `its times`, or nothing."""
    codes = {row["code"] for row in warnings if row.get("taints")}
    if not codes:
        return ""
    return "the run" if codes & CODES_TAINTING_ALL else "its times"


def compare_metric(row: Json, previous: PreviousRun | None) -> ComparedMetric | None:
    """None where the run before has no such metric, or a warning keeps one of the two out of judgement."""
    point = _point_before(row, previous)
    if point is None or is_incomparable(row, previous):
        return None
    if not _intervals_differ(row, point):
        return ComparedMetric(point.value, "", "")
    better = (row["value"] > point.value) == (row["better"] == "higher")
    size = describe_movement(row["name"], row["unit"], point.value, row["value"])
    # As a comparison of the two says: three against three lie apart by chance once in ten times.
    if not row["exact"] and min(len(row["samples"]), point.samples) < ENOUGH_SAMPLES:
        return ComparedMetric(point.value, "?", size)
    return ComparedMetric(point.value, "better" if better else "worse", size)


def is_incomparable(row: Json, previous: PreviousRun | None) -> bool:
    """Whether both runs have it, and a warning keeps the value of one of them out of judgement."""
    point = _point_before(row, previous)
    return point is not None and (point.tainted or row["tainted"])


def _point_before(row: Json, previous: PreviousRun | None) -> RunPoint | None:
    return previous.headlines.get(row["series"]) if previous and row["series"] else None


def _intervals_differ(row: Json, point: RunPoint) -> bool:
    """Whether the intervals of both lie apart; never where one of them is unknown."""
    if None in (row["low"], row["high"], point.low, point.high):
        return False
    return bool(row["low"] > point.high or row["high"] < point.low)


def largest_phases(document: Json) -> list[tuple[str, float]]:
    """(path, share of the step in it alone) of the two that take most; none where no phase is named.

    `backward itself` where others are nested in it: a chart draws it with them. Medians over the repetitions,
    as ranks and comparisons tell them; the document's `phases` are one repetition's.
    """
    rows = document.get("phases") or []
    main = [row for row in rows if row.get("thread") in (None, "main")]
    beside = {row["path"] for row in rows if row not in main}
    medians = {
        (row["name"], row["phase"]): row["value"]
        for row in document.get("metrics") or []
        # That of a path is the sum over its threads.
        if row["phase"] not in beside
    }
    total = medians.get(("step_time", None)) or sum(row["self"] for row in main)
    if total <= 0:
        return []
    times = {row["path"]: medians.get(("phase_self_time", row["path"]), row["self"]) for row in main}
    named = sorted((path for path in times if not path.startswith("(")), key=lambda path: -times[path])
    holders = {path.rpartition("/")[0] for path in times}
    return [
        (f"{path}{' itself' if path in holders else ''}", min(1.0, times[path] / total)) for path in named[:2]
    ]
