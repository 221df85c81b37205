"""From what is written to the commit or the run that is meant: by stored commits, branches, tags and runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from dashboard.comparisons.requests import ComparisonError, UnknownRevisionError
from dashboard.models import Commit, Project, Run
from dashboard.querysets import comparisons as queries
from dashboard.querysets.runs import runs_with_related

RUN = re.compile(r"(?:run[:/ ]?\s*|#)(\d{1,18})")
HASH = re.compile(r"[0-9a-f]{4,64}")
# Shorter beginnings of hashes are words too.
SURE_HASH = 7
MOST_NAMED = 4

Kind = Literal["commit", "tag", "branch", "run"]


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """One of the two: a commit with all its runs, or one `run`. `written` is how it was named.

    Of a branch the newest commit that was measured; `newer`: so many on the branch weren't yet.
    """

    field: Literal["base", "head"]
    written: str
    kind: Kind
    commit: Commit
    run: Run | None = None
    newer: int = 0

    @property
    def name(self) -> str:
        """What always means the same: a branch moves on, a commit doesn't."""
        return f"run:{self.run.pk}" if self.run else self.commit.short


def find_sides(project: Project, base: str, head: str) -> tuple[ComparisonSide, ComparisonSide]:
    """What base and head mean. Raises ComparisonError."""
    written: dict[Literal["base", "head"], str] = {"base": base, "head": head}
    for field, text in written.items():
        if not text:
            raise ComparisonError(field, "it is missing: a commit's hash, a branch, a tag, or run:23.")
    runs = _find_runs(project, written.values())
    revisions = [text for text in written.values() if not RUN.fullmatch(text)]
    commits = _find_commits(project, revisions)
    chosen = {text: _choose_commit(text, commits) for text in revisions}
    may_be_branches = [text for text, named in chosen.items() if named is None or _is_short_hash(text, named)]
    tips = queries.newest_on_branches(project, may_be_branches)
    found = []
    for field, text in written.items():
        if match := RUN.fullmatch(text):
            found.append(_side_of_run(field, text, runs.get(int(match[1])), project))
        elif text in tips:
            found.append(ComparisonSide(field, text, "branch", tips[text].commit, newer=tips[text].newer))
        elif named := chosen[text]:
            found.append(ComparisonSide(field, text, *named))
        else:
            raise _unknown_revision(project, field, text, commits)
    return found[0], found[1]


def _find_runs(project: Project, texts: Iterable[str]) -> dict[int, Run]:
    numbers = [int(match[1]) for text in texts if (match := RUN.fullmatch(text))]
    if not numbers:
        return {}
    rows = runs_with_related().filter(pk__in=numbers, configuration__case__project=project)
    return {run.pk: run for run in rows}


def _find_commits(project: Project, names: list[str]) -> list[Commit]:
    """The commits that have one of these tags, or whose hash begins with one of these."""
    beginnings = [name for name in names if HASH.fullmatch(name)]
    return queries.find_commits(project, names, beginnings, 2 * len(names) * MOST_NAMED)


def _side_of_run(
    field: Literal["base", "head"], text: str, run: Run | None, project: Project
) -> ComparisonSide:
    if run is None:
        raise ComparisonError(field, f"{project.slug} has no run {text.lstrip('run:/# ')}.")
    if run.state != Run.State.DONE:
        raise ComparisonError(field, f"run {run.pk} has no values: it is {run.state}.")
    if run.origin == Run.Origin.SENTINEL:
        raise ComparisonError(field, f"run {run.pk} watches its machine: it has no values of its own.")
    return ComparisonSide(field, text, "run", run.commit, run)


def _choose_commit(text: str, commits: Iterable[Commit]) -> tuple[Kind, Commit] | None:
    """By its tag, else by its hash or the beginning that no other one has."""
    hashed = []
    for commit in commits:
        if text in commit.tags:
            return "tag", commit
        if commit.hash.startswith(text):
            hashed.append(commit)
    exact = [commit for commit in hashed if commit.hash == text] or hashed
    return ("commit", exact[0]) if len(exact) == 1 else None


def _is_short_hash(text: str, named: tuple[Kind, Commit]) -> bool:
    """Whether it is the beginning of a hash that may as well be meant as a branch: `feed`."""
    return named[0] == "commit" and len(text) < SURE_HASH


def _unknown_revision(project: Project, field: str, text: str, commits: Iterable[Commit]) -> ComparisonError:
    hashed = [commit for commit in commits if commit.hash.startswith(text)]
    if hashed:
        named = ", ".join(commit.hash[: len(text) + 6] for commit in hashed[:MOST_NAMED])
        return ComparisonError(field, f"several commits begin with {text}: {named}.")
    return UnknownRevisionError(field, unknown_revision_sentence(project, text), text)


def unknown_revision_sentence(project: Project, text: str) -> str:
    """What is known instead: the names that are nearest, else the newest ones."""
    names = queries.known_names(project)
    near = get_close_matches(text, [name for kind, name, _ in names if kind != "commit"], MOST_NAMED, 0.5)
    if near:
        return f"no commit, branch or tag “{text[:60]}” was measured here; near to it are {', '.join(near)}."
    parts = []
    for kind, words in (("branch", "branches"), ("tag", "tags"), ("commit", "commits")):
        known = [name for known_kind, name, _ in names if known_kind == kind]
        if known:
            more = " and more" if len(known) > MOST_NAMED else ""
            parts.append(f"{words} {', '.join(known[:MOST_NAMED])}{more}")
    listed = "; ".join(parts) or "nothing yet: measure something first"
    return f"no commit, branch or tag “{text[:60]}” was measured here. Measured are {listed}."
