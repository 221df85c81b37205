"""Which phase and functions explain a regression, once its proof has ended.

Only then are the runs at both sides of its commit there, and is it known which other proved steps bound the
levels beside it.
"""

from __future__ import annotations

from dashboard.models import Change, Project, Regression
from dashboard.regressions import blame, settling
from dashboard.regressions.relevance import headline


def explain_proved(project: Project, regression: Regression) -> None:
    """Attribute a confirmed regression, and the one before it: what it was blamed for may be this one's."""
    if regression.state != Regression.State.CONFIRMED:
        return
    same = project.regressions.filter(
        series=regression.series_id,
        state=Regression.State.CONFIRMED,
        withdrawn_at=None,
        first_bad__branch=regression.first_bad.branch,
        first_bad__position__lt=regression.first_bad.position,
    )
    before = same.select_related("series__metric", "first_bad", "last_good").order_by("-first_bad__position")
    for one in filter(None, [before.first(), regression]):
        # Of a limit that was crossed no step is known.
        if not one.limit:
            blame.attribute(project, one, head_of(one), {})


def head_of(regression: Regression) -> Change:
    """The change that speaks for it; where only interleaved runs saw the step, one that isn't stored."""
    if members := settling.speaking_of(regression):
        return headline(members)
    return Change(
        series=regression.series,
        last_good=regression.last_good,
        first_bad=regression.first_bad,
        position=regression.first_bad.position,
        direction=Change.Direction.REGRESSION,
        before=regression.before,
        after=regression.after,
        ratio=regression.ratio,
    )
