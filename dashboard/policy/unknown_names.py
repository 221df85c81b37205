"""What a policy names and its project doesn't have now. It may come later: a warning, no refusal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Literal

from paceline.manifest import ManifestError, parse_manifest
from paceline.manifest.policy import MERGE_BASE, ROLLING, Policy

from dashboard.models import Case, Project
from dashboard.querysets.baselines import find_named_commit

# A policy may pin as many branches as its text holds.
MOST_BASELINES = 50
MOST_TAGS = 5000
NEAR = 0.6


@dataclass(frozen=True, slots=True)
class UnknownName:
    """`key` of the policy names it; `near` is the known name that may be meant, empty where none is."""

    key: str
    kind: Literal["benchmark", "commit or tag"]
    name: str
    near: str


def find_unknown_names(project: Project, policy: Policy) -> list[UnknownName]:
    return [*_unknown_benchmarks(project, policy), *_unknown_baselines(project, policy)]


def _unknown_benchmarks(project: Project, policy: Policy) -> Iterator[UnknownName]:
    named = [(f"benchmarks.{name}", name) for name in policy.benchmarks]
    for schedule in policy.schedules or ():
        named += [(f"schedule.{schedule.name}.benchmarks", name) for name in schedule.benchmarks]
    known = _known_benchmarks(project) if named else set()
    for key, name in named:
        if name not in known:
            yield UnknownName(key, "benchmark", name, _find_nearest(name, sorted(known)))


def _known_benchmarks(project: Project) -> set[str]:
    """What was asked for already, and what the manifest has where the site keeps it."""
    known = set(Case.objects.filter(project=project).values_list("benchmark", flat=True).distinct())
    if not project.manifest:
        return known
    try:
        return known | set(parse_manifest(project.manifest, "manifest").benchmarks)
    except ManifestError:
        return known


def _unknown_baselines(project: Project, policy: Policy) -> Iterator[UnknownName]:
    named = [("baseline.pinned", policy.baseline.pinned or "")]
    named += [(f"baseline.branches.{at}", name) for at, name in (policy.baseline.branches or {}).items()]
    pinned = [(key, name) for key, name in named if name not in ("", ROLLING, MERGE_BASE)]
    unknown = [row for row in islice(pinned, MOST_BASELINES) if find_named_commit(project, row[1]) is None]
    tags = _known_tags(project) if unknown else []
    for key, name in unknown:
        yield UnknownName(key, "commit or tag", name, _find_nearest(name, tags))


def _known_tags(project: Project) -> list[str]:
    tagged = project.commits.exclude(tags=[]).order_by("-pk").values_list("tags", flat=True)[:MOST_TAGS]
    return [tag for tags in tagged for tag in tags]


def _find_nearest(name: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(name, known, n=1, cutoff=NEAR)), "")
