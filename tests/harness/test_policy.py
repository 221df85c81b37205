"""The table `policy` of a manifest: what is read, and which sentence refuses what is wrong."""

from __future__ import annotations

from datetime import time

import pytest
from paceline.manifest import ManifestError, Policy, parse_manifest
from paceline.manifest.policy import (
    KEYS,
    NO_QUIET_HOURS,
    Baseline,
    Filters,
    KeepPolicy,
    QuietHours,
    Schedule,
    parse_policy_table,
    parse_policy_text,
    read_policy_table,
)

BENCHMARK = '[benchmarks.train]\nversion = 1\nscript = "train.py"\nsteps = 5\n'
WHOLE = """
[policy]
branches = ["main", "release/*"]
tags = ["v*"]
paths_ignore = ["docs/**", "*.md"]
coalesce = true
most_queued = 200
seconds_per_commit = 300
time_zone = "Europe/Berlin"
quiet_hours = { from = "08:00", until = "18:00", days = ["mon", "fri"] }
[policy.benchmarks.train]
paths = ["src/**"]
[policy.schedule.nightly]
cron = "30  3 * * mon-fri"
benchmarks = ["train"]
cases = [{ size = 4 }]
always = true
[policy.baseline]
pinned = "v1.2"
branches = { "release/*" = "v1.0", "dev" = "rolling" }
[policy.keep]
logs = 90
points = 400
points_every = 20
"""


def test_each_key_is_read() -> None:
    policy = parse_manifest(BENCHMARK + WHOLE, "test").policy
    assert policy.filters == Filters(("main", "release/*"), ("v*",), None, ("docs/**", "*.md"))
    assert policy.benchmarks == {"train": Filters(paths=("src/**",))}
    assert (policy.coalesce, policy.most_queued, policy.time_zone) == (True, 200, "Europe/Berlin")
    assert policy.seconds_per_commit == 300
    assert policy.quiet_hours == QuietHours(time(8), time(18), ("mon", "fri"))
    nightly = Schedule("nightly", "30 3 * * mon-fri", ("train",), ({"size": 4},), always=True)
    assert policy.schedules == (nightly,)
    assert policy.baseline == Baseline("v1.2", {"release/*": "v1.0", "dev": "rolling"})
    assert policy.keep == KeepPolicy(logs=90, points=400, points_every=20)


def test_a_manifest_need_not_have_one() -> None:
    assert parse_manifest(BENCHMARK, "test").policy == Policy()


def test_what_is_said_to_be_empty_is_said() -> None:
    policy = parse_policy_text("[policy]\nquiet_hours = {}\ntags = []\nschedule = {}", "test")
    assert (policy.quiet_hours, policy.filters.tags, policy.schedules) == (NO_QUIET_HOURS, (), ())


def test_the_heading_of_its_keys_is_asked_for() -> None:
    read = {*read_policy_table(WHOLE), "paths", "claims", "keep"}
    assert set(KEYS) == read
    with pytest.raises(
        ManifestError, match=r"test: tags: belongs to the table policy, write \[policy\] above"
    ):
        parse_policy_text("tags = []\n[policy]\nbranches = []", "test")


def test_a_kept_table_says_the_same() -> None:
    raw = read_policy_table(BENCHMARK + WHOLE)
    assert parse_policy_table(raw) == parse_manifest(BENCHMARK + WHOLE, "test").policy
    assert parse_policy_table({"of a later version": 1}) == Policy()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[policy]\nbranch = []", "policy.branch: is unknown, did you mean 'branches'?"),
        ('[policy]\nbranches = "main"', "policy.branches: must be a list of strings"),
        ('[policy]\npaths = ["!"]', "policy.paths: must hold patterns of 1 to 500 printable characters"),
        (
            "[policy]\nseconds_per_commit = -1",
            "policy.seconds_per_commit: is -1, must be",
        ),
        ("[policy]\nmost_queued = 0", "policy.most_queued: is 0, must be between 1 and 1000000"),
        ('[policy]\ncoalesce = "yes"', "policy.coalesce: must be true or false"),
        ('[policy]\ntime_zone = "a b"', "policy.time_zone: 'a b' is no time zone"),
        (
            '[policy.quiet_hours]\nfrom = "8"\nuntil = "9:00"',
            "policy.quiet_hours.from: '8' is no time of day",
        ),
        ('[policy.quiet_hours]\nfrom = "08:00"', "policy.quiet_hours.until: is missing"),
        (
            '[policy.quiet_hours]\nfrom = "08:00"\nuntil = "08:00"',
            "policy.quiet_hours.until: is the same time as from",
        ),
        (
            '[policy.quiet_hours]\nfrom = "08:00"\nuntil = "09:00"\ndays = ["monday"]',
            "policy.quiet_hours.days: 'monday' is unknown, did you mean 'mon'?",
        ),
        ("[policy.schedule.nightly]\nbenchmarks = []", "policy.schedule.nightly.cron: is missing"),
        ('[policy.schedule.nightly]\ncron = "0 3 * *"', "must have five fields"),
        ('[policy.schedule."a b"]\ncron = "0 3 * * *"', "must be named with letters"),
        ('[policy.baseline]\npinned = "--all"', "policy.baseline.pinned: must be a tag or a commit"),
        ("[policy.keep]\nlogs = -1", "policy.keep.logs: is -1, must be between 0 and 36500"),
        ("[policy.keep]\npoints_every = 1", "policy.keep.points_every: is 1, must be"),
        ("[policy.keep]\nlog = 1", "policy.keep.log: is unknown, did you mean 'logs'?"),
        ("[policy.benchmarks.train]\nsteps = 1", "policy.benchmarks.train.steps: is unknown"),
        (
            "[policy.benchmarks.trian]\npaths = []",
            "policy.benchmarks.trian: is unknown, did you mean 'train'?",
        ),
        (
            '[policy.schedule.nightly]\ncron = "0 3 * * *"\nbenchmarks = ["trian"]',
            "policy.schedule.nightly.benchmarks: 'trian' is unknown, did you mean 'train'?",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, sentence: str) -> None:
    with pytest.raises(ManifestError) as error:
        parse_manifest(f"{BENCHMARK}{text}", "test")
    assert sentence in str(error.value)


@pytest.mark.parametrize("cron", ["*/15 0-6/2 1,15 jan-mar,12 1-5", "0 0 * * sun", "5 4 * * 7"])
def test_expressions_of_cron(cron: str) -> None:
    policy = parse_policy_text(f'[policy.schedule.a]\ncron = "{cron}"', "test")
    assert policy.schedules is not None
    assert policy.schedules[0].cron == cron


@pytest.mark.parametrize(
    "cron",
    [
        "60 3 * * *",
        "0 24 * * *",
        "0 3 0 * *",
        "0 3 * 13 *",
        "0 3 * * 8",
        "*/0 * * * *",
        "5/10 * * * *",
        "3-1 * * * *",
        "@ * * * *",
        "1,,2 * * * *",
    ],
)
def test_what_no_clock_shows_is_refused(cron: str) -> None:
    with pytest.raises(ManifestError, match=r"schedule\.a\.cron: '.*' is no \w+: it goes from"):
        parse_policy_text(f'[policy.schedule.a]\ncron = "{cron}"', "test")
