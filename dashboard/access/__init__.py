"""Who may do what: visitors, their roles and tokens, and the table of rules that a middleware enforces."""

from dashboard.access.errors import AccessError, TokenRefused
from dashboard.access.tokens import make_token, revoke_token
from dashboard.access.visitors import Visitor, visitor_of
from dashboard.models import Action

__all__ = [
    "AccessError",
    "Action",
    "TokenRefused",
    "Visitor",
    "make_token",
    "revoke_token",
    "visitor_of",
]
