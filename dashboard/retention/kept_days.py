"""How long a project keeps each kind of detail: by its policy within the site's bounds, else by the site."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from dashboard.models import Project
from dashboard.policy.effective import KEPT_KINDS, EffectivePolicy, Origin
from dashboard.policy.project_policy import project_policy


@dataclass(frozen=True, slots=True)
class KeptDays:
    """`days` that runs keep a kind of detail, 0 for ever; `origin` says it.

    `asked`: what the policy asks for, where the site's bounds allow another number only.
    """

    kind: str
    days: int
    origin: Origin
    asked: int | None = None


def kept_days(project: Project) -> tuple[KeptDays, ...]:
    """One row for each kind of detail."""
    policy = project_policy(project)
    return tuple(_days_of_kind(kind, policy) for kind in KEPT_KINDS)


def _days_of_kind(kind: str, policy: EffectivePolicy) -> KeptDays:
    asked = policy.keep_days.get(kind)
    if asked is None:
        return KeptDays(kind, getattr(settings, f"PACELINE_KEEP_{kind.upper()}_DAYS"), Origin.DEFAULT)
    allowed = within_bounds(asked)
    return KeptDays(kind, allowed, policy.origins[f"keep.{kind}"], None if allowed == asked else asked)


def within_bounds(days: int) -> int:
    """What the site allows a project instead: whoever may push to its branch may write its policy."""
    least, most = settings.PACELINE_KEEP_LEAST_DAYS, settings.PACELINE_KEEP_MOST_DAYS
    if most and (days == 0 or days > most):
        return max(most, least)
    return max(days, least) if days else 0
