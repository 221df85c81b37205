"""Who may do what: visitors, their roles and tokens, the table of rules, and the log of who did what."""

from dashboard.access.audit import (
    Actor,
    AuditAction,
    CommandAccount,
    ForgeAccount,
    command_account,
    record_action,
)
from dashboard.access.errors import AccessError
from dashboard.access.token_making import make_token, revoke_token
from dashboard.access.visitors import Visitor, visitor_of
from dashboard.models import Action

__all__ = [
    "AccessError",
    "Action",
    "Actor",
    "AuditAction",
    "CommandAccount",
    "ForgeAccount",
    "Visitor",
    "command_account",
    "make_token",
    "record_action",
    "revoke_token",
    "visitor_of",
]
