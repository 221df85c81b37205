"""A series, a regression or a run as a picture, and the badge of a series, out of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from dashboard.alerts.pictures import draw_regression
from dashboard.charts.phases import Phase
from dashboard.charts.pictures import badge, phases_picture, step_picture, trend_picture
from dashboard.charts.pictures.canvas import PngCanvas, SvgCanvas
from dashboard.charts.pictures.trend_picture import DrawnLevel, DrawnPoint, TrendWords
from dashboard.models import Change, Project, Regression, Run, Series
from dashboard.querysets import series as series_queries
from dashboard.querysets.regressions import changes_by_series, regressions_with_related
from dashboard.querysets.run_points import points_of_run
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.series_points import SeriesPoint, newest_points, newest_untainted
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_change_size, is_worse, shown_change
from dashboard.sentences.formatting.metric_labels import series_and_case, series_label
from dashboard.sentences.regressions.regressions import regression_state_label

# Its name at the end of an address -> what it is.
KINDS = ("svg", "png")
# A PNG is often shown larger, on dense screens and as a preview of 1200 by 630.
ENLARGED = 2
POINTS = 200

Subject = Series | Regression | Run


@dataclass(frozen=True, slots=True)
class Picture:
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class StatusBadge:
    """How a series stands, in words and in the colour of a badge."""

    words: str
    colour: str

    @property
    def is_bad(self) -> bool:
        return self.colour == badge.BAD


def project_of(subject: Subject) -> Project:
    return subject.project if isinstance(subject, Regression) else subject.case.project


def picture_of(subject: Subject, kind: str) -> Picture:
    """`kind` is one of KINDS."""
    if isinstance(subject, Regression):
        return _draw_step(subject, kind)
    if isinstance(subject, Run):
        return _draw_phases(subject, kind)
    return _draw_trend(subject, kind)


def describe_subject(subject: Subject) -> tuple[str, str]:
    """(title, sentence) of a preview, out of what is loaded with the subject."""
    if isinstance(subject, Regression):
        case, state = subject.series.case, regression_state_label(subject).capitalize()
        return (
            f"{series_label(subject.series)} of {case}: {format_change_size(subject)}",
            f"{state}, since {subject.blamed.short} in {subject.project}.",
        )
    if isinstance(subject, Run):
        return f"{subject.case} at {subject.commit.short}", f"A run of {subject.case.project}."
    latest = getattr(subject, "latest", None)
    newest = numbers.format_quantity(latest.shown_value if latest else None, subject.metric.unit)
    return series_and_case(subject), f"{newest} in {subject.case.project}."


def badge_of_series(series: Series, label: str = "") -> bytes:
    """`label` stands on its left instead of what the series is of."""
    latest = getattr(series, "latest", None)
    text = label or f"{series.case} {series_label(series)}"
    if latest is None:
        return badge.draw_badge(text, "not measured", badge.UNKNOWN)
    status = status_of_series(series)
    newest = newest_untainted(series)
    value = numbers.format_quantity(newest.value if newest else latest.value, series.metric.unit)
    shown = f"{value} · {status.words}" if status.colour != badge.GOOD else value
    return badge.draw_badge(text, shown, status.colour)


def status_of_series(series: Series) -> StatusBadge:
    """What an open regression says of it, else its limit, else whether it is judged at all."""
    change = changes_by_series(series.case.project, [series.pk]).get(series.pk)
    if change is not None and change.regression_id is not None:
        regression = Regression.objects.select_related("first_bad", "culprit").get(pk=change.regression_id)
        confirmed = regression.state == Regression.State.CONFIRMED
        words = f"{format_change_size(shown_change(change))} since {regression.blamed.short}"
        return StatusBadge(
            words if confirmed else f"{words} ({regression_state_label(regression)})",
            badge.BAD if confirmed else badge.DOUBTFUL,
        )
    latest = getattr(series, "latest", None)
    limit = latest.limit if latest is not None else None
    if limit is not None and limit.crossed and not limit.tainted:
        return StatusBadge("beyond its limit", badge.BAD)
    # Nothing is said of it, good or bad: that no regression is open is no news.
    if latest is not None and latest.is_tainted:
        return StatusBadge("not judged: its runs are tainted", badge.UNKNOWN)
    if latest is not None and latest.level is None:
        return StatusBadge("not judged yet", badge.UNKNOWN)
    return StatusBadge("no open regression", badge.GOOD)


def make_canvas(kind: str, width: int, height: int, title: str) -> SvgCanvas | PngCanvas:
    return SvgCanvas(width, height, title) if kind == "svg" else PngCanvas(width, height, ENLARGED)


def _content_type(kind: str) -> str:
    return SvgCanvas.content_type if kind == "svg" else PngCanvas.content_type


def _draw_trend(series: Series, kind: str) -> Picture:
    title = series_and_case(series)
    canvas = make_canvas(kind, trend_picture.WIDTH, trend_picture.HEIGHT, title)
    points = newest_points(series, POINTS)
    if not points:
        return Picture(trend_picture.draw_empty_picture(canvas, title), _content_type(kind))
    changes = series_queries.changes_between(series, points[0].position, points[-1].position)
    changes = [change for change in changes if not change.is_move]
    status = status_of_series(series)
    newest = next((point for point in reversed(points) if not point.tainted), points[-1])
    words = TrendWords(
        title=title,
        newest=numbers.format_quantity(newest.value, series.metric.unit),
        verdict=status.words,
        is_bad=status.is_bad,
        ends=(_name_commit(points[0]), _name_commit(points[-1])),
    )
    drawn = [DrawnPoint(row.position, row.value, row.low, row.high, row.tainted) for row in points]
    levels = _find_levels(series, changes, points)
    body = trend_picture.draw_trend_picture(canvas, drawn, levels, series.metric.unit, words)
    return Picture(body, _content_type(kind))


def _name_commit(point: SeriesPoint) -> str:
    commit = point.commit
    return f"{commit.short} · {commit.committed_at:%Y-%m-%d}"


def _find_levels(series: Series, changes: list[Change], points: list[SeriesPoint]) -> list[DrawnLevel]:
    """The stored levels between the changes; without a change the current one."""
    first, last = points[0].position, points[-1].position
    if not changes:
        latest = getattr(series, "latest", None)
        level = latest.level if latest else None
        return [DrawnLevel(first, last, level, is_worse=False)] if level is not None else []
    edges = [first, *(change.position for change in changes), last]
    values = [changes[0].before, *(change.after for change in changes)]
    worse = [False, *(is_worse(change) for change in changes)]
    return [
        DrawnLevel(start, end, value, is_worse=bad)
        for (start, end), value, bad in zip(pairwise(edges), values, worse, strict=True)
    ]


def _draw_step(regression: Regression, kind: str) -> Picture:
    full = regressions_with_related().get(pk=regression.pk)
    title = describe_subject(full)[0]
    canvas = make_canvas(kind, step_picture.WIDTH, step_picture.HEIGHT, title)
    body = draw_regression(full, canvas)
    if not body:
        body = trend_picture.draw_empty_picture(
            make_canvas(kind, trend_picture.WIDTH, trend_picture.HEIGHT, title), title
        )
    return Picture(body, _content_type(kind))


def _draw_phases(run: Run, kind: str) -> Picture:
    full = runs_with_related().get(pk=run.pk)
    title = describe_subject(full)[0]
    canvas = make_canvas(kind, phases_picture.WIDTH, phases_picture.HEIGHT, title)
    points = [(point.metric, point.phase, point.value) for point in points_of_run(run.pk)]
    steps = [value for name, phase, value in points if name == "step_time" and not phase]
    totals = {phase: value for name, phase, value in points if name == "phase_time"}
    # A document's points hold each phase's own time alone.
    totals = totals or add_nested_times(
        {phase: value for name, phase, value in points if name == "phase_self_time"}
    )
    whole = steps[0] if steps else sum(time for path, time in totals.items() if "/" not in path)
    phases = [Phase(path, time, time, time / whole if whole else 0.0) for path, time in totals.items()]
    return Picture(phases_picture.draw_phases_picture(canvas, phases, whole, title), _content_type(kind))


def add_nested_times(own: dict[str, float]) -> dict[str, float]:
    """The time of each phase with that of the phases nested in it; a path's every part is a phase."""
    totals: dict[str, float] = {}
    for path, time in own.items():
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            totals[above] = totals.get(above, 0.0) + time
    return totals
