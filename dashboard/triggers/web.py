"""What a person asks for, by a form or by the API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import QueryDict

from dashboard.access import Visitor
from dashboard.models import Project, Trigger
from dashboard.triggers.receiving import TriggerError, TriggerOrigin, parse_revisions, receive_trigger


def create_web_trigger(
    project: Project, visitor: Visitor, revisions: dict[str, Any], benchmarks: Iterable[str] = ()
) -> Trigger:
    """A trigger of a person, or of a token; `revisions` come from `parse_revisions`. Raises TriggerError."""
    source = Trigger.Source.TOKEN if visitor.token else Trigger.Source.WEB
    return receive_trigger(project, TriggerOrigin(source), revisions, benchmarks, visitor)


def chosen_revisions(form: QueryDict) -> dict[str, Any]:
    """The revisions that a form asks for. Fields beside the chosen one keep what somebody once typed."""
    which = form.get("which") or "newest"
    if which == "newest":
        return {}
    value = form.get(which, "").strip()
    if which not in {"commit", "range", "last"} or not value:
        raise TriggerError("Say which commits to measure: the newest, one commit, a range or the last few.")
    return parse_revisions(**{"span" if which == "range" else which: value})
