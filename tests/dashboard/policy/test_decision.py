"""Facts in, plan out: no database, no repository."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from paceline.manifest import parse_manifest
from paceline.manifest.policy import Policy, parse_policy_text

from dashboard.policy.decision import (
    Candidate,
    Decision,
    Event,
    EventKind,
    Queue,
    Reason,
    SkippedCommits,
    decide_cases,
    has_skip_mark,
    measures_ref,
)
from dashboard.policy.effective import EffectivePolicy, merge_policies
from tests.dashboard.conftest import MANIFEST

BENCHMARKS = tuple(parse_manifest(MANIFEST, "test").benchmarks.values())
MAIN = Event(EventKind.BRANCH, "main")
ROOMY = Queue(room=1000, most_commits=100)


def policy_of(text: str = "") -> EffectivePolicy:
    return merge_policies(Policy(), parse_policy_text(f"[policy]\n{text}", "test"), "main")


def decide(
    policy: EffectivePolicy,
    *changes: Collection[str],
    event: Event = MAIN,
    queue: Queue = ROOMY,
) -> Decision:
    """Of commits at the positions 0, 1 and so on, which change these files."""
    commits = [
        Candidate(f"{index:040x}", index, BENCHMARKS, policy, changed)
        for index, changed in enumerate(changes)
    ]
    return decide_cases(policy, event, commits, queue)


def chosen_names(decision: Decision) -> list[list[str]]:
    return [[benchmark.name for benchmark in benchmarks] for _, benchmarks in decision.newest]


def backlog_positions(decision: Decision) -> list[int]:
    return [candidate.position for candidate, _ in decision.backlog]


def test_without_a_policy_all_is_measured_at_every_commit() -> None:
    decision = decide(policy_of(), {"a.md"}, {"b.py"})
    assert chosen_names(decision) == [["tiny", "other"]] * 2
    assert not decision.left_out


def test_a_commit_of_ignored_paths_is_left_out() -> None:
    decision = decide(policy_of('paths_ignore = ["*.md"]'), {"docs/a.md"}, {"b.py", "c.md"})
    assert [candidate.position for candidate, _ in decision.newest] == [1]
    assert decision.left_out == (SkippedCommits(Reason.IGNORED_PATHS, 1),)


def test_a_benchmark_is_measured_where_its_paths_change() -> None:
    policy = policy_of('[policy.benchmarks.other]\npaths = ["other/**"]')
    decision = decide(policy, {"train.py"}, {"other/a.py"})
    assert chosen_names(decision) == [["tiny"], ["tiny", "other"]]
    assert decision.left_out == (SkippedCommits(Reason.UNTOUCHED_PATHS, 1, "other"),)


def test_what_a_commit_changes_may_be_unknown() -> None:
    policy = policy_of('paths_ignore = ["*.md"]')
    candidate = Candidate("0" * 40, 0, BENCHMARKS, policy)
    assert chosen_names(decide_cases(policy, MAIN, [candidate], ROOMY)) == [["tiny", "other"]]


@pytest.mark.parametrize(
    ("text", "kind", "name", "measured"),
    [
        ("", EventKind.BRANCH, "main", True),
        ("", EventKind.BRANCH, "topic", False),
        ("", EventKind.TAG, "v1", False),
        ('branches = ["release/*"]', EventKind.BRANCH, "release/1", True),
        ('branches = ["release/*"]', EventKind.BRANCH, "main", False),
        ('tags = ["v*"]', EventKind.TAG, "v1", True),
        ('[policy.benchmarks.tiny]\nbranches = ["nightly"]', EventKind.BRANCH, "nightly", True),
    ],
)
def test_which_pushes_are_looked_at(text: str, kind: EventKind, name: str, measured: bool) -> None:
    assert measures_ref(policy_of(text), Event(kind, name)) is measured


def test_a_benchmark_may_have_branches_of_its_own() -> None:
    policy = policy_of('branches = ["main", "dev"]\n[policy.benchmarks.other]\nbranches = ["main"]')
    decision = decide(policy, {"a"}, event=Event(EventKind.BRANCH, "dev"))
    assert chosen_names(decision) == [["tiny"]]
    assert decision.left_out == (SkippedCommits(Reason.BENCHMARK_REF, 1, "other"),)


def test_a_tag_changes_no_file() -> None:
    policy = policy_of('tags = ["v*"]\npaths = ["src/**"]')
    assert chosen_names(decide(policy, set(), event=Event(EventKind.TAG, "v1"))) == [["tiny", "other"]]


SCHEDULED = policy_of(
    '[policy.schedule.nightly]\ncron = "0 3 * * *"\nbenchmarks = ["tiny"]\ncases = [{ size = 2 }]'
)


def test_what_a_schedule_names_is_left_to_it() -> None:
    decision = decide(SCHEDULED, {"a"})
    (_, (tiny, other)) = decision.newest[0]
    assert [case.key for case in tiny.cases] == ["size=1"]
    assert other.name == "other"


def test_a_schedule_measures_what_it_names() -> None:
    event = Event(EventKind.SCHEDULE, "nightly", SCHEDULED.schedules[0])
    ((_, (tiny,)),) = decide(SCHEDULED, {"a"}, event=event).newest
    assert [case.key for case in tiny.cases] == ["size=2"]


def test_a_person_is_kept_from_nothing() -> None:
    policy = policy_of('branches = []\npaths = ["never/**"]\n[policy.schedule.all]\ncron = "0 3 * * *"')
    decision = decide(policy, {"a"}, {"b"}, event=Event(EventKind.MANUAL), queue=Queue(0, 1))
    assert chosen_names(decision) == [["tiny", "other"]] * 2


def test_a_burst_is_measured_from_its_newest_commit() -> None:
    decision = decide(policy_of("coalesce = true"), *[{"a"}] * 8, queue=Queue(1000, 100, {-1}))
    assert [candidate.position for candidate, _ in decision.newest] == [7]
    assert backlog_positions(decision) == [3, 5, 1, 6, 4, 2, 0]
    assert decision.left_out == (SkippedCommits(Reason.NEWEST_FIRST, 7),)


def test_what_does_not_fit_into_the_queue_is_asked_for_later() -> None:
    # Each commit has three cases, and the newest one is asked for in any case.
    decision = decide(policy_of("coalesce = true"), *[{"a"}] * 8, queue=Queue(9, 100))
    assert backlog_positions(decision) == [3, 5]
    assert [int(sha, 16) for sha in decision.later] == [1, 6, 4, 2, 0]
    assert SkippedCommits(Reason.QUEUE_FULL, 5) in decision.left_out


def test_a_thousand_commits_are_planned_at_once() -> None:
    decision = decide(policy_of("coalesce = true"), *[{"a"}] * 1000, queue=Queue(300, 100))
    assert (len(decision.newest), len(decision.backlog), len(decision.later)) == (1, 99, 900)


def test_without_coalescing_a_large_push_is_spread() -> None:
    decision = decide(policy_of(), *[{"a"}] * 1000)
    assert [candidate.position for candidate, _ in decision.newest] == [999]
    assert backlog_positions(decision) == list(range(9, 999, 10))


@pytest.mark.parametrize("message", ["Fix [skip bench]", "x\n\n[BENCH SKIP]"])
def test_a_message_may_say_that_nothing_is_measured(message: str) -> None:
    assert has_skip_mark(message)
    assert not has_skip_mark("Skip the bench")
