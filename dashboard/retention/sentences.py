"""What old detail is dropped, and why some of it is kept, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dashboard.models import DroppedDetail
from dashboard.policy.effective import Origin
from dashboard.retention.forecast import Forecast
from dashboard.retention.kept_days import KeptDays
from dashboard.retention.protected_runs import Reason
from dashboard.sentences.formatting.numbers import format_count, format_quantity

# What a kind consists of: one, and several.
ROWS = {
    "logs": ("log", "logs"),
    "telemetry": ("channel", "channels"),
    "profiles": ("profile", "profiles"),
    "documents": ("document", "documents"),
    "points": ("point", "points"),
}
CONSISTS_OF = {
    "logs": "what a run printed",
    "telemetry": "memory, utilization and clocks over time",
    "profiles": "functions and what called them",
    "documents": "all that a run handed in, with its telemetry and profile",
    "points": "of series that no judgement reads",
}
ORIGINS = {Origin.SITE: "site", Origin.MANIFEST: "manifest", Origin.DEFAULT: "default"}
# The runs that keep their detail, whatever their age.
REASONS = {
    Reason.NEWEST: "newest of a case",
    Reason.REGRESSION: "at commits of regressions",
    Reason.STEP: "beside a step",
    Reason.TAG: "tagged",
    Reason.BASELINE: "read as a baseline",
    Reason.EXPERIMENT: "compared by an experiment",
    Reason.CLAIM: "evidence of a claim",
    Reason.CHECK: "of a check that was refused or answered",
    Reason.SENTINEL: "pinned by a sentinel",
    Reason.ENVIRONMENT: "at a change of the environment",
    Reason.SHARED: "shared as a picture",
}


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A kind of detail: how long it is kept, by whose word; of a dry run what would go, and what stays."""

    kind: str
    consists_of: str
    days: str
    origin: str
    runs: str = ""
    detail: str = ""
    protected: Sequence[str] = ()


def kept_row(kept: KeptDays, forecast: Forecast | None = None) -> KeptRow:
    """`forecast`: of a dry run."""
    row = KeptRow(kept.kind, CONSISTS_OF[kept.kind], describe_days(kept), ORIGINS[kept.origin])
    if forecast is None or not kept.days:
        return row
    if not forecast.runs:
        return replace(row, runs="none", protected=describe_protected(forecast.protected))
    detail = describe_detail(kept.kind, forecast.rows, forecast.size, is_estimate=forecast.is_estimate)
    runs = format_count(forecast.runs, "run")
    return replace(row, runs=runs, detail=detail, protected=describe_protected(forecast.protected))


def describe_days(kept: KeptDays) -> str:
    """`180 days`, `for ever`; with what the policy asks for where the site allows another number only."""
    days = format_count(kept.days, "day") if kept.days else "for ever"
    if kept.asked is None:
        return days
    asked = format_count(kept.asked, "day") if kept.asked else "for ever"
    return f"{days}, as the site allows; the policy asks for {asked}"


def describe_protected(protected: Mapping[Reason, int]) -> list[str]:
    """`4 newest of a case` and the like, in the order of the reasons."""
    return [f"{protected[reason]:,} {words}" for reason, words in REASONS.items() if protected.get(reason)]


def describe_detail(kind: str, rows: int, size: int, *, is_estimate: bool = False) -> str:
    """`120 channels, 3.2 MB`."""
    text = f"{format_count(rows, *ROWS[kind])}, {format_quantity(size, 'bytes')}"
    return f"about {text}" if is_estimate else text


def describe_dropped(row: DroppedDetail) -> str:
    """What a day took from the runs."""
    return describe_detail(row.kind, row.entries, row.size)


def forecast_sentence(forecast: Forecast) -> str:
    """What a dry run says of one kind."""
    kept = forecast.kept
    if not kept.days:
        return f"The {kept.kind} are kept for ever."
    runs = format_count(forecast.runs, "run")
    detail = describe_detail(kept.kind, forecast.rows, forecast.size, is_estimate=forecast.is_estimate)
    sentence = f"The {kept.kind} of {runs} would be dropped ({describe_days(kept)})"
    sentence += f": {detail}." if forecast.runs else "."
    because = describe_protected(forecast.protected)
    return f"{sentence} Kept all the same: {', '.join(because)}." if because else sentence
