"""The tokens by which hosts prove themselves."""

from __future__ import annotations

from dashboard.models import Machine
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.secrets.tokens import hash_token

_MACHINE = CompiledQuery(lambda: Machine.objects.select_related("pool").filter(token_hash=Parameter("hash")))


def machine_with_token(token: str) -> Machine | None:
    """The machine whose token this is; None for one that was revoked or never given."""
    if not token:
        return None
    return next(iter(_MACHINE.read_rows(hash=hash_token(token))), None)
