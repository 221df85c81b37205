"""Crossed limits, told like regressions: the manifest's bound is the judgement, so no proof is needed."""

from __future__ import annotations

from django.db.models import Q

from dashboard.models import Limit, Project, Regression, Run, Series
from dashboard.regressions import branches

# As many bounds are said in one line as it holds.
LONGEST = 300

RELATED = ("series__metric", "series__case", "run__commit__project")


def find(project: Project, run: Run) -> list[Regression]:
    """Open a regression for each limit that this run is the first to cross; close those that it keeps again.

    Runs of other branches are judged by their own. The project is locked. Returns what was opened.
    """
    rows = Limit.objects.filter(run=run, tainted=False).select_related(*RELATED).order_by("series_id")
    opened = [open_for(project, row) for row in rows if row.crossed and is_first(row)]
    for row in rows:
        if not row.crossed:
            close(row)
    return [one for one in opened if one]


def is_first(row: Limit) -> bool:
    """Was the limit kept, or not measured, at the commit before this one?"""
    earlier = before(row)
    return earlier is None or not earlier.crossed


def before(row: Limit) -> Limit | None:
    """How the newest earlier commit stood to the same limit: of the branch, or before the branch began."""
    line = branches.of(row.run.commit.project, row.run.commit.branch)
    same = Limit.objects.filter(
        line.holds("run__commit"), series=row.series_id, tainted=False, position__lt=row.position
    )
    return same.select_related("run__commit").order_by("-position", "-pk").first()


def open_for(project: Project, row: Limit) -> Regression | None:
    """The regression of the commit that crossed it; None where there is one, which then says so too."""
    earlier = before(row)
    bound = broken(row)
    regression, new = Regression.objects.get_or_create(
        project=project,
        first_bad=row.run.commit,
        defaults={
            "last_good": earlier.run.commit if earlier else row.run.commit,
            "state": Regression.State.CONFIRMED,
            "series": row.series,
            "before": earlier.value if earlier else bound,
            "after": row.value,
            "ratio": row.value / earlier.value if earlier and earlier.value else None,
            "limit": sentence(row),
        },
    )
    if not new and f"{row.series} is " not in regression.limit:
        said = "; ".join(text for text in (regression.limit, sentence(row)) if text)
        if len(said) <= LONGEST:
            regression.limit = said
            regression.save(update_fields=["limit", "updated_at"])
    return regression if new else None


def close(row: Limit) -> None:
    """Name the commit that keeps the limit again."""
    Regression.objects.filter(
        Q(first_bad__position__lt=row.position),
        series=row.series_id,
        first_bad__branch=row.run.commit.branch,
        recovered_by=None,
        changes=None,
    ).exclude(limit="").update(recovered_by=row.run.commit)


def broken(row: Limit) -> float:
    """The bound that was crossed."""
    bounds = [bound for bound in (row.minimum, row.maximum) if bound is not None]
    return min(bounds) if row.value < min(bounds) else max(bounds)


def sentence(row: Limit) -> str:
    """`gpu_utilization is 71 %, its limit is at least 80 %`."""
    bound, unit = broken(row), unit_of(row.series)
    word = "at least" if row.value < bound else "at most"
    return f"{row.series} is {row.value:.4g}{unit}, its limit is {word} {bound:.4g}{unit}"


def unit_of(series: Series) -> str:
    return "" if series.metric.unit == "1" else f" {series.metric.unit}"
