"""The experiments of a project, and one experiment: its answer, its pairs, phases and functions, live."""

from __future__ import annotations

import shlex
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh
from paceline.phase_names import spell_metric

from dashboard import cancelling, experiments
from dashboard.access import visitor_of
from dashboard.experiments.pair_deviation import measure_pair_deviation
from dashboard.experiments.paired_phases import paired_phases
from dashboard.models import Experiment
from dashboard.pages.comparisons.phases import compare_by_pairs, drawn_comparison
from dashboard.pages.experiments.functions import functions_context
from dashboard.pages.experiments.links import configuration_fields, form_address
from dashboard.pages.experiments.pairs import pairs_caption, pairs_figure
from dashboard.pages.link_previews import preview_of_page
from dashboard.pages.paging import ROWS_PER_PAGE, parse_whole_number, requested_page
from dashboard.pages.requested_project import requested_project
from dashboard.querysets import experiments as experiment_queries
from dashboard.sentences.comparisons import experiments as sentences
from dashboard.sentences.formatting import numbers

MOST_SEEN = 10_000
SIDES = ("base", "head")


@require_safe
def experiments_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    state, purpose = request.GET.get("state", "all"), request.GET.get("purpose", "")
    if state not in experiment_queries.STATES:
        raise BadRequest(f"state must be one of {', '.join(experiment_queries.STATES)}.")
    if purpose and purpose not in Experiment.Purpose:
        raise BadRequest(f"purpose must be one of {', '.join(Experiment.Purpose)}.")
    listed = requested_page(
        request,
        experiment_queries.project_experiments(project, state, purpose),
        ROWS_PER_PAGE,
        details=experiment_queries.EXPERIMENTS_OF_KEYS,
    )
    counts = experiment_queries.count_by_state(project, purpose)
    context = {
        "project": project,
        "tab": "experiments",
        "page": listed,
        "experiments": list(listed),
        "state": state,
        "states": [(name, counts[name]) for name in counts if counts[name] or name in ("all", state)],
        "purpose": purpose,
        "purposes": [(value.value, label) for value, label in sentences.PURPOSE_LABELS.items()],
    }
    return render(request, "experiments/experiments.html", context)


@require_safe
def experiment_page(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "experiments/experiment.html", _experiment_context(_find_with_pairs(pk)))


def _find_with_pairs(pk: int) -> Experiment:
    experiment = experiment_queries.find_with_pairs(pk)
    if experiment is None:
        raise Http404("There is no experiment of that number.")
    return experiment


@require_safe
def experiment_status_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The part that is asked for again and again, and the result below it once there is another pair."""
    experiment: Any = get_object_or_404(experiment_queries.experiment_under_way(), pk=pk)
    if experiment.state in Experiment.TERMINAL:
        return HttpResponseClientRefresh()
    seen = (parse_whole_number(request, "pairs", 0, MOST_SEEN), request.GET.get("profiled") == "yes")
    if seen == (experiment.measured, experiment.profiled):
        context = _status_context(experiment, experiment.measured, experiment.profiled)
        return render(request, "experiments/status.html", context)
    context = {**_experiment_context(_find_with_pairs(pk)), "changed": True}
    return render(request, "experiments/status.html", context)


def _status_context(experiment: Experiment, measured: int, profiled: bool) -> dict[str, Any]:
    spent = max(measured / experiment.most_pairs, experiment.seconds / experiment.most_seconds)
    return {
        "experiment": experiment,
        "active": experiment.state in Experiment.ACTIVE,
        "measured": measured,
        "profiled": profiled,
        "spent": min(spent, 1.0),
        "stages": _progress_stages(experiment, measured, profiled),
    }


def _progress_stages(experiment: Experiment, measured: int, profiled: bool) -> list[tuple[str, str]]:
    """(what is done, past | now | ahead) of what an experiment goes through; empty once it has ended."""
    if experiment.state in Experiment.TERMINAL:
        return []
    counted = experiment.counts_functions
    names = ["requested", *(["functions"] if counted else []), "pairs"]
    current = 0
    if experiment.state == Experiment.State.MEASURING:
        current = len(names) - 1 if profiled or measured or not counted else 1
    return [
        (name, "now" if index == current else "past" if index < current else "ahead")
        for index, name in enumerate(names)
    ]


def _experiment_context(experiment: Experiment) -> dict[str, Any]:
    pairs = list(experiment.pairs.all())
    status = _status_context(experiment, len(pairs), bool(experiment.profiles))
    paired = paired_phases(experiment)
    phases = drawn_comparison(compare_by_pairs(paired), SIDES) if paired else {}
    deviation = measure_pair_deviation(experiment, pairs)
    answer = sentences.answer_sentence(experiment)
    return {
        **status,
        **phases,
        **functions_context(experiment),
        "project": experiment.project,
        "claim_asked": experiment_queries.claim_of_experiment(experiment),
        "answer": answer,
        "preview": preview_of_page(
            experiment.project,
            experiment.get_absolute_url(),
            f"Experiment {experiment.pk}: {sentences.sides_text(experiment)}",
            answer,
            reverse("experiment-picture", args=[experiment.pk, "png"]) if pairs else "",
        ),
        "ended": sentences.ended_sentence(experiment, len(pairs)),
        "direction": sentences.effect_direction(experiment),
        "toggled": sentences.toggled_texts(experiment) if experiment.has_two_cases else None,
        "pairs": pairs,
        "pairs_figure": pairs_figure(experiment, pairs),
        "pairs_caption": pairs_caption(experiment, pairs),
        "pair_deviation": sentences.pair_deviation_sentence(deviation) if deviation else "",
        "calm_pairs": sum(not pair.disturbed for pair in pairs),
        "phase_pairs": paired,
        "reached": sentences.reached_precision(experiment),
        "commands": "\n".join(experiment.commands),
        "command": asking_command(experiment),
        "again": form_address(experiment.project, **asked_question(experiment)),
        "comparable": has_comparable_runs(experiment),
        "cancellable": experiment.purpose in cancelling.CANCELLABLE and experiment.state in Experiment.ACTIVE,
    }


def has_comparable_runs(experiment: Any) -> bool:
    """`experiment` is of `find_with_pairs`."""
    base, head = experiment.base_configuration, experiment.head_configuration
    two_sides = experiment.base_commit_id != experiment.head_commit_id or base.case_id != head.case_id
    return bool(experiment.has_stored_runs) and two_sides


@require_POST
def cancel_experiment(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        cancelling.cancel_experiment(visitor_of(request), get_object_or_404(Experiment, pk=pk))
    except cancelling.NotCancellable as error:
        messages.info(request, str(error))
    else:
        messages.success(request, f"Experiment {pk} is cancelled.")
    return redirect("experiment", pk)


def asked_question(experiment: Experiment) -> dict[str, str]:
    """What was asked, as the form and its address have it."""
    question = {
        **configuration_fields(experiment.base_configuration),
        "base": experiment.base_commit.hash,
        "head": experiment.head_commit.hash,
        "metric": spell_metric(experiment.metric.name, experiment.phase),
        "minutes": numbers.format_field(experiment.most_seconds / 60),
        "precision": f"{numbers.format_field(100 * experiment.precision)}%" if experiment.precision else "",
    }
    if experiment.has_two_cases:
        changed = toggled_params(experiment)
        question |= {"toggle": changed} if changed else {"head_case": str(experiment.head_configuration.case)}
    return question


def toggled_params(experiment: Experiment) -> str:
    """`compile=true`: what the head's case has in the place of the base's, at one commit.

    Empty where it only lacks some, and between two commits, which no toggle compares.
    """
    base, head = experiment.differing_settings
    names = {setting.partition("=")[0] for setting in head}
    lacking = {setting.partition("=")[0] for setting in base} - names
    two_commits = experiment.base_commit_id != experiment.head_commit_id
    return "" if lacking or two_commits else ",".join(sorted(head))


def asking_command(experiment: Experiment) -> str:
    """The command that asks the same question again."""
    question = asked_question(experiment)
    words = ["python manage.py experiment", experiment.project.slug, experiment.base_commit.short]
    if experiment.base_commit_id != experiment.head_commit_id:
        words.append(experiment.head_commit.short)
    options = {
        "--toggle": question.get("toggle", ""),
        "--case": question["case"],
        "--head-case": question.get("head_case", ""),
        "--metric": "" if question["metric"] == experiments.DEFAULT_METRIC else question["metric"],
        "--precision": question["precision"],
        "--minutes": question["minutes"],
        "--pool": question["pool"],
    }
    words += [f"{name} {shlex.quote(value)}" for name, value in options.items() if value]
    words.append("--quick" if experiment.head_configuration.quick else "--no-quick")
    return " ".join([*words, "--wait"])
