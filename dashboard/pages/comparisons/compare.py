"""Any two commits, branches, tags, runs or cases of a project beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import experiments
from dashboard.charts.difference_icicle import draw_difference
from dashboard.charts.forest import ForestAxis, ForestRow
from dashboard.comparisons.comparing import CaseComparison, Comparison, compare_revisions
from dashboard.comparisons.links import compare_address, lasting_address
from dashboard.comparisons.metric_rows import MetricRow
from dashboard.comparisons.phase_rows import PhaseRow
from dashboard.comparisons.profile_rows import ProfileComparison, ProfileRow
from dashboard.comparisons.requests import ComparisonError, read_request
from dashboard.comparisons.revisions import RUN
from dashboard.models import Commit, Run
from dashboard.pages.comparisons.files import FileResponse, write_csv, write_markdown
from dashboard.pages.experiments.links import configuration_fields
from dashboard.pages.link_previews import preview_of_page
from dashboard.pages.paging import parse_whole_number
from dashboard.pages.requested_project import requested_project
from dashboard.pictures import KINDS
from dashboard.querysets import comparisons as queries
from dashboard.sentences.comparisons import comparisons as sentences

# A page has a budget of bytes: the files and the API have all.
MOST_METRICS = 120
MOST_DIFFERENT, MOST_ALIKE, MOST_UNKNOWN = 100, 60, 30
# So many of those that differ are open, the others are folded.
MOST_OPEN = 40
MOST_CASES = 30
MOST_UNPAIRED = 20
MOST_PHASES, MOST_ALIKE_PHASES = 20, 15
MOST_FUNCTIONS, MOST_OPERATIONS, MOST_KERNELS = 25, 15, 15
MOST_EXPERIMENTS = 3
MOST_FRAMES = 1_000_000
FILES = (
    ("Markdown", "project-compare-markdown"),
    ("CSV", "project-compare-csv"),
    ("JSON", "api-comparison"),
)


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """A row of the forest plot; `place` is None where the metric has no ratio."""

    row: MetricRow
    place: ForestRow | None


@dataclass(frozen=True, slots=True)
class ShownPhase:
    """The widths of its two bars are in per cent of the longest one."""

    row: PhaseRow
    base_width: float
    head_width: float


@require_safe
def compare_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form alone where nothing is asked for; a refused request comes back with its sentence."""
    project = requested_project(request, slug)
    asked = read_request(request.GET)
    context: dict[str, Any] = {"project": project, "asked": asked, "error": None, "comparison": None}
    if asked.base and asked.head:
        try:
            comparison = compare_revisions(project, asked)
        except ComparisonError as error:
            context["error"] = error
            context["names_run"] = bool(RUN.fullmatch(asked.base) or RUN.fullmatch(asked.head))
        else:
            context |= comparison_context(request, comparison)
            context["preview"] = _preview_of(comparison)
    names = queries.known_names(project)
    context["names"] = names
    if context["comparison"] is None:
        context |= _choice_context(names)
    return render(request, "comparisons/compare.html", context, status=400 if context["error"] else 200)


def _preview_of(comparison: Comparison) -> dict[str, str]:
    """What a chat shows of its address."""
    title = f"{comparison.project.slug}: {comparison.head.name} against {comparison.base.name}"
    chosen = comparison.chosen
    sentence = sentences.lead_sentence(chosen) if chosen else sentences.nothing_sentence(comparison)
    return preview_of_page(comparison.project, lasting_address(comparison), title, sentence)


def _choice_context(names: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """`lacking`: `all` or `second`, where too few commits are measured for any two to be chosen."""
    named = {kind: [name for known_kind, name, _ in names if known_kind == kind] for kind, _, _ in names}
    commits = named.get("commit", [])
    if len(commits) > 1 or len(named.get("branch", [])) > 1:
        return {"lacking": ""}
    return {"lacking": "second" if commits else "all", "only_commit": commits[0] if commits else ""}


@require_safe
def comparison_markdown(request: HttpRequest, slug: str) -> HttpResponse:
    return _answer_file(request, slug, write_markdown)


@require_safe
def comparison_csv(request: HttpRequest, slug: str) -> HttpResponse:
    return _answer_file(request, slug, write_csv)


def _answer_file(request: HttpRequest, slug: str, write: FileResponse) -> HttpResponse:
    def answer(comparison: Comparison) -> HttpResponse:
        return write(comparison, request.build_absolute_uri(lasting_address(comparison)))

    return answer_comparison(request, slug, answer)


def answer_comparison(
    request: HttpRequest, slug: str, answer: Callable[[Comparison], HttpResponse]
) -> HttpResponse:
    """The answer of what isn't a page to the comparison that the address names, or one sentence of text."""
    project = requested_project(request, slug)
    try:
        comparison = compare_revisions(project, read_request(request.GET))
    except ComparisonError as error:
        return HttpResponse(f"{error}\n", content_type="text/plain; charset=utf-8", status=400)
    return answer(comparison)


def comparison_context(request: HttpRequest, comparison: Comparison) -> dict[str, Any]:
    address = lasting_address(comparison)
    query = address.partition("?")[2]
    project = comparison.project
    context = {
        "comparison": comparison,
        "address": request.build_absolute_uri(address),
        "files": [(label, f"{reverse(name, args=[project.slug])}?{query}") for label, name in FILES],
        "swapped": compare_address(
            project, **{**comparison.request.as_query(), **_swapped_fields(comparison)}
        ),
        "nothing": sentences.nothing_sentence(comparison),
        "unmeasured": _unmeasured_commits(comparison),
        "warnings": sentences.comparability_sentences(comparison),
        "cases": [
            (summary, compare_address(project, **{**_side_fields(comparison), **summary.pair.as_fields()}))
            for summary in comparison.cases[:MOST_CASES]
        ],
        "more_cases": max(0, len(comparison.cases) - MOST_CASES),
        "unpaired": comparison.pairing.unpaired[:MOST_UNPAIRED],
        "more_unpaired": max(0, len(comparison.pairing.unpaired) - MOST_UNPAIRED),
    }
    if comparison.chosen:
        context |= chosen_context(request, comparison, comparison.chosen)
    return context


def _unmeasured_commits(comparison: Comparison) -> list[Commit]:
    """The sides without any run that counts."""
    if comparison.pairing.pairs:
        return []
    obstacles = {row.obstacle for row in comparison.pairing.unpaired}
    sides = ((comparison.base, "only head"), (comparison.head, "only base"))
    commits = [side.commit for side, other in sides if obstacles <= {other}]
    return list(dict.fromkeys(commits))


def _side_fields(comparison: Comparison) -> dict[str, str]:
    return {"base": comparison.request.base, "head": comparison.request.head}


def _swapped_fields(comparison: Comparison) -> dict[str, str]:
    asked = comparison.request
    swapped = {"base": asked.head, "head": asked.base}
    return swapped | ({"case": asked.head_case, "head_case": asked.case} if asked.head_case else {})


def chosen_context(request: HttpRequest, comparison: Comparison, compared: CaseComparison) -> dict[str, Any]:
    different, alike, unknown = compared.different, compared.alike, compared.unknown
    axis, shown = draw_forest(different[:MOST_DIFFERENT])
    most_alike = min(MOST_ALIKE, MOST_METRICS - len(shown))
    phases = draw_phases(compared.phases)
    moved = [phase for phase in phases if phase.row.verdict != "~"]
    still = [phase for phase in phases if phase.row.verdict == "~"]
    profile = compared.profile
    sides = (comparison.base.commit, comparison.head.commit)
    return {
        "compared": compared,
        "lead": sentences.lead_sentence(compared),
        "ticks": axis.ticks() if axis else None,
        "none_at": axis.position(1.0) if axis else None,
        "different": shown[:MOST_OPEN],
        "folded": shown[MOST_OPEN:],
        "more_different": max(0, len(different) - MOST_DIFFERENT),
        "alike": alike[:most_alike],
        "more_alike": max(0, len(alike) - most_alike),
        "alike_count": len(alike),
        "unknown": unknown[:MOST_UNKNOWN],
        "more_unknown": max(0, len(unknown) - MOST_UNKNOWN),
        "unknown_count": len(unknown),
        "has_phases": bool(phases),
        "phases": moved[:MOST_PHASES],
        "more_phases": max(0, len(moved) - MOST_PHASES),
        "alike_phases": still[:MOST_ALIKE_PHASES],
        "alike_phase_count": len(still),
        "more_alike_phases": max(0, len(still) - MOST_ALIKE_PHASES),
        "icicle": draw_difference(
            profile.stacks,
            parse_whole_number(request, "frame", 0, MOST_FRAMES),
            by_calls=_is_drawn_by_calls(request, profile),
        ),
        "tables": profile_tables(compared),
        "flames": _picture_addresses(comparison, "project-compare-flame"),
        "forests": _picture_addresses(comparison, "project-compare-metrics"),
        "measured": queries.experiments_of_pair(*sides, MOST_EXPERIMENTS),
        "experiment": experiment_fields(comparison, compared),
    }


def _picture_addresses(comparison: Comparison, name: str) -> list[str]:
    """One for each of KINDS."""
    query = lasting_address(comparison).partition("?")[2]
    return [f"{reverse(name, args=[comparison.project.slug, kind])}?{query}" for kind in KINDS]


def _is_drawn_by_calls(request: HttpRequest, profile: ProfileComparison) -> bool:
    width = request.GET.get("width")
    return width == "calls" or (bool(profile.tainted) and width != "time")


def draw_forest(rows: Sequence[MetricRow]) -> tuple[ForestAxis | None, list[ShownMetric]]:
    """All on one axis; what has no ratio has no place on it, and of such rows alone there is no axis."""
    with_ratio = [row for row in rows if row.ratio is not None and row.effect == "ratio"]
    if not with_ratio:
        return None, [ShownMetric(row, None) for row in rows]
    ends = (end for row in with_ratio for end in (row.ratio, row.low, row.high) if end)
    axis = ForestAxis.of_ratios(ends)
    return axis, [
        ShownMetric(
            row,
            axis.place_row(row.ratio, row.low, row.high)
            if row.ratio is not None and row.effect == "ratio"
            else None,
        )
        for row in rows
    ]


def draw_phases(rows: Sequence[PhaseRow]) -> list[ShownPhase]:
    longest = max((value or 0.0 for row in rows for value in (row.base, row.head)), default=0.0) or 1.0
    return [
        ShownPhase(row, *(round(100 * (value or 0.0) / longest, 2) for value in (row.base, row.head)))
        for row in rows
    ]


def profile_tables(compared: CaseComparison) -> list[tuple[str, str, Sequence[ProfileRow], int]]:
    """(title, where they are, rows, how many more) of what the profiles differ in; without empty ones."""
    profile = compared.profile
    parts = (
        ("Functions", "File", profile.functions, MOST_FUNCTIONS),
        ("Operations", "Phase", profile.operations, MOST_OPERATIONS),
        ("Kernels", "Phase", profile.kernels, MOST_KERNELS),
    )
    return [
        (title, where, rows[:most], max(0, len(rows) - most)) for title, where, rows, most in parts if rows
    ]


def experiment_fields(comparison: Comparison, compared: CaseComparison) -> dict[str, str]:
    """What is posted to have the pair measured side by side; empty where it can't be.

    What was imported or posted can't be measured here, and one case of one commit is no pair.
    """
    pair = compared.pair
    origins = {run.origin for run in pair.runs}
    same = comparison.base.commit == comparison.head.commit and not pair.has_two_cases
    if not comparison.project.repository or same or origins - {Run.Origin.MEASURED}:
        return {}
    largest = next((row for row in compared.different if row.headline and not row.phase), None)
    return {
        **configuration_fields(pair.base.configuration),
        "base": comparison.base.commit.hash,
        "head": comparison.head.commit.hash,
        "head_case": str(pair.head.configuration.case) if pair.has_two_cases else "",
        "metric": largest.metric.name if largest else experiments.DEFAULT_METRIC,
    }
