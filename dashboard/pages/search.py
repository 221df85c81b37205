"""Search: what a few words find, grouped; a single exact hit is shown at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of
from dashboard.models import Case, Commit, Machine, Project, Regression
from dashboard.pages.list_filters import split_words
from dashboard.querysets import search
from dashboard.querysets.visibility import ProjectVisibility
from dashboard.sentences.administration.repositories import repository_name
from dashboard.sentences.regressions import learning
from dashboard.sentences.regressions.suspects import function_location

LONGEST_TEXT = 200
NUMBERED = re.compile(r"(run|regression)?\s*#?\s*(\d{1,15})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """`name` is written as code where it is; `exact`: the whole text is its name."""

    address: str
    name: str
    detail: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Of one kind; `more`: not all that were found are listed."""

    kind: str
    hits: Sequence[Hit]
    more: bool


@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "").replace("\x00", " ").strip()[:LONGEST_TEXT]
    visibility = visitor_of(request).project_visibility
    numbered = _find_numbered(visibility, text)
    if numbered:
        return redirect(numbered)
    groups = find_everything(visibility, text) if text else []
    exact = [hit for group in groups for hit in group.hits if hit.exact]
    if len(exact) == 1:
        return redirect(exact[0].address)
    context = {"searched": text, "groups": groups, "found": sum(len(group.hits) for group in groups)}
    return render(request, "search.html", context)


def _find_numbered(visibility: ProjectVisibility, text: str) -> str:
    """The address of `run 12`, `regression 12` or `#12`, which is a run; empty where there is none."""
    match = NUMBERED.fullmatch(text)
    if match is None or not (match[1] or "#" in text):
        return ""
    found = search.find_numbered(visibility.rows(), (match[1] or "run").lower(), int(match[2]))
    return found.get_absolute_url() if found else ""


def find_everything(visibility: ProjectVisibility, text: str) -> list[HitGroup]:
    words = split_words(text)
    folded = text.lower()
    commits = search.find_commits(visibility, text, words)
    parts: list[tuple[str, Sequence[Any], Callable[[Any], Hit]]] = [
        ("Projects", search.find_projects(visibility, words), lambda row: _project_hit(row, folded)),
        ("Cases", search.find_cases(visibility, words), lambda row: _case_hit(row, folded)),
        ("Commits", commits, lambda row: _commit_hit(row, text, alone=len(commits) == 1)),
        ("Regressions", search.find_regressions(visibility, words), _regression_hit),
        ("Functions", search.find_functions(visibility, words), _function_hit),
        ("Machines", search.find_machines(words), lambda row: _machine_hit(row, folded)),
    ]
    return [
        HitGroup(kind, [make(row) for row in rows[: search.MOST_HITS]], len(rows) > search.MOST_HITS)
        for kind, rows, make in parts
        if rows
    ]


def _project_hit(project: Project, folded: str) -> Hit:
    location = repository_name(project)
    return Hit(project.get_absolute_url(), project.slug, location, exact=project.slug == folded)


def _case_hit(case: Case, folded: str) -> Hit:
    address = f"{reverse('project', args=[case.project.slug])}?{urlencode({'q': str(case)})}"
    return Hit(address, str(case), case.project.slug, exact=str(case).lower() == folded)


def _commit_hit(commit: Commit, text: str, *, alone: bool) -> Hit:
    """A hash of seven digits or more names one commit, if only one begins so."""
    named = len(text) >= 7 and commit.hash.startswith(text.lower())
    address = reverse("commit", args=[commit.project.slug, commit.hash])
    detail = f"{commit.subject} · {commit.project.slug}"
    return Hit(address, commit.short, detail, exact=alone and (named or text in commit.tags))


def _regression_hit(regression: Regression) -> Hit:
    name = f"{learning.regression_name(regression)} {learning.regression_change(regression)}"
    detail = f"{regression.series.case} · {regression.project.slug} · {regression.blamed.short}"
    return Hit(regression.get_absolute_url(), name, detail)


def _function_hit(found: tuple[dict[str, Any], Regression]) -> Hit:
    suspect, regression = found
    detail = f"suspected in regression {regression.pk} · {regression.project.slug}"
    return Hit(regression.get_absolute_url(), function_location(suspect), detail)


def _machine_hit(machine: Machine, folded: str) -> Hit:
    return Hit(
        machine.get_absolute_url(), machine.name, f"pool {machine.pool.name}", machine.name.lower() == folded
    )
