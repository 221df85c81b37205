"""The pairs of an experiment, a claim over commits, and a run's telemetry as pictures for other places."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe
from paceline.claims.claims_file import parse_definition

from dashboard.charts import claim_picture, figure_picture
from dashboard.charts.theme import Figure
from dashboard.models import Claim
from dashboard.pages.claims import MOST_DRAWN, history_of
from dashboard.pages.experiments.pairs import draw_experiment_pairs
from dashboard.pages.paging import parse_whole_number
from dashboard.pages.runs.document_parts import draw_run_telemetry, draw_step_times
from dashboard.pages.sharing.shared_pictures import is_public, send_picture
from dashboard.pictures import KINDS, Picture
from dashboard.pictures.drawing import make_canvas
from dashboard.querysets import claims as claim_queries
from dashboard.querysets import experiments as experiment_queries
from dashboard.querysets import runs as run_queries
from dashboard.sentences import claims as claim_sentences
from dashboard.sentences import experiments as experiment_sentences
from dashboard.sentences import labels

MOST_REPETITIONS = 10_000


@require_safe
def experiment_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:  # noqa: ARG001
    experiment = get_object_or_404(experiment_queries.experiments_with_related(), pk=pk)
    figure = draw_experiment_pairs(experiment, list(experiment.pairs.order_by("index")))
    title = f"{labels.experiment_metric_label(experiment)} of {experiment.base_configuration.case}"
    caption = experiment_sentences.answer_sentence(experiment) if figure else "No pair was measured yet"
    return send_figure(figure, title, caption, kind, public=is_public(experiment.project))


@require_safe
def run_telemetry_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """`repetition`: whose readings, as on the run's page."""
    run = get_object_or_404(run_queries.runs_with_related(), pk=pk)
    index = parse_whole_number(request, "repetition", 0, MOST_REPETITIONS)
    document = run_queries.document_without_telemetry(run) or {}
    figure = draw_run_telemetry(run, document, index)
    title = f"{run.case} at {run.commit.short}"
    caption = f"Repetition {index}, the measured window shaded" if figure else "No telemetry is kept of it"
    return send_figure(figure, title, caption, kind, public=is_public(run.case.project))


@require_safe
def run_step_times_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """`repetition`: whose steps, as on the run's page."""
    run = get_object_or_404(run_queries.runs_with_related(), pk=pk)
    index = parse_whole_number(request, "repetition", 0, MOST_REPETITIONS)
    figure = draw_step_times(run_queries.document_without_telemetry(run) or {}, index)
    title = f"{run.case} at {run.commit.short}"
    caption = f"Step times of repetition {index}'s measured window" if figure else "No step times were kept"
    return send_figure(figure, title, caption, kind, public=is_public(run.case.project))


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
