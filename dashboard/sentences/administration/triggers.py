"""What a trigger asked for, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.models import Trigger

WHOLE_HASH = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{30}(?:[0-9a-f]{24})?\b")


def requested_revisions(trigger: Trigger) -> str:
    """What a trigger asked for: the newest commit, one commit, a range or the last so many, of a branch."""
    asked = describe_revisions(trigger.revisions)
    if trigger.schedule:
        return f"schedule {trigger.schedule}, {asked}"
    kind, _, name = trigger.ref.removeprefix("refs/").partition("/")
    return f"{'tag' if kind == 'tags' else 'branch'} {name}, {asked}" if name else asked


def describe_revisions(revisions: Mapping[str, Any]) -> str:
    if "commit" in revisions:
        return f"commit {shorten_hashes(revisions['commit'])}"
    if "range" in revisions:
        return f"range {shorten_hashes(revisions['range'])}"
    if "last" in revisions:
        return "last commit" if revisions["last"] == 1 else f"last {revisions['last']} commits"
    return "newest commit"


def shorten_hashes(revision: str) -> str:
    """Whole hashes, which hooks send, cut as commits are named everywhere."""
    return WHOLE_HASH.sub(r"\1", revision)
