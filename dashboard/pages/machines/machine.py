"""One machine: what it does, what a person may do with it, and how far its measurements can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import hosts
from dashboard.access import AuditAction, record_action, visitor_of
from dashboard.charts import theme
from dashboard.charts.machine_history import (
    CalibrationMark,
    SentinelLine,
    SentinelMark,
    draw_calibration,
    draw_sentinels,
)
from dashboard.models import Machine
from dashboard.pages.noise.machine_noise import ENOUGH_VALUES, LATER, SOON, measure_all
from dashboard.querysets import machines as machine_queries
from dashboard.querysets.machines import CalibratedRun
from dashboard.querysets.noise import newest_points_on
from dashboard.querysets.visibility import ProjectVisibility
from dashboard.sentences.formatting import numbers
from dashboard.sentences.measurements import machines as sentences

MOST_CASES = 12

ACTIONS = {
    "pause": (hosts.pause_machine, "{} is paused."),
    "drain": (hosts.drain_machine, "{} is draining: its agent ends once nothing is measured."),
    "resume": (hosts.resume_machine, "{} gets work again."),
    "retire": (hosts.retire_machine, "{} is retired: its token is revoked."),
}
# Which buttons a machine in each state has, in their order; that which retires it stands apart.
OFFERED = {
    Machine.State.ACTIVE: ("pause", "drain"),
    Machine.State.PAUSED: ("resume", "drain"),
    Machine.State.DRAINING: ("resume", "pause"),
    Machine.State.RETIRED: (),
}
# A limit that the code crosses says nothing about the machine.
NO_DOUBTS = ("limit_crossed", "limit_not_measured")


@require_safe
def machine_page(request: HttpRequest, pk: int) -> HttpResponse:
    machine = get_object_or_404(Machine.objects.select_related("pool"), pk=pk)
    measured, counts = machine_queries.count_warning_codes(machine, timezone.now())
    visibility = visitor_of(request).project_visibility
    runs = machine_queries.newest_machine_runs(machine, visibility)
    calibrated = machine_queries.calibrated_runs(machine, visibility)
    newest = [run.configuration_id for run in runs] + [row.configuration for row in calibrated[::-1]]
    context = {
        **_status_context(machine, visibility),
        "hardware": sentences.describe_hardware(machine.fingerprint),
        "waiting": machine_queries.work_waiting_by_pool(timezone.now()).get(machine.pool.name),
        "runs": runs,
        "measured": measured,
        "doubts": [row for row in counts if row.code not in NO_DOUBTS],
        "days": machine_queries.DOUBTS_WITHIN.days,
        **_calibration_context(calibrated),
        **_noise_context(machine, list(dict.fromkeys(newest))),
        **_sentinel_context(machine, visibility),
    }
    return render(request, "machines/machine.html", context)


@require_safe
def machine_status_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """What it does, asked for again and again; the whole page, once its status is another."""
    machine = get_object_or_404(Machine.objects.select_related("pool"), pk=pk)
    context = _status_context(machine, visitor_of(request).project_visibility)
    if context["status"] != request.GET.get("seen"):
        return HttpResponseClientRefresh()
    return render(request, "machines/status.html", context)


def _status_context(machine: Machine, visibility: ProjectVisibility) -> dict[str, Any]:
    work = machine_queries.work_by_machine([machine], visibility).get(machine.pk)
    status = sentences.machine_status(machine, bool(work), timezone.now())
    return {
        "machine": machine,
        "work": work,
        "status": status,
        "label": sentences.STATUS_LABELS[status],
        "sentence": sentences.status_sentence(machine, status, bool(work)),
        "live": status != "retired",
        "actions": [
            (action, action.capitalize(), sentences.ACTION_SENTENCES[action])
            for action in OFFERED[Machine.State(machine.state)]
        ],
        "retiring": sentences.ACTION_SENTENCES["retire"],
    }


def _noise_context(machine: Machine, configurations: Sequence[int]) -> dict[str, Any]:
    """What step each of the cases that it measured last would show there, by their `configurations`."""
    found = newest_points_on(machine, configurations[:MOST_CASES], machine_queries.SENTINEL_METRIC)
    return {
        "cases": measure_all(found, timezone.now()),
        "more_cases": len(configurations) > MOST_CASES,
        "enough": ENOUGH_VALUES,
        "soon": SOON,
        "later": LATER,
        "noise_metric": machine_queries.SENTINEL_METRIC,
    }


def _calibration_context(found: Sequence[CalibratedRun]) -> dict[str, Any]:
    """The drawing of the calibration loop over the newest runs, and what to read from it."""
    figure = draw_machine_calibration(found)
    if figure is None:
        return {"calibration": "", "calibrated": 0}
    return {
        "calibration": theme.figure_json(figure),
        "calibrated": len(found),
        "typical": numbers.format_quantity(median(row.seconds for row in found), "s"),
        "drifted": sum(row.drifted for row in found),
    }


def draw_machine_calibration(found: Sequence[CalibratedRun]) -> theme.Figure | None:
    """None where no run timed the loop."""
    marks = [
        CalibrationMark(row.claimed_at, row.seconds, row.drifted, row.run, reverse("run", args=[row.run]))
        for row in found
    ]
    return draw_calibration(marks) if marks else None


def _sentinel_context(machine: Machine, visibility: ProjectVisibility) -> dict[str, Any]:
    """(sentinel, its line) of those that were measured last, and the drawing of all of them."""
    sentinels = machine_queries.sentinels_with_points(machine, visibility)
    lines = sentinel_lines(sentinels)
    figure = draw_machine_sentinels(lines)
    return {
        "sentinels": [_sentinel_row(*found) for found in zip(sentinels, lines, strict=True)],
        "sentinel_figure": theme.figure_json(figure) if figure else "",
    }


def draw_machine_sentinels(lines: Sequence[SentinelLine]) -> theme.Figure | None:
    """None where none of them was measured."""
    drawn = [line for line in lines if line.marks]
    return draw_sentinels(drawn) if drawn else None


def sentinel_lines(sentinels: Sequence[Any]) -> list[SentinelLine]:
    return [sentinel_line(sentinel, hue) for hue, sentinel in enumerate(sentinels)]


def sentinel_line(sentinel: Any, hue: int) -> SentinelLine:
    """Of a sentinel that has its `newest_points`."""
    marks = [
        SentinelMark(
            at=datetime.fromtimestamp(point["at"], UTC),
            seconds=point["value"],
            tainted=point["tainted"],
            run=point["run"],
            url=reverse("run", args=[point["run"]]),
        )
        for point in reversed(sentinel.newest_points)
        if point["value"] > 0
    ]
    untainted = [mark.seconds for mark in marks if not mark.tainted] or [mark.seconds for mark in marks]
    return SentinelLine(str(sentinel.case), hue, median(untainted) if untainted else 0.0, marks)


def _sentinel_row(sentinel: Any, line: SentinelLine) -> dict[str, Any]:
    newest = line.marks[-1] if line.marks else None
    moved = numbers.format_percent_change(sentinel.ratio) if sentinel.ratio else ""
    return {
        "sentinel": sentinel,
        "hue": line.hue + 1,
        "count": len(line.marks),
        "level": line.level or None,
        "newest": newest,
        "against": numbers.format_percent_change(newest.seconds / line.level) if newest else numbers.DASH,
        "moved": moved,
    }


@require_POST
def change_machine_state(request: HttpRequest, pk: int) -> HttpResponse:
    """The form's field: `action`, a key of ACTIONS."""
    machine = get_object_or_404(Machine.objects.select_related("pool"), pk=pk)
    address = machine.get_absolute_url()
    action = request.POST.get("action", "")
    if action not in ACTIONS:
        messages.error(request, f"A machine can't be asked to {action[:40] or 'do nothing'}.")
    elif machine.state == Machine.State.RETIRED:
        messages.error(request, f"{machine.name} is retired: it may join again, with a new code.")
    else:
        change, success_text = ACTIONS[action]
        with transaction.atomic():
            change(machine)
            about = {"name": machine.name, "change": action}
            record_action(visitor_of(request), AuditAction.MACHINE_CHANGED, None, machine, **about)
        messages.success(request, success_text.format(machine.name))
    return redirect(address)
