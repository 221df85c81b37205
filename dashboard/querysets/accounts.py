"""The accounts of the site."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet

from dashboard.models import Membership, Project


def listed_accounts(search: str = "") -> QuerySet[User]:
    """Who signed in last first, who never did last; with what the list says of them."""
    there = Q(memberships__project__removed_slug="")
    totp = Authenticator.objects.filter(user_id=OuterRef("pk"), type=Authenticator.Type.TOTP)
    linked = SocialAccount.objects.filter(user_id=OuterRef("pk"))
    rows = User.objects.annotate(
        roles=Count("memberships", filter=there, distinct=True),
        has_factor=Exists(totp),
        is_linked=Exists(linked),
    )
    if search:
        rows = rows.filter(Q(username__icontains=search) | Q(email__icontains=search))
    return rows.prefetch_related("user_permissions", "groups").order_by(
        "-is_active", F("last_login").desc(nulls_last=True), "username"
    )


def shown_account(pk: int) -> User | None:
    """With its roles in projects, by the projects' names."""
    roles = Membership.objects.filter(project__in=Project.objects.filter(removed_slug=""))
    ordered = roles.select_related("project").order_by("project__slug")
    rows = listed_accounts().prefetch_related(Prefetch("memberships", ordered, to_attr="shown_roles"))
    return rows.filter(pk=pk).first()
