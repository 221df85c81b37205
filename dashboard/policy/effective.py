"""The policy that holds: what the site says, above the manifest, above the defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def choose(key: str, read: Callable[[Policy], Value | None], default: Value) -> Value:
        for origin, policy in ((Origin.SITE, site), (Origin.MANIFEST, manifest)):
            if (value := read(policy)) is not None:
                origins[key] = origin
                return value
        origins[key] = Origin.DEFAULT
        return default

    def choose_filter(name: str) -> Any:
        default = (branch,) if name == "branches" else ()
        return choose(name, lambda policy: getattr(policy.filters, name), default)

    def choose_days(kind: str) -> int | None:
        days: int | None = choose(f"keep.{kind}", lambda policy: getattr(policy.keep, kind), None)
        return days

    quiet = choose("quiet_hours", lambda policy: policy.quiet_hours, NO_QUIET_HOURS)
    return EffectivePolicy(
        **{name: choose_filter(name) for name in FILTERS},
        benchmarks=_merge_benchmarks(site, manifest, origins),
        coalesce=choose("coalesce", lambda policy: policy.coalesce, False),
        most_queued=choose("most_queued", lambda policy: policy.most_queued, 0) or None,
        seconds_per_commit=choose("seconds_per_commit", lambda policy: policy.seconds_per_commit, 0) or None,
        time_zone=choose("time_zone", lambda policy: policy.time_zone, "UTC"),
        quiet_hours=None if quiet == NO_QUIET_HOURS else quiet,
        schedules=choose("schedule", lambda policy: policy.schedules, ()),
        pinned=choose("baseline.pinned", lambda policy: policy.baseline.pinned, ""),
        branch_baselines=choose("baseline.branches", lambda policy: policy.baseline.branches, {}),
        claims_every_days=choose(
            "claims.every_days", lambda policy: policy.claims.every_days, CLAIMS_EVERY_DAYS
        ),
        claims_every_commits=choose("claims.every_commits", lambda policy: policy.claims.every_commits, 0),
        claims_share=choose("claims.share", lambda policy: policy.claims.share, CLAIMS_SHARE),
        claims_minutes=choose("claims.minutes", lambda policy: policy.claims.minutes, CLAIMS_MINUTES),
        keep_days={kind: choose_days(kind) for kind in KEPT_KINDS},
        points_every=choose("keep.points_every", lambda policy: policy.keep.points_every, POINTS_EVERY),
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
