"""The policy that holds: what the site says, above the manifest, above the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from paceline.manifest.policy import (
    NO_QUIET_HOURS,
    Filters,
    Policy,
    QuietHours,
    Schedule,
)

Value = TypeVar("Value")

# Claims that a project ships are measured weekly, in a small part of a machine's time.
CLAIMS_EVERY_DAYS, CLAIMS_SHARE, CLAIMS_MINUTES = 7, 0.1, 10.0
# Of so many commits in a row one keeps all its points.
POINTS_EVERY = 10

FILTERS = ("branches", "tags", "paths", "paths_ignore")
KEPT_KINDS = ("logs", "telemetry", "profiles", "documents", "points")


class Origin(StrEnum):
    """Where a value comes from."""

    SITE = "site"
    MANIFEST = "manifest"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """What holds for a project, or for one of its commits. `origins`: by the key of the manifest."""

    branches: tuple[str, ...]
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    paths_ignore: tuple[str, ...] = ()
    benchmarks: Mapping[str, Filters] = field(default_factory=dict)
    coalesce: bool = False
    most_queued: int | None = None
    seconds_per_commit: int | None = None
    time_zone: str = "UTC"
    quiet_hours: QuietHours | None = None
    schedules: tuple[Schedule, ...] = ()
    pinned: str = ""
    branch_baselines: Mapping[str, str] = field(default_factory=dict)
    claims_every_days: int = CLAIMS_EVERY_DAYS
    claims_every_commits: int = 0
    claims_share: float = CLAIMS_SHARE
    claims_minutes: float = CLAIMS_MINUTES
    # By kind of detail the days that it is kept, 0 for ever; None: as the site's settings say.
    keep_days: Mapping[str, int | None] = field(default_factory=dict)
    points_every: int = POINTS_EVERY
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def filters_of(self, benchmark: str) -> Filters:
        """The patterns of one benchmark: its own, and for what it doesn't say those of all."""
        own = self.benchmarks.get(benchmark, Filters())
        return Filters(
            *(getattr(self, name) if getattr(own, name) is None else getattr(own, name) for name in FILTERS)
        )

    def on_refs_of(self, other: EffectivePolicy) -> EffectivePolicy:
        """The same, on the branches and tags of another one: an old branch needn't name itself."""
        return replace(self, branches=other.branches, tags=other.tags)

    def measures_other_refs(self, branch: str) -> bool:
        """Whether any pattern may take in more than this branch."""
        own = [getattr(row, name) for row in self.benchmarks.values() for name in ("branches", "tags")]
        patterns = [*self.branches, *self.tags, *(pattern for row in own for pattern in row or ())]
        return any(pattern != branch for pattern in patterns)

    @property
    def reads_paths(self) -> bool:
        """Whether anything depends on which files a commit changes."""
        own = any(row.paths or row.paths_ignore for row in self.benchmarks.values())
        return bool(self.paths or self.paths_ignore) or own


def merge_policies(site: Policy, manifest: Policy, branch: str) -> EffectivePolicy:
    """The policy of a project whose own branch is `branch`."""
    origins: dict[str, Origin] = {}

    def choose(key: str, of_site: Value | None, of_manifest: Value | None, default: Value) -> Value:
        for origin, value in ((Origin.SITE, of_site), (Origin.MANIFEST, of_manifest)):
            if value is not None:
                origins[key] = origin
                return value
        origins[key] = Origin.DEFAULT
        return default

    defaults = {"branches": (branch,)}
    filters: dict[str, Any] = {
        name: choose(
            name, getattr(site.filters, name), getattr(manifest.filters, name), defaults.get(name, ())
        )
        for name in FILTERS
    }
    quiet = choose("quiet_hours", site.quiet_hours, manifest.quiet_hours, NO_QUIET_HOURS)
    return EffectivePolicy(
        **filters,
        benchmarks=_merge_benchmarks(site, manifest, origins),
        coalesce=choose("coalesce", site.coalesce, manifest.coalesce, False),
        most_queued=choose("most_queued", site.most_queued, manifest.most_queued, 0) or None,
        seconds_per_commit=choose(
            "seconds_per_commit", site.seconds_per_commit, manifest.seconds_per_commit, 0
        )
        or None,
        time_zone=choose("time_zone", site.time_zone, manifest.time_zone, "UTC"),
        quiet_hours=None if quiet == NO_QUIET_HOURS else quiet,
        schedules=choose("schedule", site.schedules, manifest.schedules, ()),
        pinned=choose("baseline.pinned", site.baseline.pinned, manifest.baseline.pinned, ""),
        branch_baselines=choose("baseline.branches", site.baseline.branches, manifest.baseline.branches, {}),
        claims_every_days=choose(
            "claims.every_days", site.claims.every_days, manifest.claims.every_days, CLAIMS_EVERY_DAYS
        ),
        claims_every_commits=choose(
            "claims.every_commits", site.claims.every_commits, manifest.claims.every_commits, 0
        ),
        claims_share=choose("claims.share", site.claims.share, manifest.claims.share, CLAIMS_SHARE),
        claims_minutes=choose("claims.minutes", site.claims.minutes, manifest.claims.minutes, CLAIMS_MINUTES),
        keep_days={
            kind: choose(f"keep.{kind}", getattr(site.keep, kind), getattr(manifest.keep, kind), None)
            for kind in KEPT_KINDS
        },
        points_every=choose(
            "keep.points_every", site.keep.points_every, manifest.keep.points_every, POINTS_EVERY
        ),
        origins=origins,
    )


def _merge_benchmarks(site: Policy, manifest: Policy, origins: dict[str, Origin]) -> dict[str, Filters]:
    merged = {}
    for name in manifest.benchmarks.keys() | site.benchmarks.keys():
        above, below = site.benchmarks.get(name, Filters()), manifest.benchmarks.get(name, Filters())
        values = []
        for key in FILTERS:
            chosen = getattr(above, key)
            origin = Origin.SITE
            if chosen is None:
                chosen, origin = getattr(below, key), Origin.MANIFEST
            if chosen is not None:
                origins[f"benchmarks.{name}.{key}"] = origin
            values.append(chosen)
        merged[name] = Filters(*values)
    return dict(sorted(merged.items()))
