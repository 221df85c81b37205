"""The flame graph of a run's profile, and of the difference of two, as pictures for other places."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from dashboard.charts.difference_icicle import draw_difference
from dashboard.charts.pictures import flame_picture
from dashboard.charts.pictures.flame_picture import FlameBlock
from dashboard.comparisons.comparing import Comparison
from dashboard.models import Project
from dashboard.pages.comparisons.compare import answer_comparison
from dashboard.pages.paging import parse_whole_number
from dashboard.pages.runs.profile import icicle_context
from dashboard.pages.sharing.shared_pictures import is_public, send_picture
from dashboard.pictures import KINDS, Picture
from dashboard.pictures.drawing import make_canvas
from dashboard.querysets import runs as run_queries

MOST_FRAMES = 10_000_000


@require_safe
def run_flame(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """`frame` and `width` are those of the run's page."""
    run = get_object_or_404(run_queries.runs_with_related(), pk=pk)
    document = run_queries.document_without_telemetry(run) or {}
    found = icicle_context(document, *_read_view(request))
    blocks = flame_picture.blocks_of_profile(found["icicle"]) if found else []
    title = f"{run.case} at {run.commit.short}"
    measure = "calls" if found and found["by_calls"] else "time"
    caption = (
        f"Functions of a step by {measure}, callers on top" if blocks else "No stacks are kept of this run"
    )
    return _send_flame(blocks, title, caption, kind, run.case.project)


@require_safe
def difference_flame(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    """The address is the comparison's."""

    def draw(comparison: Comparison) -> HttpResponse:
        compared = comparison.chosen
        number, by_calls = _read_view(request)
        found = draw_difference(compared.profile.stacks, number, by_calls=by_calls) if compared else None
        blocks = flame_picture.blocks_of_difference(found) if found else []
        title = f"{comparison.request.base} to {comparison.request.head} in {comparison.project}"
        caption = "No stacks are kept of both sides"
        if found:
            caption = (
                f"Red: more {'calls' if found.by_calls else 'time'} at the head; blue: less; grey: alike"
            )
        return _send_flame(blocks, title, caption, kind, comparison.project)

    return answer_comparison(request, slug, draw)


def _read_view(request: HttpRequest) -> tuple[int, bool]:
    return parse_whole_number(request, "frame", 0, MOST_FRAMES), request.GET.get("width") == "calls"


def _send_flame(
    blocks: Sequence[FlameBlock], title: str, caption: str, kind: str, project: Project
) -> HttpResponse:
    if kind not in KINDS:
        raise Http404(f"A picture is one of {', '.join(KINDS)}.")
    canvas = make_canvas(kind, flame_picture.WIDTH, flame_picture.picture_height(blocks), title)
    body = flame_picture.draw_flame_picture(canvas, blocks, title, caption)
    return send_picture(Picture(body, canvas.content_type), public=is_public(project))
