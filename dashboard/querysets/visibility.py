"""Which projects a visitor may view: the same rule as a queryset, and as part of compiled queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from dashboard.models import Membership, Project
from dashboard.postgresql.compiled_queries import Parameter


@dataclass(frozen=True, slots=True)
class VisibilityRule:
    """Which projects one may view, whoever it is: `every` one, or the public ones and, where `own`, those of
    which one is a member. `by_token`: of these the token's alone.
    """

    every: bool
    own: bool
    by_token: bool

    def projects(self, visitor: Any, token_project: Any) -> QuerySet[Project]:
        """Both are keys, or stand for keys in a query."""
        there = Project.objects.filter(removed_slug="")
        if not self.every:
            visible = Q(visibility=Project.Visibility.PUBLIC)
            if self.own:
                visible |= Q(pk__in=Membership.objects.filter(user=visitor).values("project"))
            there = there.filter(visible)
        return there.filter(pk=token_project) if self.by_token else there

    def given_projects(self) -> QuerySet[Project]:
        """For a query that is compiled once: with the values of ProjectVisibility still to be given."""
        return self.projects(Parameter("visitor"), Parameter("token_project"))


@dataclass(frozen=True, slots=True)
class ProjectVisibility:
    """The projects that a visitor sees: `visitor` is a person's key, `token_project` that of the token's."""

    rule: VisibilityRule
    visitor: int | None
    token_project: int | None

    @property
    def values(self) -> dict[str, int | None]:
        return {"visitor": self.visitor, "token_project": self.token_project}

    def rows(self) -> QuerySet[Project]:
        return self.rule.projects(self.visitor, self.token_project)
