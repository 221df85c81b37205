from __future__ import annotations

from dashboard.models import Run
from dashboard.regressions import judge_run


def judge_again(run: int) -> None:
    """Judge a run as if nobody had judged it before."""
    Run.objects.filter(pk=run).update(judged_at=None)
    judge_run(run)
