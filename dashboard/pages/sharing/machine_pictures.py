"""How fast a machine was over time as pictures for other places: its calibration loop and its sentinels.

They show what the page shows to the same visitor: of private projects nothing to others than their members.
"""

from __future__ import annotations

from statistics import median

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of
from dashboard.access.visitors import Visitor
from dashboard.charts import theme
from dashboard.models import Machine
from dashboard.pages.machines.machine import draw_machine_calibration, draw_machine_sentinels, sentinel_lines
from dashboard.pages.sharing.chart_pictures import send_figure
from dashboard.querysets import machines as machine_queries
from dashboard.sentences.formatting import numbers


@require_safe
def machine_calibration_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    machine = get_object_or_404(Machine, pk=pk)
    found = machine_queries.calibrated_runs(machine, visitor_of(request).project_visibility)
    figure = draw_machine_calibration(found)
    caption = "No run of it has timed the calibration loop"
    if figure:
        typical = numbers.format_quantity(median(row.seconds for row in found), "s")
        caption = f"The calibration loop in each run, median {typical}; a cross: its speed changed in the run"
    return _send_to(request, figure, machine, caption, kind)


@require_safe
def machine_sentinels_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    machine = get_object_or_404(Machine, pk=pk)
    visibility = visitor_of(request).project_visibility
    figure = draw_machine_sentinels(
        sentinel_lines(machine_queries.sentinels_with_points(machine, visibility))
    )
    caption = "None of its sentinels was measured"
    if figure:
        # Beside the page's figure a table names the lines.
        figure["layout"]["showlegend"] = True
        caption = "Sentinels: the same code, measured again; hollow marks are tainted and aren't judged"
    return _send_to(request, figure, machine, caption, kind)


def _send_to(
    request: HttpRequest, figure: theme.Figure | None, machine: Machine, caption: str, kind: str
) -> HttpResponse:
    # Only what everybody sees may be kept for others.
    return send_figure(figure, machine.name, caption, kind, public=visitor_of(request) == Visitor())
