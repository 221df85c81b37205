"""The tokens by which hosts prove themselves."""

from __future__ import annotations

from dashboard.models import Machine
from dashboard.secrets.tokens import hash_token


def machine_with_token(token: str) -> Machine | None:
    """The machine whose token this is; None for one that was revoked or never given."""
    if not token:
        return None
    return Machine.objects.select_related("pool").filter(token_hash=hash_token(token)).first()
