"""How a series of measurements is judged. Numpy and scipy only: no Django, no database, pure functions."""

from dashboard.detection.budget import Budget, Decision
from dashboard.detection.changepoints import detect, suspect
from dashboard.detection.comparison import compare
from dashboard.detection.identity import paired, same_change
from dashboard.detection.judgement import judge
from dashboard.detection.parts import steps_of_parts
from dashboard.detection.power import minimum_detectable_effect
from dashboard.detection.relevance import EFFECT_FLOORS, relevant
from dashboard.detection.rules import ALARM, SUSPICION
from dashboard.detection.surprise import surprise
from dashboard.detection.types import Change, Comparison, Point, Series
from dashboard.detection.watch import Watch

__all__ = [
    "ALARM",
    "EFFECT_FLOORS",
    "SUSPICION",
    "Budget",
    "Change",
    "Comparison",
    "Decision",
    "Point",
    "Series",
    "Watch",
    "compare",
    "detect",
    "judge",
    "minimum_detectable_effect",
    "paired",
    "relevant",
    "same_change",
    "steps_of_parts",
    "surprise",
    "suspect",
]
