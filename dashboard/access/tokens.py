"""The token that a request bears: looked up by its hash, its use written down, or refused with a reason."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from dashboard.access.errors import TokenRefused
from dashboard.models import ApiToken
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.secrets import tokens

PREFIX = "plt_"
# How old the time of the last use may be before it is written anew.
USE_RESOLUTION = timedelta(minutes=1)
_TOKEN_OF_HASH = CompiledQuery(
    lambda: ApiToken.objects.select_related("made_by", "project").filter(token_hash=Parameter("hash"))
)


def use_token(written: str) -> ApiToken:
    """The token that a request bears, its use written down. TokenRefused says what is wrong with it."""
    token: ApiToken | None = next(iter(_TOKEN_OF_HASH.read_rows(hash=tokens.hash_token(written))), None)
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
