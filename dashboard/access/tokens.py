"""Tokens of scripts: made, used, revoked. A token is shown once, and never does more than its maker may."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from dashboard.access.errors import AccessError, TokenRefused
from dashboard.models import Action, ApiToken, Project
from dashboard.models.access import PROJECT_ACTIONS
from dashboard.secrets import tokens

PREFIX = "plt_"
SHOWN_LETTERS = 12
LONGEST_NAME = 100
DEFAULT_DAYS, MOST_DAYS = 90, 365
# How old the time of the last use may be before it is written anew.
USE_RESOLUTION = timedelta(minutes=1)


def make_token(
    maker: User, project: Project, name: str, actions: Iterable[str], days: int = DEFAULT_DAYS
) -> tuple[ApiToken, str]:
    """(its row, the token), which nothing shows again. AccessError where it can't be made.

    Whatever else a token may do, it may view. What its maker may is asked at each use, not here.
    """
    label = name.replace("\0", "").strip()
    if not label or len(label) > LONGEST_NAME:
        raise AccessError(f"name: give the token a name of 1 to {LONGEST_NAME} letters.")
    if not 1 <= days <= MOST_DAYS:
        raise AccessError(f"days: a token lasts 1 to {MOST_DAYS} days.")
    wanted = {Action.VIEW.value, *actions}
    if not wanted <= set(PROJECT_ACTIONS):
        raise AccessError(f"actions: a token may {', '.join(PROJECT_ACTIONS)}, nothing else.")
    token = tokens.make_token(PREFIX.rstrip("_"))
    row = ApiToken.objects.create(
        name=label,
        token_hash=tokens.hash_token(token),
        prefix=token[:SHOWN_LETTERS],
        made_by=maker,
        project=project,
        actions=[action.value for action in PROJECT_ACTIONS if action in wanted],
        expires_at=timezone.now() + timedelta(days=days),
    )
    return row, token


def revoke_token(token: ApiToken) -> bool:
    """Make it good for nothing from now on; whether it was of any use until now."""
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now())
    return bool(revoked)


def use_token(written: str) -> ApiToken:
    """The token that a request bears, its use written down. TokenRefused says what is wrong with it."""
    rows = ApiToken.objects.select_related("made_by", "project")
    token = rows.filter(token_hash=tokens.hash_token(written)).first()
    if token is None:
        raise TokenRefused("This token is none of this site's.")
    if token.revoked_at is not None:
        raise TokenRefused("This token was revoked.")
    now = timezone.now()
    if token.expires_at <= now:
        raise TokenRefused(f"This token expired on {token.expires_at:%Y-%m-%d}: make a new one.")
    if not token.made_by.is_active:
        raise TokenRefused("The account that made this token is closed.")
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_RESOLUTION)
    if token.last_used_at is None or token.last_used_at < now - USE_RESOLUTION:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
    return token
