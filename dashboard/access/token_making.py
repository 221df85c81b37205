"""Tokens of scripts, made and revoked. One is shown once, and never does more than its maker may."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from dashboard.access.audit import Actor, AuditAction, record_action
from dashboard.access.errors import AccessError
from dashboard.access.tokens import PREFIX
from dashboard.access.visitors import Visitor
from dashboard.models import Action, ApiToken, Project
from dashboard.models.access import PROJECT_ACTIONS
from dashboard.secrets import tokens

SHOWN_LETTERS = 12
LONGEST_NAME = 100
DEFAULT_DAYS, MOST_DAYS = 90, 365


def make_token(
    maker: Visitor, project: Project, name: str, actions: Iterable[str], days: int = DEFAULT_DAYS
) -> tuple[ApiToken, str]:
    """(its row, the token), which nothing shows again. AccessError where it can't be made.

    Whatever else a token may do, it may view. What its maker may is asked at each use, not here.
    """
    if maker.user is None or maker.token is not None:
        raise AccessError("Tokens are made by people: sign in.")
    label = name.replace("\0", "").strip()
    if not label or len(label) > LONGEST_NAME:
        raise AccessError(f"name: give the token a name of 1 to {LONGEST_NAME} letters.")
    if not 1 <= days <= MOST_DAYS:
        raise AccessError(f"days: a token lasts 1 to {MOST_DAYS} days.")
    wanted = {Action.VIEW.value, *actions}
    if not wanted <= set(PROJECT_ACTIONS):
        raise AccessError(f"actions: a token may {', '.join(PROJECT_ACTIONS)}, nothing else.")
    token = tokens.make_token(PREFIX.rstrip("_"))
    with transaction.atomic():
        row = ApiToken.objects.create(
            name=label,
            token_hash=tokens.hash_token(token),
            prefix=token[:SHOWN_LETTERS],
            made_by=maker.user,
            project=project,
            actions=[action.value for action in PROJECT_ACTIONS if action in wanted],
            expires_at=timezone.now() + timedelta(days=days),
        )
        about = {"name": row.name, "prefix": row.prefix, "actions": row.actions, "days": days}
        record_action(maker, AuditAction.TOKEN_MADE, project, row, **about)
    return row, token


def revoke_token(actor: Actor, token: ApiToken) -> bool:
    """Make it good for nothing from now on; whether it was of any use until now."""
    with transaction.atomic():
        revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now())
        if revoked:
            about = {"name": token.name, "prefix": token.prefix}
            record_action(actor, AuditAction.TOKEN_REVOKED, token.project, token, **about)
    return bool(revoked)
