"""Why somebody may not do something, in one sentence for people."""

from __future__ import annotations

from dashboard.access.rules import Audience, Rule
from dashboard.access.visitors import Visitor
from dashboard.models import ApiToken, Project

PAGES_ONLY = "This address takes no tokens: it is a page for people."
SIGNED_OUT = (
    "You are signed out, so what was sent wasn't stored. It may still stand on the page before this one: "
    "copy it there, sign in, and send it again."
)


def refusal_sentence(visitor: Visitor, rule: Rule, project: Project | None) -> str:
    """What they lack, and who can grant it."""
    if visitor.token is not None:
        return _token_sentence(visitor.token, project)
    if rule.who == Audience.OPERATE:
        return f"You can view {project} but not act in it: one of its admins can make you an operator."
    if rule.who == Audience.ADMINISTER:
        return f"Only admins of {project} may do this: one of them can make you an admin too."
    if rule.who == Audience.SITE_ADMINISTRATOR:
        return "Only administrators of this site may do this: ask one of them."
    return "Your account may not do this: ask an administrator of this site."


def _token_sentence(token: ApiToken, project: Project | None) -> str:
    if project is None or token.project_id != project.pk:
        return f"This token is for the project {token.project} alone."
    actions = " and ".join(token.actions)
    return (
        f"This token may only {actions}, within the rights of {token.made_by}: what was asked for needs more."
    )
