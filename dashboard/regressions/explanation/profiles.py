"""Which run's profile stands for a level: the nearest one that nothing has slowed while it was taken.

A profile is a few steps long, apart from the measured window. What slows a machine for a tenth of a second
slows all of it, and then every function of that run seems to have changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.models import Document, Point
from dashboard.profile_tallies import SLOWED_FACTOR, profiled_seconds
from dashboard.regressions.explanation.suspects import Profile

# Of a level's nearest runs: older ones may hold functions that the commits in between have changed.
NEAREST = 3


def profile_of_level(runs: Sequence[int]) -> Profile | None:
    """The profile of one of a level's runs, nearest to the step first; None where none has one."""
    near = list(runs[:NEAREST])
    rows = Document.objects.filter(run__in=near, body__profile__isnull=False)
    profiles: dict[int, Profile] = dict(rows.values_list("run_id", "body__profile"))
    known = [run for run in near if profiles.get(run)]
    times = step_times(known)
    paces = {run: profiled_seconds(profiles[run]) / times[run] for run in known if times.get(run)}
    most = SLOWED_FACTOR * min(paces.values(), default=0.0)
    unslowed = (run for run in known if run in paces and paces[run] <= most)
    chosen = next(unslowed, next(iter(known), None))
    return profiles[chosen] if chosen else None


def step_times(runs: Sequence[int]) -> dict[int, float]:
    """What a step of the measured window took in each run that says so."""
    points = Point.objects.filter(run__in=runs, series__metric__name="step_time", series__phase="")
    return dict(points.filter(value__gt=0).values_list("run_id", "value"))
