"""Filters and tags of the templates: `{% load paceline %}`. What they say comes from dashboard/sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from django import template
from django.http import QueryDict
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from dashboard.charts.sparkline import draw_sparkline, layout_sparkline
from dashboard.charts.static_svg import draw_static_svg
from dashboard.charts.theme import Figure
from dashboard.models import Commit, Project, Regression, Series, SeriesLatest
from dashboard.page_addresses import page_address
from dashboard.pull_requests import sentences as check_sentences
from dashboard.querysets.series_points import PointCommit
from dashboard.sentences.administration import audit, channels, deliveries, policy, repositories, triggers
from dashboard.sentences.administration.failed_jobs import describe_job
from dashboard.sentences.comparisons import experiments
from dashboard.sentences.formatting import change_sizes, english, metric_labels, numbers
from dashboard.sentences.measurements import boxes, disturbances, machines, run_costs, runs
from dashboard.sentences.regressions import bisections, causes, learning, regressions
from dashboard.sentences.series import doubts, limits, noise, trends

register = template.Library()

register.filter("quantity", numbers.format_quantity)
register.filter("box_sentence", boxes.describe_box)
register.filter("signed_quantity", numbers.format_signed_quantity)
register.filter("outcome_of_test", channels.outcome_of_test)
register.filter("number", numbers.format_number)
register.filter("duration", numbers.format_duration)
register.filter("percent_change", numbers.format_percent_change)
register.filter("fixed", numbers.format_fixed)
register.filter("share", numbers.format_share)
register.filter("noise_remedy", noise.describe_remedy)
for label_filter in (
    audit.describe_actor,
    audit.describe_entry,
    change_sizes.format_change,
    change_sizes.is_small_step,
    change_sizes.shown_change,
    change_sizes.shown_step,
    learning.regression_change,
    learning.regression_extent,
    learning.regression_name,
    limits.format_latest_crossing,
    limits.format_latest_limit,
    limits.violation_text,
    metric_labels.experiment_metric_label,
    change_sizes.format_levels,
    change_sizes.is_worse,
    english.lower_first,
    deliveries.masked_address,
    deliveries.shown_errors,
    metric_labels.metric_label,
    describe_job,
    regressions.regression_state_label,
    regressions.is_one_of_several_cases,
    regressions.commit_range,
    regressions.commits_in_range,
    regressions.regression_chip,
    regressions.describe_range,
    regressions.merged_words,
    regressions.withdrawal_sentence,
    regressions.describe_host_or_device,
    bisections.bisection_sentence,
    causes.cause_sentence,
    causes.leading_evidence,
    check_sentences.change_text,
    disturbances.remeasuring_sentence,
    disturbances.tainted_case_advice,
    disturbances.tainted_case_sentence,
    disturbances.waiting_sentence,
    doubts.describe_doubts,
    experiments.answer_sentence,
    experiments.asker_text,
    experiments.experiment_state_label,
    experiments.format_precision,
    experiments.purpose_label,
    experiments.reason_sentence,
    experiments.sides_text,
    repositories.repository_location,
    repositories.repository_name,
    triggers.requested_revisions,
    runs.run_state_label,
    metric_labels.series_label,
    regressions.triager_name,
    english.upper_first,
    numbers.hours_text,
    machines.held_time,
    machines.past_limit_text,
    machines.warning_advice,
    machines.warning_cause,
    machines.warning_label,
    policy.left_out_sentences,
    run_costs.seconds_text,
    trends.size_of_points,
):
    register.filter(label_filter.__name__, label_filter)

_AGO = ((86400, "d"), (3600, "h"), (60, "min"))


@register.filter
def percent_of(value: float | None) -> float:
    """0.123 -> 12.3, for the attributes of bars."""
    return 0.0 if value is None else round(100 * min(max(value, 0.0), 1.0), 2)


@register.filter("breakable")
def break_after_commas(name: object) -> SafeString:
    """A case's name, which may go on in the next line after a comma: in a table it leaves room for others."""
    return mark_safe(escape(str(name)).replace(",", ",<wbr>"))  # noqa: S308 - escaped


@register.filter("narrow")
def break_case_name(name: object) -> SafeString:
    """A case's name in the head of a narrow column: it may go on in the next line at its parameters too."""
    return mark_safe(break_after_commas(name).replace("[", "<wbr>["))  # noqa: S308 - escaped


@register.filter("ago")
def format_time_ago(moment: datetime | None) -> str:
    """`3 min ago`: short, since it stands in tables; the exact time is beside it in a title."""
    if moment is None:
        return "never"
    seconds = (timezone.now() - moment).total_seconds()
    for size, name in _AGO:
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


@register.filter("time_ago")
def mark_time_ago(moment: datetime | None) -> str:
    """How long ago, and on pointing at it the exact time."""
    if moment is None:
        return format_time_ago(None)
    exact = moment.astimezone(UTC)
    title = exact.isoformat(" ", "seconds").removesuffix("+00:00")
    # Put together here: a list has forty of them, and `date` takes ten times as long.
    return mark_safe(  # noqa: S308 - a date
        f'<time datetime="{exact.isoformat()}" title="{title} UTC">{format_time_ago(moment)}</time>'
    )


@register.filter("elapsed_until")
def format_elapsed_time(start: datetime | None, end: datetime | None) -> str:
    """From `start` to `end`, or to now where it hasn't ended."""
    if start is None:
        return numbers.DASH
    return numbers.format_duration(((end or timezone.now()) - start).total_seconds())


@register.filter
def item_of_key(mapping: Mapping[Any, Any], key: object) -> Any:
    return mapping.get(key)


@register.filter
def item_at_index(items: Sequence[Any], index: int) -> Any:
    return items[index]


@register.simple_tag
def interval_of(low: float | None, high: float | None, unit: str, beside: float | None = None) -> str:
    return numbers.format_interval(low, high, unit, beside)


@register.simple_tag(name="sparkline")
def render_sparkline(latest: SeriesLatest) -> SafeString:
    """The newest values of a series, from its row of latest states alone; without tainted ones if it can."""
    values = latest.judged_values or latest.recent
    description = ""
    if values:
        unit = latest.series.metric.unit
        low, high = (numbers.format_quantity(value, unit) for value in (min(values), max(values)))
        description = (
            f"{len(values)} newest values, between {low} and {high}" if values[1:] else f"one value, {low}"
        )
        if left_out := len(latest.recent) - len(values):
            description += f"; {left_out} tainted left out"
    return draw_sparkline(layout_sparkline(values, latest.level), description)


register.simple_tag(draw_sparkline)


def _project_of(
    context: dict[str, Any], commit: Commit | PointCommit, owner: Project | Regression
) -> Project:
    """Of points of a series the commits are read without their project, which is the page's."""
    shown = context.get("project")
    if isinstance(shown, Project) and (
        isinstance(commit, PointCommit)
        or "project_id" not in commit.__dict__
        or shown.pk == commit.project_id
    ):
        return shown
    return owner if isinstance(owner, Project) else owner.project


register.simple_tag(page_address)


@register.simple_tag(takes_context=True, name="commit_link")
def link_commit(
    context: dict[str, Any], commit: Commit | PointCommit, owner: Project | Regression
) -> SafeString:
    """The short hash of a commit, leading to its page; `owner` is asked where the page is of no project."""
    project = _project_of(context, commit, owner)
    address = page_address("commit", project.slug, commit.hash)
    full, short = escape(commit.hash), escape(commit.short)
    return mark_safe(  # noqa: S308 - escaped texts
        f'<a class="commit-link" href="{escape(address)}" title="{full}"><code>{short}</code></a>'
    )


@register.simple_tag
def list_series(listed: Iterable[Series], shown: Series) -> SafeString:
    """Links to a hundred series as items of a list: one by one in a template they take as long as a chart."""
    current = {shown.pk: ' aria-current="page"'}
    items = (
        f'<li><a href="{page_address("series", series.pk)}"{current.get(series.pk, "")}>'
        f"{escape(metric_labels.series_label(series))}</a></li>"
        for series in listed
    )
    return mark_safe("".join(items))  # noqa: S308 - escaped names


@register.simple_tag(takes_context=True)
def with_query(context: dict[str, Any], **changed: object) -> str:
    """The page's own query string with some names changed; an empty value takes a name out."""
    query: QueryDict = context["request"].GET.copy()
    for name, value in changed.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = str(value)
    return "?" + query.urlencode()


@register.simple_tag(name="figure")
def embed_figure(drawn: str, name: str) -> SafeString:
    """A figure's JSON in the page. Its `<`, `>` and `/` are escaped, so no text in it can end the tag."""
    if any(forbidden in drawn for forbidden in "<>"):
        raise ValueError(f"figure {name} is not escaped for a script tag")
    return mark_safe(f'<script type="application/json" id="figure-{name}">{drawn}</script>')  # noqa: S308


@register.filter
def static_svg(drawn: Figure | None) -> SafeString:
    """The figure as SVG, until the script draws it, and where none does; its texts are escaped there."""
    return mark_safe(draw_static_svg(drawn) if drawn else "")  # noqa: S308


@register.filter
def quoted_code(text: str) -> SafeString:
    """What stands between backticks becomes code."""
    parts = text.split("`")
    return mark_safe("".join(map(format_html, ("{}", "<code>{}</code>") * len(parts), parts)))  # noqa: S308
