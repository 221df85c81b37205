"""Points -> changes -> regressions, each with what explains it. See docs/regressions.md."""

from dashboard.regressions.judging import Outcome, judge_run, redetect

__all__ = ["Outcome", "judge_run", "redetect"]
