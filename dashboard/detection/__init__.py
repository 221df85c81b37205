"""How a series of measurements is judged. Numpy and scipy only: no Django, no database, pure functions."""

from dashboard.detection.changepoints import detect, suspect
from dashboard.detection.comparison import compare_differences, compare_samples
from dashboard.detection.false_alarm_budget import FalseAlarmBudget
from dashboard.detection.guards import GuardedPoint, judge_guarded
from dashboard.detection.judgement import judge_series
from dashboard.detection.many_intervals import Interval, find_discoveries
from dashboard.detection.parts import steps_of_parts
from dashboard.detection.relevance import EFFECT_FLOORS
from dashboard.detection.shift_p_value import shift_p_value
from dashboard.detection.types import Change, Comparison, Point, Series

__all__ = [
    "EFFECT_FLOORS",
    "Change",
    "Comparison",
    "FalseAlarmBudget",
    "GuardedPoint",
    "Interval",
    "Point",
    "Series",
    "compare_differences",
    "compare_samples",
    "detect",
    "find_discoveries",
    "judge_guarded",
    "judge_series",
    "shift_p_value",
    "steps_of_parts",
    "suspect",
]
