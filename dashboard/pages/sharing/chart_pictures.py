"""The charts of pages as pictures for other places."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe
from paceline.claims.claims_file import parse_definition

from dashboard.charts.pictures import claim_picture, figure_picture, forest_picture
from dashboard.charts.pictures.forest_picture import ForestLine
from dashboard.charts.theme import Figure
from dashboard.comparisons.comparing import Comparison
from dashboard.models import Claim, Run
from dashboard.pages.claims import MOST_DRAWN, history_of
from dashboard.pages.comparisons.compare import MOST_OPEN, answer_comparison, draw_forest
from dashboard.pages.experiments.pairs import draw_experiment_pairs
from dashboard.pages.paging import parse_whole_number
from dashboard.pages.runs.document_parts import Json, draw_run_telemetry, draw_step_times
from dashboard.pages.runs.scaling import draw_loop_growth, draw_step_growth
from dashboard.pages.sharing.shared_pictures import is_public, send_picture
from dashboard.pictures import KINDS, Picture
from dashboard.pictures.drawing import make_canvas
from dashboard.querysets import claims as claim_queries
from dashboard.querysets import experiments as experiment_queries
from dashboard.querysets import runs as run_queries
from dashboard.sentences.comparisons import claims as claim_sentences
from dashboard.sentences.comparisons import comparisons as comparison_sentences
from dashboard.sentences.comparisons import experiments as experiment_sentences
from dashboard.sentences.formatting.metric_labels import experiment_metric_label

MOST_REPETITIONS = 10_000


@require_safe
def experiment_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:  # noqa: ARG001
    experiment = get_object_or_404(experiment_queries.experiments_with_related(), pk=pk)
    pairs = list(experiment.pairs.order_by("index"))
    figure = draw_experiment_pairs(experiment, pairs)
    title = f"{experiment_metric_label(experiment)} of {experiment.base_configuration.case}"
    caption = experiment_sentences.answer_sentence(experiment) if pairs else "No pair was measured yet"
    return send_figure(figure, title, caption, kind, public=is_public(experiment.project))


@require_safe
def run_telemetry_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """`repetition`: whose readings, as on the run's page."""
    run, document = _read_run(pk)
    index = parse_whole_number(request, "repetition", 0, MOST_REPETITIONS)
    figure = draw_run_telemetry(run, document, index)
    caption = f"Repetition {index}, the measured window shaded" if figure else "No telemetry is kept of it"
    return _send_run_figure(run, figure, caption, kind)


@require_safe
def run_step_times_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """`repetition`: whose steps, as on the run's page."""
    run, document = _read_run(pk)
    index = parse_whole_number(request, "repetition", 0, MOST_REPETITIONS)
    figure = draw_step_times(document, index)
    caption = f"Step times of repetition {index}'s measured window" if figure else "No step times were kept"
    return _send_run_figure(run, figure, caption, kind)


@require_safe
def run_scaling_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """`of=step`: of one step in place of the whole loop."""
    run, document = _read_run(pk)
    of_step = request.GET.get("of") == "step"
    figure = draw_step_growth(document) if of_step else draw_loop_growth(document)
    caption = "Nothing was swept in this run"
    if figure:
        grown = "one step" if of_step else "the whole loop"
        caption = f"Time of {grown} over {document['scaling']['parameter']}, each ring a process"
    return _send_run_figure(run, figure, caption, kind)


@require_safe
def claim_history_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:  # noqa: ARG001
    claim = get_object_or_404(Claim.objects.select_related("project", "newest"), pk=pk)
    history = history_of(
        parse_definition(claim.definition), claim_queries.measured_along_branch(claim, MOST_DRAWN)
    )
    canvas = make_canvas(_checked_kind(kind), claim_picture.WIDTH, claim_picture.HEIGHT, claim.text)
    caption = claim_sentences.standing_sentence(claim)
    body = claim_picture.draw_claim_picture(canvas, history, claim.text, caption)
    return send_picture(Picture(body, canvas.content_type), public=is_public(claim.project))


@require_safe
def comparison_metrics_picture(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    """What differs, as many as the page shows unfolded; the address is the comparison's."""

    def draw(comparison: Comparison) -> HttpResponse:
        compared = comparison.chosen
        axis, shown = draw_forest(compared.different[:MOST_OPEN] if compared else [])
        lines = [
            ForestLine(
                comparison_sentences.metric_row_label(found.row),
                comparison_sentences.effect_text(found.row),
                found.row.direction,
                found.place,
            )
            for found in shown
        ]
        title = f"{comparison.request.base} to {comparison.request.head} in {comparison.project}"
        caption = comparison_sentences.nothing_sentence(comparison)
        if compared:
            title = f"{title}: {compared.pair.base.configuration.case}"
            caption = comparison_sentences.lead_sentence(compared)
        height = forest_picture.picture_height(lines)
        canvas = make_canvas(_checked_kind(kind), forest_picture.WIDTH, height, title)
        body = forest_picture.draw_forest_picture(canvas, axis, lines, title, caption)
        return send_picture(Picture(body, canvas.content_type), public=is_public(comparison.project))

    return answer_comparison(request, slug, draw)


def _read_run(pk: int) -> tuple[Run, Json]:
    """(a run, its document without telemetry: empty where none is kept)."""
    run = get_object_or_404(run_queries.runs_with_related(), pk=pk)
    return run, run_queries.document_without_telemetry(run) or {}


def _send_run_figure(run: Run, figure: Figure | None, caption: str, kind: str) -> HttpResponse:
    title = f"{run.case} at {run.commit.short}"
    return send_figure(figure, title, caption, kind, public=is_public(run.case.project))


def _checked_kind(kind: str) -> str:
    if kind not in KINDS:
        raise Http404(f"A picture is one of {', '.join(KINDS)}.")
    return kind


def send_figure(figure: Figure | None, title: str, caption: str, kind: str, *, public: bool) -> HttpResponse:
    """`public`: everybody sees the same. Without a figure the caption says why."""
    height = figure_picture.picture_height(figure)
    canvas = make_canvas(_checked_kind(kind), figure_picture.WIDTH, height, title)
    body = figure_picture.draw_figure_picture(canvas, figure, title, caption)
    return send_picture(Picture(body, canvas.content_type), public=public)
