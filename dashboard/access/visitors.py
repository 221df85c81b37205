"""Who asks, and what they may do: a person, a token that a person made, or nobody that we know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from dashboard.access.addresses import request_address
from dashboard.access.tokens import PREFIX, use_token
from dashboard.models import Action, ApiToken, Membership, Project
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule

Role = Membership.Role

ALLOWED: dict[str, frozenset[Action]] = {
    Role.VIEWER: frozenset({Action.VIEW}),
    Role.OPERATOR: frozenset({Action.VIEW, Action.OPERATE}),
    Role.ADMIN: frozenset({Action.VIEW, Action.OPERATE, Action.ADMINISTER}),
}
# Who has this permission of Django's is an operator of every project, also of private ones.
OPERATOR_PERMISSION = "dashboard.add_trigger"
OPERATOR_ACTIONS = ALLOWED[Role.OPERATOR]
_MEMBERSHIPS_OF_USER = CompiledQuery(lambda: Membership.objects.filter(user=Parameter("user")))


@dataclass(frozen=True)
class Visitor:
    """`user` is the person who is signed in or who made the `token`; None for an anonymous one."""

    user: User | None = None
    token: ApiToken | None = None
    address: str | None = None

    def may(self, action: str, project: Project | None = None, permission: str = "") -> bool:
        """`permission`: of Django's; where given, it allows the same in every project that they may view."""
        if self.token is not None and not _is_public(action, project):
            covered = project is not None and self.token.project_id == project.pk
            if not covered or action not in self.token.actions:
                return False
        if action == Action.ADMINISTER_SITE:
            return self._has_permission(permission)
        return project is not None and self._person_may(Action(action), project, permission)

    def _person_may(self, action: Action, project: Project, permission: str) -> bool:
        if _is_public(action, project):
            return True
        if self.user is None or not self.user.is_active:
            return False
        if self.user.is_superuser or action in ALLOWED.get(self.roles.get(project.pk, ""), ()):
            return True
        if action in OPERATOR_ACTIONS and self._has_permission(OPERATOR_PERMISSION):
            return True
        return self._has_permission(permission) and self._person_may(Action.VIEW, project, "")

    def _has_permission(self, permission: str) -> bool:
        if self.user is None or not self.user.is_active:
            return False
        return self.user.is_superuser or bool(permission and self.user.has_perm(permission))

    @cached_property
    def roles(self) -> dict[int, str]:
        """By the project's key."""
        rows = _MEMBERSHIPS_OF_USER.read_rows(user=self.user.pk) if self.user else []
        return {row.project_id: row.role for row in rows}

    @property
    def project_visibility(self) -> ProjectVisibility:
        """What lists that span projects are filtered by, for queries that are compiled once."""
        rule = VisibilityRule(
            every=self._has_permission(OPERATOR_PERMISSION),
            own=self.user is not None,
            by_token=self.token is not None,
        )
        user, token = self.user, self.token
        return ProjectVisibility(rule, user.pk if user else None, token.project_id if token else None)

    def visible_projects(self) -> QuerySet[Project]:
        """What lists that span projects are filtered by."""
        return self.project_visibility.rows()


def _is_public(action: str, project: Project | None) -> bool:
    """What anybody may, who bears no token either."""
    public = Project.Visibility.PUBLIC
    return action == Action.VIEW and project is not None and project.visibility == public


def visitor_of(request: HttpRequest) -> Visitor:
    """Who asks. TokenRefused for a token that is good for nothing: it never counts as anonymous."""
    attributes: dict[str, Any] = request.__dict__
    if "_visitor" not in attributes:
        attributes["_visitor"] = _identify_visitor(request)
    found: Visitor = attributes["_visitor"]
    return found


def _identify_visitor(request: HttpRequest) -> Visitor:
    written, address = bearer_token(request), request_address(request)
    if written.startswith(PREFIX) or (written and getattr(request, "takes_tokens", False)):
        token = use_token(written)
        return Visitor(token.made_by, token, address)
    user = getattr(request, "user", None)
    known = user is not None and user.is_authenticated
    return Visitor(user if known else None, address=address)


def bearer_token(request: HttpRequest) -> str:
    """What the request's Authorization header bears; empty where that is of another kind."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""
