"""How a series of measurements is judged. Numpy and scipy only: no Django, no database, pure functions."""

from dashboard.detection.changepoints import detect, suspect
from dashboard.detection.comparison import compare
from dashboard.detection.judgement import judge
from dashboard.detection.power import minimum_detectable_effect
from dashboard.detection.relevance import EFFECT_FLOORS, relevant
from dashboard.detection.types import Change, Comparison, Point, Series

__all__ = [
    "EFFECT_FLOORS",
    "Change",
    "Comparison",
    "Point",
    "Series",
    "compare",
    "detect",
    "judge",
    "minimum_detectable_effect",
    "relevant",
    "suspect",
]
