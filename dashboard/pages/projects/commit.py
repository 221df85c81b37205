"""One commit over all cases: what each measured there beside what it measured before."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from django.core.paginator import Page
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.metric_scale import NamedScale
from dashboard.models import Change, Commit, Configuration, Project
from dashboard.pages.link_previews import preview_of_page
from dashboard.pages.list_filters import matches_words
from dashboard.pages.paging import requested_page
from dashboard.pages.projects.case_grid import Movement, measure_movement, shown_columns
from dashboard.pages.requested_project import requested_project
from dashboard.querysets import commits
from dashboard.querysets.commits import BaseValue, MeasuredValue
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import shown_levels, shown_step
from dashboard.sentences.formatting.metric_labels import metric_label

CASES_PER_PAGE = 50
# By so much less a growth of memory counts in the order of cases than a ratio.
SIGNED_WEIGHT = 0.1
# Cases that were not measured are named up to so many.
NAMED_CASES = 12


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A value beside the one before it, or the levels of the step that detection found to begin here.

    `moved` is None where there is nothing before it.

    `within_noise`: their intervals overlap, so that the movement tells nothing.
    """

    measured: MeasuredValue
    base: BaseValue | None
    moved: Movement | None
    within_noise: bool
    change: Change | None

    @property
    def word(self) -> str:
        """`better` or `worse`; empty where nothing is known."""
        if self.within_noise and self.change is None:
            return ""
        return self.moved.direction(self.measured.better) if self.moved else ""

    @property
    def change_text(self) -> str:
        return self.moved.text if self.moved else ""

    @property
    def levels(self) -> tuple[float, float] | None:
        """Before and after the step that begins here; None where none does."""
        return shown_levels(shown_step(self.change)) if self.change else None

    @property
    def size(self) -> float:
        """By which the table is sorted: steps that detection found, then by how far the values are apart."""
        if self.base is None or self.moved is None or self.measured.tainted:
            return 0.0
        distance = abs(self.moved.distance)
        if self.moved.lacks_ratio:
            # Beside logarithms of ratios, whatever its unit: at most as much as a quadrupling, and
            # less of what is small and wanders around 0 by itself.
            distance *= log(2) / max(abs(self.base.value), abs(self.measured.value), sys.float_info.min)
            distance *= SIGNED_WEIGHT if NamedScale(self.measured.metric).has_sign else 1.0
        if self.change is not None:
            return 1000 + distance
        return distance / 1000 if self.within_noise else distance


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A row: a configuration, a cell for each column (None where it lacks that metric), and its base."""

    configuration: Configuration
    run: int
    tainted: bool
    base: BaseValue | None
    cells: list[ComparedCell | None]


@require_safe
def commit_page(request: HttpRequest, slug: str, commit: str) -> HttpResponse:
    project = requested_project(request, slug)
    found = commits.find_commits(project, commit)
    if not found:
        raise Http404(f"No commit of {project.slug} that the site knows begins with {commit}.")
    if len(found) > 1:
        raise Http404(f"More than one commit of {project.slug} begins with {commit}: give more of its hash.")
    if found[0].hash != commit:
        return redirect("commit", project.slug, found[0].hash)
    return render(request, "projects/commit.html", _commit_context(request, project, found[0]))


def _commit_context(request: HttpRequest, project: Project, commit: Commit) -> dict[str, Any]:
    beside = commits.commits_beside(commit)
    measured = commits.values_at(commit)
    configurations, missing = commits.configurations_beside(
        project, commit, {row.configuration for row in measured}
    )
    changes = commits.changes_at(commit)
    steps = {series: change for series, change in changes.items() if not change.is_move}
    compared = _compare_cases(project, commit, measured, steps)
    columns, page = _list_cases(request, configurations, compared)
    return {
        "project": project,
        "tab": "commits",
        "commit": commit,
        **_neighbour_context(commit, beside),
        "columns": columns,
        "page": page,
        "rows": list(page),
        "words": request.GET.get("q", "")[:200],
        "runs": commits.troubled_runs(commit),
        "regressions": commits.regressions_of_commit(commit),
        "moves": [change for change in changes.values() if change.is_move][: commits.LISTED],
        "experiments": commits.experiments_of_commit(commit),
        "checks": commits.checks_of_commit(commit),
        "triggers": list(commits.triggers_of_commit(commit)[: commits.LISTED]),
        "missing": missing[:NAMED_CASES],
        "more_missing": max(0, len(missing) - NAMED_CASES),
        "preview": preview_of_page(
            project,
            reverse("commit", args=[project.slug, commit.hash]),
            f"{commit.short} {commit.subject}",
            f"{numbers.format_count(len(compared), 'measured case')} in {project.slug}.",
        ),
        "missing_benchmarks": sorted({configuration.case.benchmark for configuration in missing}),
    }


def _neighbour_context(commit: Commit, beside: Sequence[Commit]) -> dict[str, Any]:
    """The commits before and after it on its branch; its parents as (hash, commit or None)."""
    on_branch = {row.position: row for row in beside if row.branch == commit.branch}
    by_hash = {row.hash: row for row in beside}
    return {
        "previous": on_branch.get(commit.position - 1),
        "next": on_branch.get(commit.position + 1),
        "parents": [(parent, by_hash.get(parent)) for parent in commit.parents],
    }


def _compare_cases(
    project: Project, commit: Commit, measured: Sequence[MeasuredValue], steps: Mapping[int, Change]
) -> dict[int, dict[tuple[str, str], ComparedCell]]:
    """By configuration and metric; `steps` are those that begin at the commit, by series."""
    base = commits.values_before(project, commit, [row.series for row in measured])
    by_case: dict[int, dict[tuple[str, str], ComparedCell]] = {}
    for row in measured:
        cell = compare_values(row, base.get(row.series), steps.get(row.series))
        by_case.setdefault(row.configuration, {})[row.metric, row.phase] = cell
    return by_case


def _list_cases(
    request: HttpRequest,
    configurations: Mapping[int, Configuration],
    compared: Mapping[int, Mapping[tuple[str, str], ComparedCell]],
) -> tuple[list[str], Page[ComparedCase]]:
    """(columns, rows of the page): the cases that the address asks for, what moved most first."""
    words = request.GET.get("q", "")
    shown = {
        key: cells
        for key, cells in compared.items()
        if matches_words(f"{configurations[key].case} {configurations[key].pool.name}", words)
    }
    columns = shown_columns(list(shown.values()))
    rows = [
        _build_row(configurations[key], [cells.get(column) for column in columns])
        for key, cells in shown.items()
    ]
    rows.sort(key=lambda row: (-_largest_size(row), str(row.configuration.case), row.configuration.pk))
    page = requested_page(request, rows, CASES_PER_PAGE)
    return [metric_label(*column) for column in columns], page


def compare_values(measured: MeasuredValue, base: BaseValue | None, change: Change | None) -> ComparedCell:
    # Two neighbouring values may lie the other way round: the levels of the step that was found tell.
    before, after = (None if base is None else base.value, measured.value)
    if change is not None:
        before, after = shown_levels(shown_step(change))
    moved = measure_movement(measured.metric, measured.unit, before, after)
    overlapping = base is not None and intervals_overlap(measured, base)
    return ComparedCell(measured, base, moved, overlapping, change)


def intervals_overlap(measured: MeasuredValue, base: BaseValue) -> bool:
    """Of values without an interval, which repeat exactly, whether they are the same."""
    low, high = (measured.value if end is None else end for end in (measured.low, measured.high))
    base_low, base_high = (base.value if end is None else end for end in (base.low, base.high))
    return low <= base_high and base_low <= high


def _build_row(configuration: Configuration, cells: list[ComparedCell | None]) -> ComparedCase:
    filled = [cell for cell in cells if cell is not None]
    return ComparedCase(
        configuration=configuration,
        run=filled[0].measured.run if filled else 0,
        tainted=any(cell.measured.tainted for cell in filled),
        base=next((cell.base for cell in filled if cell.base is not None), None),
        cells=cells,
    )


def _largest_size(row: ComparedCase) -> float:
    return max((cell.size for cell in row.cells if cell is not None), default=0.0)
