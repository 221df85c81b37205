"""The form that asks for an experiment: filled in by its address, which commits, runs, points link to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods
from paceline.phase_names import spell_metric

from dashboard import experiments
from dashboard.access import visitor_of
from dashboard.experiments import EstimateRequest, ExperimentError
from dashboard.models import Commit, Experiment, Project
from dashboard.pages.form_fields import read_text
from dashboard.querysets import experiments as experiment_queries
from dashboard.sentences.comparisons import experiments as experiment_sentences
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.metric_labels import metric_label, metric_sort_key

FIELDS = ("base", "head", "case", "head_case", "toggle", "metric", "precision", "minutes", "quick", "pool")
LONGEST = 1000
QUICK = {"yes": True, "no": False}
# Offered besides what the project's headline series are about.
COMMON_METRICS = ("step_time", "throughput", "peak_memory", "device_memory", "function_calls")


@require_http_methods(["GET", "HEAD", "POST"])
def new_experiment_page(request: HttpRequest, slug: str) -> HttpResponse:
    """GET shows the form with what the address says, POST asks."""
    project = get_object_or_404(Project, slug=slug)
    written = read_fields(request.POST if request.method == "POST" else request.GET)
    if request.method != "POST":
        return _render_form(request, project, written)
    try:
        experiment, new = experiments.submit_estimate(
            project, request_of(written), Experiment.Purpose.PERSON, visitor_of(request)
        )
    except ExperimentError as error:
        return _render_form(request, project, written, error)
    if not new:
        messages.info(
            request,
            f"This is being measured already, {experiment_sentences.ending_text(experiment)}: here is its "
            "answer as it comes.",
        )
    return redirect(experiment)


def read_fields(form: Mapping[str, Any]) -> dict[str, str]:
    """What is written in each field; too long a text can't be meant."""
    return {name: read_text(form, name).strip()[:LONGEST] for name in FIELDS}


def request_of(written: Mapping[str, str]) -> EstimateRequest:
    words = {name: text for name, text in written.items() if name != "quick"}
    return EstimateRequest(**words, quick=QUICK.get(written["quick"]))


def _render_form(
    request: HttpRequest, project: Project, written: dict[str, str], error: ExperimentError | None = None
) -> HttpResponse:
    shown = {
        **written,
        "metric": written["metric"] or experiments.DEFAULT_METRIC,
        "precision": written["precision"] or f"{numbers.format_field(100 * experiments.DEFAULT_PRECISION)} %",
        "minutes": written["minutes"] or numbers.format_field(project.experiment_minutes),
    }
    cases = [str(case) for case in experiment_queries.measured_cases(project)]
    context = {
        "project": project,
        "tab": "experiments",
        "fields": shown,
        "error": error,
        "base_commit": known_commit(project, shown["base"]),
        "head_commit": known_commit(project, shown["head"]),
        "cases": cases,
        "metrics": metric_choices(project),
    }
    return render(request, "experiments/form.html", context, status=400 if error else 200)


def known_commit(project: Project, revision: str) -> Commit | None:
    """The commit whose hash this is, as far as the site knows it: no git is asked for a page."""
    return Commit.objects.filter(project=project, hash=revision).first() if revision else None


def metric_choices(project: Project) -> list[tuple[str, str]]:
    """(spelling, label) of the metrics that are offered: any other may be typed, of a phase too."""
    known = [*experiment_queries.offered_metrics(project), *((name, "") for name in COMMON_METRICS)]
    ordered = sorted(dict.fromkeys(known), key=lambda metric: metric_sort_key(*metric))
    return [(spell_metric(name, phase), metric_label(name, phase)) for name, phase in ordered]
