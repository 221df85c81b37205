"""One regression with its evidence."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of
from dashboard.alerts import rules
from dashboard.charts import theme
from dashboard.models import Channel, Regression, Run, Triage
from dashboard.pages.experiments.links import regression_address
from dashboard.pages.link_previews import preview_of
from dashboard.pages.regressions.device import device_context
from dashboard.pages.regressions.phases import phase_comparison_context
from dashboard.pages.regressions.proof import proof_context, time_beside_counter
from dashboard.pages.series.figure import draw_regression_step
from dashboard.querysets import regression_details as details
from dashboard.querysets.costs import weekly_cost
from dashboard.querysets.regressions import deliveries_of_regression
from dashboard.regressions.triage import BECOMES
from dashboard.sentences.administration.channels import snooze_text
from dashboard.sentences.formatting.metric_labels import series_label
from dashboard.sentences.measurements.processes import describe_slow_process
from dashboard.sentences.regressions.costs import cost_sentence
from dashboard.sentences.regressions.learning import is_loss_of_quality, learning_summary
from dashboard.sentences.regressions.regressions import (
    crossed_limits,
    describe_memory_growth,
    describe_operation_change,
    suspect_sentence,
    unannounced_reason,
)
from dashboard.sentences.regressions.suspects import function_location, is_called_in_step

# The share of what was lost from which on the first sentences name a tensor operation.
LEADING_SHARE = 0.25
# (label, what it does, the key that goes to its button).
ACTION_LABELS = {
    Triage.Action.ACKNOWLEDGE: ("Acknowledge", "It stays open, and others see that you look at it.", "a"),
    Triage.Action.INTENDED: (
        "Intended",
        "The new level is the baseline; this step is never reported again.",
        "i",
    ),
    Triage.Action.NOT_REAL: (
        "Not real",
        "A false alarm: it counts against the precision of its series.",
        "n",
    ),
    Triage.Action.WONT_FIX: ("Won't fix", "Real, and accepted: it leaves the open ones.", "w"),
    Triage.Action.REOPEN: ("Reopen", "Back to the open ones.", "o"),
}
COMMENT_LABEL = ("Comment only", "Keeps what you wrote.", "m")


@require_safe
def regression_page(request: HttpRequest, pk: int) -> HttpResponse:
    return render_regression(request, requested_regression(pk))


def requested_regression(pk: int) -> Regression:
    """With all that its page shows; Http404 where there is none."""
    regression = details.find_for_page(pk)
    if regression is None:
        raise Http404("There is no regression of that number.")
    return regression


def render_regression(
    request: HttpRequest, regression: Regression, status: int = 200, refused: str = "", typed: str = ""
) -> HttpResponse:
    """One regression; `refused` says why its triage form was, and `typed` is the comment that it had."""
    changes = details.grouped_changes(regression)
    limits = crossed_limits(regression)
    proved = proof_context(regression, changes, limits)
    runs_of_step = details.runs_of_step(regression)
    origins = runs_of_step.origins
    imported = origins == {Run.Origin.IMPORTED}
    visibility = visitor_of(request).project_visibility
    newer, older = details.neighbours_in_inbox(regression, visibility)
    drawn = draw_regression_step(regression)
    context = {
        "newer": newer,
        "older": older,
        "regression": regression,
        "preview": preview_of(regression),
        "project": regression.project,
        "name": series_label(regression.series),
        "learning_summary": learning_summary(regression) if is_loss_of_quality(regression) else "",
        "figure": theme.figure_json(drawn) if drawn else "",
        "drawn": drawn,
        "changes": changes,
        "time_beside": time_beside_counter(regression, changes, proved["proofs"], runs_of_step),
        "memory_growth": describe_memory_growth(regression, changes),
        **_delivery_context(regression, imported=imported),
        "suspects": [_suspect_row(regression, suspect) for suspect in regression.suspects],
        "operation": _leading_operation(regression),
        **device_context(regression),
        "process_sentences": [describe_slow_process(found) for found in regression.slow_processes],
        "excerpts": _changed_excerpts(regression),
        "cost": cost_sentence(weekly_cost(regression)),
        "limits": limits,
        "imported": imported,
        "posted": origins == {Run.Origin.POSTED},
        "asking": regression_address(regression),
        **phase_comparison_context(regression, proved["sizing"], runs_of_step),
        "snoozed": snooze_text(regression.snooze) if hasattr(regression, "snooze") else "",
        "triages": details.regression_triages(regression),
        "actions": available_actions(regression),
        "refused": refused,
        "typed": typed,
        **proved,
    }
    return render(request, "regressions/regression.html", context, status=status)


def available_actions(regression: Regression) -> list[tuple[str, str, str, str]]:
    """What a person may do now: (value, label, what it does, key)."""
    possible = {action for action, triaged in BECOMES.items() if triaged != regression.triaged}
    if regression.is_triaged_away:
        possible.discard(Triage.Action.ACKNOWLEDGE)
    labelled = [(str(action), *label) for action, label in ACTION_LABELS.items() if action in possible]
    return [*labelled, (str(Triage.Action.COMMENT), *COMMENT_LABEL)]


def _delivery_context(regression: Regression, *, imported: bool) -> dict[str, Any]:
    """Its messages, or why there is none; `channel_missing` where a channel would have made one."""
    was_announced = getattr(regression, "has_deliveries", True)
    deliveries = deliveries_of_regression(regression) if was_announced else []
    if deliveries:
        return {"deliveries": deliveries}
    channels = list(Channel.objects.filter(project=regression.project).prefetch_related("rules"))
    unasked = is_unasked(regression, [channel for channel in channels if channel.enabled])
    reason = unannounced_reason(regression, channels, imported=imported, unasked=unasked)
    return {"unannounced_reason": reason, "channel_missing": not channels and not imported}


def is_unasked(regression: Regression, channels: list[Channel]) -> bool:
    """Whether rules keep it from all of these channels; those without rules have sentences of their own."""
    if not any(channel.rules.all() for channel in channels):
        return False
    facts = rules.facts_of(regression)
    return not any(rules.wants_regression(rules.rules_of(channel), facts) for channel in channels)


def _suspect_row(regression: Regression, suspect: dict[str, Any]) -> dict[str, Any]:
    return {
        **suspect,
        "place": function_location(suspect),
        "sentence": suspect_sentence(regression, suspect),
        "called": is_called_in_step(suspect),
        "profiled": suspect.get("profiled", True),
    }


def _leading_operation(regression: Regression) -> dict[str, str]:
    """The first tensor operation and how it differs; empty where it holds no large part of what was lost."""
    first = next(iter(regression.operations), None)
    if first is None or first["share"] < LEADING_SHARE:
        return {}
    return {"name": first["operation"], "sentence": describe_operation_change(first)}


def _changed_excerpts(regression: Regression) -> list[dict[str, Any]]:
    """The changed lines of the first suspects, each with how the function's cost differs."""
    if not regression.names_commit:
        return []
    suspects = {
        (suspect.get("file"), suspect.get("function")): suspect for suspect in reversed(regression.suspects)
    }
    shown = [
        (excerpt, suspects.get((excerpt["file"], excerpt["function"]))) for excerpt in regression.excerpts
    ]
    return [
        {
            **_suspect_row(regression, suspect),
            "lines": excerpt["lines"],
            "left_out": excerpt["left_out"],
        }
        for excerpt, suspect in shown
        if suspect
    ]
