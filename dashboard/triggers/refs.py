"""Which pushed branches and tags a project's policy looks at."""

from __future__ import annotations

from dashboard.models import Project
from dashboard.policy.decision import Event, EventKind, measures_ref
from dashboard.policy.project_policy import project_policy

HEADS, TAGS = "refs/heads/", "refs/tags/"


def ignored_ref(project: Project, ref: str) -> str:
    """Why a push to this branch or tag asks for nothing, in one sentence; empty where it does."""
    if ref.startswith(HEADS):
        event = Event(EventKind.BRANCH, ref.removeprefix(HEADS))
    elif ref.startswith(TAGS):
        event = Event(EventKind.TAG, ref.removeprefix(TAGS))
    else:
        return f"{ref[:200]} is neither a branch nor a tag."
    policy = project_policy(project)
    if measures_ref(policy, event):
        return ""
    if not policy.measures_other_refs(project.branch):
        return f"Only {HEADS}{project.branch} is measured."
    return f"The policy doesn't measure {ref[:200]}."


def stored_ref(project: Project, ref: str) -> str:
    """What a trigger keeps: nothing for the project's own branch."""
    return "" if ref == f"{HEADS}{project.branch}" else ref
