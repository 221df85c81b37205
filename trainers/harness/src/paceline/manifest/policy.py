"""The table `policy` of a manifest: what is measured when, what it is read against, how long it is kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from typing import Any

from .toml_table import ManifestError, Scalar, TomlTable
from .toml_text import load_toml

PATTERNS_LIMIT = 100
LONGEST_PATTERN = 500
LONGEST_CRON = 200
SCHEDULES_LIMIT = 50
BENCHMARKS_LIMIT = 200
QUEUED_LIMIT = 1_000_000
SECONDS_LIMIT = 1_000_000
CLAIM_DAYS_LIMIT = 365
CLAIM_COMMITS_LIMIT = 100_000
CLAIM_MINUTES_LIMIT = 600
KEEP_DAYS_LIMIT = 36_500
POINTS_EVERY_LIMIT = 10_000
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ROLLING, MERGE_BASE = "rolling", "merge-base"
KEYS = (
    *("branches", "tags", "paths", "paths_ignore", "benchmarks", "coalesce", "most_queued"),
    *("seconds_per_commit", "time_zone", "quiet_hours", "schedule", "baseline", "claims", "keep"),
)
_TIME_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
# Minute, hour, day of the month, month, day of the week: their names, and the numbers that they may have.
_CRON_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("weekday", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_CRON_PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d{1,3}))?")


@dataclass(frozen=True, slots=True)
class Filters:
    """Patterns by which something is measured; None is what wasn't said."""

    branches: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    paths_ignore: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Of the days on which they begin; `start` after `until` reaches over midnight."""

    start: time
    until: time
    days: tuple[str, ...] = DAYS


@dataclass(frozen=True, slots=True)
class Schedule:
    """`cron` is when; `cases` are the parameters of those that are measured, empty for all of them.

    `always`: also where the newest commit is measured already. `on_push`: pushes measure them as well.
    """

    name: str
    cron: str
    benchmarks: tuple[str, ...] = ()
    cases: tuple[Mapping[str, Scalar], ...] = ()
    always: bool = False
    on_push: bool = False

    def selects(self, benchmark: str, params: Mapping[str, Scalar]) -> bool:
        """Whether it measures this case."""
        if self.benchmarks and benchmark not in self.benchmarks:
            return False
        return not self.cases or any(wanted.items() <= params.items() for wanted in self.cases)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What points are read against: a tag or commit, `rolling` or `merge-base`; by pattern for branches."""

    pinned: str | None = None
    branches: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ClaimsPolicy:
    """When the claims beside benchmarks are measured by themselves; None is what wasn't said.

    `every_days` and `every_commits` since they were last measured, 0 for never; `share` of a machine's time
    at most, `minutes` a claim.
    """

    every_days: int | None = None
    every_commits: int | None = None
    share: float | None = None
    minutes: float | None = None


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """How many days runs keep each kind of detail, 0 for ever; None is what wasn't said.

    Of `points_every` commits in a row one keeps all its points, once these are older than `points` days.
    """

    logs: int | None = None
    telemetry: int | None = None
    profiles: int | None = None
    documents: int | None = None
    points: int | None = None
    points_every: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What a table says; None is what it doesn't say. An empty `quiet_hours` table is NO_QUIET_HOURS."""

    filters: Filters = field(default_factory=Filters)
    benchmarks: Mapping[str, Filters] = field(default_factory=dict)
    coalesce: bool | None = None
    most_queued: int | None = None
    seconds_per_commit: int | None = None  # 0: no budget
    time_zone: str | None = None
    quiet_hours: QuietHours | None = None
    schedules: tuple[Schedule, ...] | None = None
    baseline: Baseline = field(default_factory=Baseline)
    claims: ClaimsPolicy = field(default_factory=ClaimsPolicy)
    keep: KeepPolicy = field(default_factory=KeepPolicy)


NO_QUIET_HOURS = QuietHours(time(0), time(0))


def parse_policy(table: TomlTable | None) -> Policy:
    """Check the table; raises ManifestError, which names the key."""
    if table is None:
        return Policy()
    policy = Policy(
        filters=_parse_filters(table),
        benchmarks=_parse_benchmarks(table.table("benchmarks")),
        coalesce=_parse_flag(table, "coalesce"),
        most_queued=table.optional_integer("most_queued", minimum=1, maximum=QUEUED_LIMIT),
        seconds_per_commit=table.optional_integer("seconds_per_commit", minimum=0, maximum=SECONDS_LIMIT),
        time_zone=_parse_time_zone(table),
        quiet_hours=_parse_quiet_hours(table.table("quiet_hours")),
        schedules=_parse_schedules(table.table("schedule")),
        baseline=_parse_baseline(table.table("baseline")),
        claims=_parse_claims(table.table("claims")),
        keep=_parse_keep(table.table("keep")),
    )
    table.refuse_unread_keys()
    return policy


def parse_policy_text(text: str, where: str) -> Policy:
    """Check a text that holds nothing but the table `policy`; raises ManifestError, which `where` opens."""
    try:
        table = TomlTable(load_toml(text), where, "")
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{where}: is not valid TOML: {error}") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise ManifestError(f"{where}: can't be read") from error
    policy = parse_policy(table.table("policy"))
    if outside := next((name for name in table.names() if name in KEYS), None):
        raise table.error(outside, "belongs to the table policy, write [policy] above it")
    table.refuse_unread_keys()
    return policy


def read_policy_table(text: str) -> dict[str, Any]:
    """The table `policy` of a manifest that was checked before, as its TOML says it."""
    found = load_toml(text).get("policy")
    return found if isinstance(found, dict) else {}


def parse_policy_table(raw: Mapping[str, Any]) -> Policy:
    """What `read_policy_table` returned; of a version that read it otherwise, nothing."""
    try:
        return parse_policy(TomlTable(raw, "manifest", "policy"))
    except ManifestError:
        return Policy()


def _parse_filters(table: TomlTable) -> Filters:
    return Filters(*(_parse_patterns(table, key) for key in ("branches", "tags", "paths", "paths_ignore")))


def _parse_patterns(table: TomlTable, key: str) -> tuple[str, ...] | None:
    patterns = table.strings(key)
    if patterns is None:
        return None
    if len(patterns) > PATTERNS_LIMIT:
        raise table.error(key, f"has {len(patterns)} patterns, at most {PATTERNS_LIMIT} are allowed")
    for pattern in patterns:
        if not pattern.strip("!/") or len(pattern) > LONGEST_PATTERN or not pattern.isprintable():
            raise table.error(key, f"must hold patterns of 1 to {LONGEST_PATTERN} printable characters")
    return tuple(patterns)


def _parse_benchmarks(table: TomlTable | None) -> dict[str, Filters]:
    if table is None:
        return {}
    names = table.names()
    if len(names) > BENCHMARKS_LIMIT:
        raise table.error("", f"has {len(names)} benchmarks, at most {BENCHMARKS_LIMIT} are allowed")
    found = {}
    for name in names:
        row = table.required_table(name)
        found[name] = _parse_filters(row)
        row.refuse_unread_keys()
    return found


def _parse_flag(table: TomlTable, key: str) -> bool | None:
    return table.boolean(key, default=False) if table.has_key(key) else None


def _parse_time_zone(table: TomlTable) -> str | None:
    if not table.has_key("time_zone"):
        return None
    name = table.required_string("time_zone")
    # Which zones there are, each system knows for itself: what measures may know none.
    if not _TIME_ZONE.fullmatch(name):
        raise table.error("time_zone", f"{name[:60]!r} is no time zone, write one such as Europe/Berlin")
    return name


def _parse_quiet_hours(table: TomlTable | None) -> QuietHours | None:
    if table is None:
        return None
    if not table.names():
        return NO_QUIET_HOURS
    days = table.strings("days")
    hours = QuietHours(
        _parse_time(table, "from"), _parse_time(table, "until"), DAYS if days is None else tuple(days)
    )
    table.refuse_unread_keys()
    for day in hours.days:
        if day not in DAYS:
            raise table.unknown_value_error("days", day, DAYS)
    if not hours.days:
        raise table.error("days", "is empty, leave it out for every day")
    if hours.start == hours.until:
        raise table.error("until", "is the same time as from")
    return hours


def _parse_time(table: TomlTable, key: str) -> time:
    text = table.required_string(key)
    if not _TIME.fullmatch(text):
        raise table.error(key, f'{text[:20]!r} is no time of day, write one such as "22:00"')
    return time.fromisoformat(text)


def _parse_schedules(table: TomlTable | None) -> tuple[Schedule, ...] | None:
    if table is None:
        return None
    names = table.names()
    if len(names) > SCHEDULES_LIMIT:
        raise table.error("", f"has {len(names)} schedules, at most {SCHEDULES_LIMIT} are allowed")
    return tuple(_parse_schedule(name, table.required_table(name)) for name in names)


def _parse_schedule(name: str, table: TomlTable) -> Schedule:
    table.check_name(name)
    schedule = Schedule(
        name=name,
        cron=_parse_cron(table),
        benchmarks=tuple(table.strings("benchmarks") or ()),
        cases=tuple(row.all_scalars() for row in table.tables("cases") or ()),
        always=table.boolean("always", default=False),
        on_push=table.boolean("on_push", default=False),
    )
    table.refuse_unread_keys()
    return schedule


def _parse_cron(table: TomlTable) -> str:
    text = " ".join(table.required_string("cron").split())
    fields = text.split()
    if len(fields) != len(_CRON_FIELDS) or len(text) > LONGEST_CRON:
        raise table.error(
            "cron", f"{text[:60]!r} must have five fields: minute, hour, day, month and weekday"
        )
    for value, (name, least, most, words) in zip(fields, _CRON_FIELDS, strict=True):
        if not all(_is_cron_part(part, least, most, words) for part in value.lower().split(",")):
            raise table.error("cron", f"{value[:60]!r} is no {name}: it goes from {least} to {most}")
    return text


def _is_cron_part(part: str, least: int, most: int, words: tuple[str, ...]) -> bool:
    """Whether it is `*`, `N`, `N-M`, each with `/STEP` or without."""
    match = _CRON_PART.fullmatch(part)
    if match is None or match[3] == "0":
        return False
    ends = [str(words.index(end) + least) if end in words else end for end in match.groups()[:2] if end]
    if not all(end.isascii() and end.isdigit() and least <= int(end) <= most for end in ends):
        return False
    # `5/10` says the same as `5`, and was meant otherwise.
    if match[3] and len(ends) == 1:
        return False
    return len(ends) < 2 or int(ends[0]) <= int(ends[1])


def _parse_baseline(table: TomlTable | None) -> Baseline:
    if table is None:
        return Baseline()
    pinned = table.text("pinned") if table.has_key("pinned") else None
    branches = table.named_strings("branches")
    table.refuse_unread_keys()
    of_branches = ((f"branches.{name}", value) for name, value in branches.items())
    for key, value in (("pinned", pinned), *of_branches):
        if value and (len(value) > LONGEST_PATTERN or not value.isprintable() or value.startswith("-")):
            raise table.error(key, f"must be a tag or a commit, or {ROLLING} or {MERGE_BASE}")
    return Baseline(pinned, branches or None)


def _parse_claims(table: TomlTable | None) -> ClaimsPolicy:
    if table is None:
        return ClaimsPolicy()
    claims = ClaimsPolicy(
        every_days=table.optional_integer("every_days", minimum=0, maximum=CLAIM_DAYS_LIMIT),
        every_commits=table.optional_integer("every_commits", minimum=0, maximum=CLAIM_COMMITS_LIMIT),
        share=table.number("share"),
        minutes=table.number("minutes"),
    )
    table.refuse_unread_keys()
    if claims.share is not None and not 0 < claims.share <= 1:
        raise table.error(
            "share", f"is {claims.share:g}, must be a part of a machine's time, above 0 up to 1"
        )
    if claims.minutes is not None and not 0 < claims.minutes <= CLAIM_MINUTES_LIMIT:
        raise table.error(
            "minutes", f"is {claims.minutes:g}, must be above 0 and at most {CLAIM_MINUTES_LIMIT}"
        )
    return claims


def _parse_keep(table: TomlTable | None) -> KeepPolicy:
    if table is None:
        return KeepPolicy()

    def read_days(kind: str) -> int | None:
        return table.optional_integer(kind, minimum=0, maximum=KEEP_DAYS_LIMIT)

    keep = KeepPolicy(
        logs=read_days("logs"),
        telemetry=read_days("telemetry"),
        profiles=read_days("profiles"),
        documents=read_days("documents"),
        points=read_days("points"),
        points_every=table.optional_integer("points_every", minimum=2, maximum=POINTS_EVERY_LIMIT),
    )
    table.refuse_unread_keys()
    return keep
