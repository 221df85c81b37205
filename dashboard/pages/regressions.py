"""The inbox of regressions, one regression with its evidence, and the log of what was told about them."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard.charts import phases as phase_charts
from dashboard.charts import theme
from dashboard.models import Confirmation, Metric, Project, Regression, Triage
from dashboard.pages import words
from dashboard.pages.costs import cost, tally_sentence
from dashboard.pages.paging import page_of
from dashboard.pages.proof import proof
from dashboard.pages.series import drawing_around
from dashboard.querysets import regressions as read
from dashboard.regressions.blame import difference_of
from dashboard.regressions.lines import changed_lines
from dashboard.regressions.paired import phases_of
from dashboard.regressions.phases import holds
from dashboard.regressions.triage import BECOMES

LONG = 40
# Phases beside the chart; the others are one click away.
FEW = 6
LABELS = {
    Triage.Action.ACKNOWLEDGE: ("Acknowledge", "It stays open, and others see that you look at it."),
    Triage.Action.INTENDED: ("Intended", "The new level is the baseline; this step is never told again."),
    Triage.Action.NOT_REAL: ("Not real", "A false alarm: it counts against the precision of its series."),
    Triage.Action.WONT_FIX: ("Won't fix", "Real, and accepted: it leaves the open ones."),
    Triage.Action.REOPEN: ("Reopen", "Back to the open ones."),
}


@require_safe
def regressions(request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state", "open")
    project = request.GET.get("project", "")
    if state not in read.FILTERS:
        raise Http404(f"state must be one of {', '.join(read.FILTERS)}.")
    slugs = list(Project.objects.values_list("slug", flat=True))
    if project and project not in slugs:
        raise Http404("There is no project of that name.")
    listed = page_of(request, read.inbox(state, project), LONG)
    context = {
        "page": listed,
        "regressions": list(listed),
        "state": state,
        "states": tabs(state, project),
        "project_slug": project,
        "project_slugs": slugs,
        "tally": tally_sentence(read.tally(project)),
        "example": project or next(iter(slugs), "my-training"),
    }
    return render(request, "regressions.html", context)


def tabs(shown: str, project: str) -> list[tuple[str, int]]:
    """The filters that list something, with how much: an inbox has no use for the empty ones."""
    counted = read.counts(project)
    always = {"open", "all", shown}
    return [(name, count) for name, count in counted.items() if count or name in always]


@require_safe
def regression(request: HttpRequest, pk: int) -> HttpResponse:
    return page(request, get_object_or_404(read.readable(), pk=pk))


def page(
    request: HttpRequest, found: Regression, status: int = 200, refused: str = "", typed: str = ""
) -> HttpResponse:
    """One regression; `refused` says why its triage form was, and `typed` is the comment that it had."""
    changes = list(read.evidence(found))
    proved = proof(found, changes)
    context = {
        "regression": found,
        "project": found.project,
        "name": words.series_name(found.series),
        "figure": drawing_around(found),
        "changes": changes,
        "deliveries": list(read.deliveries(found)),
        "suspects": [_suspect(suspect, found.series.metric.kind) for suspect in found.suspects],
        "excerpts": _excerpts(found),
        "cost": cost(found),
        **_phases(found, [one["row"] for one in proved["proofs"]]),
        "triages": list(read.triages(found)),
        "actions": actions(found),
        "refused": refused,
        "typed": typed,
        **proved,
    }
    return render(request, "regression.html", context, status=status)


def actions(found: Regression) -> list[tuple[str, str, str]]:
    """What a person may do now: (value, label, what it does)."""
    becomes = {action: wanted for action, wanted in BECOMES.items() if wanted != found.triaged}
    if found.is_away:
        becomes.pop(Triage.Action.ACKNOWLEDGE, None)
    known = [(str(action), *LABELS[action]) for action in LABELS if action in becomes]
    return [*known, (str(Triage.Action.COMMENT), "Comment only", "Keeps what you wrote.")]


@require_safe
def deliveries(request: HttpRequest) -> HttpResponse:
    listed = page_of(request, read.deliveries(), LONG)
    return render(request, "deliveries.html", {"page": listed, "deliveries": list(listed)})


def _suspect(suspect: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        **suspect,
        "place": words.place(suspect),
        "sentence": words.suspect_sentence(suspect, kind),
        "called": words.is_called(suspect),
    }


def _excerpts(found: Regression) -> list[dict[str, Any]]:
    """The changed lines of the first suspects, each with what the function does otherwise than before."""
    if not found.names_commit:
        return []
    kind = found.series.metric.kind
    known = {(one.get("file"), one.get("function")): one for one in reversed(found.suspects)}
    return [
        {**_suspect(known[one.file, one.function], kind), "lines": one.lines, "left_out": one.left_out}
        for one in changed_lines(found.project, *difference_of(found), found.suspects)
    ]


def _phases(found: Regression, confirmations: list[Confirmation]) -> dict[str, Any]:
    """Both commits' phases side by side: a figure and the rows of a table, largest difference first.

    By the interleaved runs that proved it, else by the runs of the two commits. Of what is seen in a phase's
    own series, that phase and those nested in it.
    """
    paired = phases_of(found, confirmations)
    old, new = (
        {path: value for path, value in one.items() if holds(found.series.phase, path)}
        for one in ((paired.before, paired.after) if paired else read.phases_around(found))
    )
    kind, unit, title = found.series.metric.kind, "s", "per step, own time"
    if kind == Metric.Kind.MEMORY:
        unit, title = "bytes", "that the phase grew by"
    elif kind == Metric.Kind.COUNTER:
        unit, title = found.series.metric.unit, ""
    rows: list[dict[str, Any]] = [
        {
            "path": path,
            "before": old.get(path),
            "after": new.get(path),
            "delta": new.get(path, 0.0) - old.get(path, 0.0),
        }
        for path in old.keys() | new.keys()
    ]
    rows.sort(key=lambda row: (-abs(row["delta"]), row["path"]))
    whole = sum(row["delta"] for row in rows)
    for row in rows:
        row["share"] = row["delta"] / whole if whole else None
    drawn = phase_charts.before_after(old, new, unit, title) if old and new else None
    return {
        "phase_figure": theme.dump(drawn) if drawn else "",
        "phase_rows": rows[:FEW],
        "phase_rest": rows[FEW:],
        "phase_unit": unit,
        "phase_title": title,
        "phase_pairs": paired,
    }
