"""The inbox of regressions, one regression with its evidence, and the log of what was told about them."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard.alerts.sentences import describe_operation_change
from dashboard.models import Project, Regression, Triage
from dashboard.pages import words
from dashboard.pages.costs import cost, tally_sentence
from dashboard.pages.paging import page_of
from dashboard.pages.proof import proof_context
from dashboard.pages.regression_phases import phases_beside
from dashboard.pages.series import drawing_around
from dashboard.querysets import regressions as read
from dashboard.regressions.blame import difference_of
from dashboard.regressions.lines import changed_lines
from dashboard.regressions.triage import BECOMES

LONG = 40
# Of what was lost: from here on a tensor operation is told in the first sentences.
LARGE_PART = 0.25
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
    proved = proof_context(found, changes)
    context = {
        "regression": found,
        "project": found.project,
        "name": words.series_name(found.series),
        "figure": drawing_around(found),
        "changes": changes,
        "deliveries": list(read.deliveries(found)),
        "suspects": [_suspect(suspect, found.series.metric.kind) for suspect in found.suspects],
        "operation": _operation(found),
        "excerpts": _excerpts(found),
        "cost": cost(found),
        **phases_beside(found, [row.confirmation for row in proved["proofs"]]),
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


def _operation(found: Regression) -> dict[str, str]:
    """The first tensor operation with what it does otherwise; empty where it holds no large part."""
    first = next(iter(found.operations), None)
    if first is None or first["share"] < LARGE_PART:
        return {}
    return {"name": first["operation"], "sentence": describe_operation_change(first)}


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
