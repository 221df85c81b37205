"""A project's policy, from a push to a real repository to the runs that it asks for."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.utils import timezone

from dashboard import cancelling, runs, triggers
from dashboard.access import Visitor
from dashboard.models import Backlog, Commit, Project, RepositoryPoll, Run, RunCost, Trigger
from dashboard.runs.backlog import BACKLOG_PRIORITY
from dashboard.sentences.administration.policy import left_out_sentences
from dashboard.triggers import polling
from tests.dashboard import factories
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.repositories.odd_commits import import_history
from tests.dashboard.triggers.conftest import Hook

pytestmark = pytest.mark.django_db

# One case of each commit, so that runs count commits.
ONE_CASE = """
[benchmarks.tiny]
version = 1
script = "train.py"
steps = 100
"""


def set_policy(repository: Repository, text: str, manifest: str = ONE_CASE) -> str:
    return repository.commit("Set a policy", paceline_toml=f"{manifest}\n[policy]\n{text}\n")


def resolve_push(project: Project, revisions: dict[str, str], ref: str = "", source: str = "hook") -> Trigger:
    trigger = project.triggers.create(source=source, revisions=revisions, ref=ref)
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    return trigger


def push_range(project: Project, span: str, ref: str = "") -> Trigger:
    return resolve_push(project, {"range": span}, ref)


def claim_order() -> list[int]:
    """The positions of the waiting commits, in the order in which they are measured."""
    waiting = Run.objects.filter(state="requested").order_by("-priority", "requested_at", "id")
    return list(waiting.values_list("commit__position", flat=True))


def test_commits_of_documents_alone_are_left_out(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, 'paths_ignore = ["*.md"]')
    repository.commit("Say more", README_md="more")
    code = repository.commit("Change", train_py="2")
    repository.commit("Say even more", README_md="even more")
    trigger = push_range(tracked, f"{before}..main")
    assert {run.commit.hash for run in Run.objects.all()} == {code}
    assert left_out_sentences(trigger) == ["2 commits not measured: only ignored paths changed."]


def test_a_moved_file_touches_both_its_paths(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, 'paths = ["src/**"]')
    (repository.folder / "src").mkdir()
    repository.git("mv", "train.py", "src/train.py")
    repository.commit("Move it there")
    repository.git("mv", "src/train.py", "train.py")
    repository.commit("And back")
    push_range(tracked, f"{before}..main")
    assert Run.objects.count() == 2


def test_the_manifest_of_each_commit_says_what_it_runs(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, 'paths_ignore = ["*.md"]')
    repository.commit("Say more", README_md="more")
    last = set_policy(repository, "")
    repository.commit("Say even more", README_md="even more")
    push_range(tracked, f"{before}..main")
    assert Commit.objects.filter(runs__isnull=False).count() == 2
    assert Run.objects.filter(commit__hash=last).exists()


def test_the_site_stands_above_the_manifest(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, 'paths_ignore = ["*.md"]')
    repository.commit("Say more", README_md="more")
    Project.objects.update(policy="[policy]\npaths_ignore = []")
    push_range(tracked, f"{before}..main")
    assert Run.objects.count() == 1


def test_a_person_asks_past_the_patterns(tracked: Project, repository: Repository) -> None:
    set_policy(repository, 'branches = ["release/*"]\npaths_ignore = ["*.md"]')
    repository.commit("Say more", README_md="more")
    resolve_push(tracked, {}, source="web")
    assert Run.objects.count() == 1


def test_a_new_branch_is_judged_by_all_it_changes(tracked: Project, repository: Repository) -> None:
    set_policy(repository, 'branches = ["**"]\npaths = ["*.py"]')
    repository.git("checkout", "-q", "-b", "release/1")
    repository.commit("Change", train_py="2")
    tip = repository.commit("Say more", README_md="more")
    resolve_push(tracked, {"commit": tip}, "refs/heads/release/1")
    commit = Commit.objects.get(hash=tip)
    assert (commit.runs.count(), commit.branch, commit.fork) == (1, "release/1", 2)


def test_an_old_branch_need_not_name_itself(tracked: Project, repository: Repository) -> None:
    repository.git("branch", "release/1")
    set_policy(repository, 'branches = ["main", "release/*"]', MANIFEST)
    push_range(tracked, "main~1..main")
    repository.git("checkout", "-q", "release/1")
    tip = repository.commit("Mend", train_py="2")
    resolve_push(tracked, {"commit": tip}, "refs/heads/release/1")
    assert Run.objects.filter(commit__hash=tip).count() == 3


def test_the_hook_ignores_what_no_policy_measures(
    tracked: Project, repository: Repository, hook: Hook
) -> None:
    set_policy(repository, 'branches = ["main", "release/*"]\ntags = ["v*"]')
    push_range(tracked, "main~1..main")
    assert "trigger" in hook.send(ref="refs/heads/release/1").json()
    assert "trigger" in hook.send(ref="refs/tags/v1").json()
    answer = hook.send(ref="refs/heads/topic").json()
    assert answer == {"ignored": "The policy doesn't measure refs/heads/topic."}
    assert hook.send(ref="refs/notes/x").json() == {"ignored": "refs/notes/x is neither a branch nor a tag."}
    refs = Trigger.objects.exclude(ref="").values_list("ref", flat=True)
    assert sorted(refs) == ["refs/heads/release/1", "refs/tags/v1"]


def test_a_tag_is_measured_and_named_on_its_commit(tracked: Project, repository: Repository) -> None:
    tip = set_policy(repository, 'tags = ["v*"]')
    repository.git("tag", "--annotate", "--message", "First", "v1.0")
    repository.git("tag", "other")
    resolve_push(tracked, {"commit": repository.git("rev-parse", "v1.0")}, "refs/tags/v1.0")
    commit = Commit.objects.get(hash=tip)
    assert (commit.runs.count(), commit.tags, commit.branch) == (1, ["other", "v1.0"], "main")


def test_a_tag_that_moves_names_its_new_commit(tracked: Project, repository: Repository) -> None:
    first = set_policy(repository, 'tags = ["v*"]')
    repository.git("tag", "v1")
    resolve_push(tracked, {"commit": first}, "refs/tags/v1")
    second = repository.commit("Change", train_py="2")
    repository.git("tag", "--force", "v1")
    resolve_push(tracked, {"commit": second}, "refs/tags/v1")
    assert dict(Commit.objects.values_list("hash", "tags")) == {first: [], second: ["v1"]}


def test_a_thousand_commits_of_a_push(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, "coalesce = true\nmost_queued = 50")
    import_history(repository, 1000, odd=100)
    trigger = push_range(tracked, f"{before}..main")
    assert claim_order()[:4] == [1002, 502, 752, 252]
    assert (Run.objects.count(), len(Backlog.objects.get().hashes)) == (50, 950)
    assert left_out_sentences(trigger) == [
        "49 commits wait for the newest: measured when nothing else is.",
        "950 commits are asked for once fewer runs wait.",
    ]


def test_the_queue_is_filled_up_once_it_is_short(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, "coalesce = true\nmost_queued = 4")
    import_history(repository, 9, odd=100)
    push_range(tracked, f"{before}..main")
    assert runs.fill_backlog(tracked.pk) == 0
    Run.objects.filter(state="requested").update(state="done")
    assert runs.fill_backlog(tracked.pk) == 4
    Run.objects.filter(state="requested").update(state="done")
    assert (runs.fill_backlog(tracked.pk), Backlog.objects.count()) == (1, 0)
    assert Commit.objects.filter(runs__isnull=False).count() == 9


def test_a_later_push_goes_first(tracked: Project, repository: Repository) -> None:
    set_policy(repository, "coalesce = true")
    push_range(tracked, "main~1..main")
    for number in range(4):
        repository.commit("Change", train_py=str(number))
        push_range(tracked, "main~1..main")
    # The newest, then what halves the gap before it.
    assert claim_order() == [6, 4, 3, 5, 2]
    assert Run.objects.filter(priority__gt=BACKLOG_PRIORITY).count() == 1


def test_a_machine_takes_the_newest_of_a_burst_first(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, "coalesce = true")
    burst = [repository.commit(f"Change {number}", train_py=str(number)) for number in range(7)]
    push_range(tracked, f"{before}..main")
    taken = []
    while claimed := runs.claim_run("default", "bench-1"):
        taken.append(burst.index(claimed.commit))
    # Then what halves the largest gap.
    assert taken == [6, 3, 1, 5, 4, 2, 0]


def test_what_a_person_asks_for_leaves_the_backlog(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, "coalesce = true")
    old = repository.commit("Change", train_py="1")
    repository.commit("Change", train_py="2")
    push_range(tracked, f"{before}..main")
    resolve_push(tracked, {"commit": old}, source="web")
    assert Run.objects.get(commit__hash=old).priority == 0


def test_no_later_push_puts_off_what_a_person_asks_for(tracked: Project, repository: Repository) -> None:
    set_policy(repository, "coalesce = true\nmost_queued = 1")
    old = repository.commit("Change", train_py="1")
    push_range(tracked, "main~1..main")
    asked = resolve_push(tracked, {"commit": old}, source="web")
    repository.commit("Change", train_py="2")
    push_range(tracked, "main~1..main")
    run = Run.objects.get(commit__hash=old)
    assert (run.trigger.source, run.awaited_by, run.state, run.priority) == ("hook", asked, "requested", 10)
    # Whoever waits for it no longer takes nothing from the push.
    assert cancelling.cancel_trigger(Visitor(None), asked) == 0
    run.refresh_from_db()
    assert (run.awaited_by, run.state) == (None, "requested")


def test_a_repository_that_cannot_tell_costs_no_backlog(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, "coalesce = true\nmost_queued = 4")
    import_history(repository, 9, odd=100)
    push_range(tracked, f"{before}..main")
    Run.objects.filter(state="requested").update(state="done")
    tracked.mirror.folder.rename(tracked.mirror.folder.with_name("away"))
    with pytest.raises(runs.Busy):
        runs.fill_backlog(tracked.pk)
    tracked.mirror.folder.with_name("away").rename(tracked.mirror.folder)
    assert runs.fill_backlog(tracked.pk) == 4


def test_the_oldest_make_room_for_the_newest(tracked: Project, repository: Repository) -> None:
    set_policy(repository, "coalesce = true\nmost_queued = 2")
    for number in range(4):
        repository.commit("Change", train_py=str(number))
        push_range(tracked, "main~1..main")
    assert len(claim_order()) == 2
    assert claim_order()[0] == 6
    kept = [sha for row in Backlog.objects.all() for sha in row.hashes]
    assert set(kept) == set(Commit.objects.filter(runs__state="cancelled").values_list("hash", flat=True))


def test_rewritten_history_empties_the_backlog(tracked: Project, repository: Repository) -> None:
    before = set_policy(repository, "coalesce = true\nmost_queued = 2")
    import_history(repository, 9, odd=100)
    push_range(tracked, f"{before}..main")
    repository.git("update-ref", "refs/heads/main", before)
    again = repository.commit("Begin anew", train_py="9")
    resolve_push(tracked, {"commit": again})
    Run.objects.filter(state="requested").update(state="done")
    assert (runs.fill_backlog(tracked.pk), Backlog.objects.count()) == (0, 0)


def test_the_backlog_of_a_deleted_branch_goes_with_it(tracked: Project, repository: Repository) -> None:
    set_policy(repository, 'branches = ["**"]\ncoalesce = true\nmost_queued = 2')
    repository.git("checkout", "-q", "-b", "topic")
    for number in range(5):
        repository.commit("Change", train_py=str(number))
    push_range(tracked, "main..topic", "refs/heads/topic")
    assert Backlog.objects.get().branch == "topic"
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-q", "-D", "topic")
    tracked.mirror.fetch()
    Run.objects.filter(state="requested").update(state="done")
    assert (runs.fill_backlog(tracked.pk), Backlog.objects.count()) == (0, 0)


def test_the_sweep_asks_for_more_where_the_queue_is_short(
    tracked: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set_policy(repository, "coalesce = true\nmost_queued = 4")
    import_history(repository, 9, odd=100)
    push_range(tracked, f"{before}..main")
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr("dashboard.dispatch.send_task", lambda *call: sent.append(call))
    runs.send_backlogs()
    assert sent == []
    Run.objects.order_by("pk").first().delete()
    Run.objects.order_by("pk").first().delete()
    runs.send_backlogs()
    assert sent == [("workers.fill_backlog", tracked.pk)]


def test_the_poll_finds_branches_and_tags(tracked: Project, repository: Repository) -> None:
    Project.objects.update(poll_minutes=5)
    set_policy(repository, 'branches = ["main", "release/*"]\ntags = ["v*"]')
    repository.git("branch", "release/0")
    repository.git("tag", "v0")
    triggers.poll_project(tracked.pk)
    runs.resolve_trigger(Trigger.objects.get().pk)
    polling.poll_project(tracked.pk)
    # What was there before the first look at other branches isn't new.
    assert Trigger.objects.count() == 1
    repository.git("checkout", "-q", "release/0")
    tip = repository.commit("Mend", train_py="2")
    repository.git("tag", "v0.1")
    repository.git("branch", "topic")
    triggers.poll_project(tracked.pk)
    asked = Trigger.objects.exclude(ref="").order_by("ref").values_list("ref", "revisions")
    assert list(asked) == [
        ("refs/heads/release/0", {"range": f"{repository.git('rev-parse', 'main')}..{tip}"}),
        ("refs/tags/v0.1", {"commit": tip}),
    ]
    triggers.poll_project(tracked.pk)
    assert Trigger.objects.count() == 3


def test_of_many_branches_the_rest_is_asked_for_next(
    tracked: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "MOST_MOVED", 2)
    Project.objects.update(poll_minutes=5)
    set_policy(repository, 'branches = ["**"]')
    triggers.poll_project(tracked.pk)
    runs.resolve_trigger(Trigger.objects.get().pk)
    triggers.poll_project(tracked.pk)
    repository.git("checkout", "-q", "--detach")
    for number in range(5):
        repository.commit("Change", train_py=str(number))
        repository.git("branch", f"topic-{number}")
    asked = []
    for _ in range(4):
        triggers.poll_project(tracked.pk)
        asked.append(Trigger.objects.exclude(ref="").count())
    assert asked == [2, 4, 5, 5]


def test_without_other_branches_the_poll_asks_for_none(tracked: Project, repository: Repository) -> None:
    Project.objects.update(poll_minutes=5)
    repository.git("branch", "topic")
    triggers.poll_project(tracked.pk)
    assert RepositoryPoll.objects.get().refs == {}


def test_the_newest_commit_is_asked_for_however_full_the_queue(
    tracked: Project, repository: Repository, settings: LazySettings
) -> None:
    set_policy(repository, "most_queued = 1", MANIFEST)
    push_range(tracked, "main~1..main")
    assert Run.objects.filter(state="requested").count() == 3


def give_history(project: Project, seconds: dict[str, float]) -> None:
    """A run of each case in standard that cost so much."""
    commit = project.commits.create(
        hash="e" * 40, branch="elsewhere", position=0, committed_at=timezone.now()
    )
    for key, cost in seconds.items():
        case = project.cases.create(benchmark="tiny", key=key, params={"size": int(key[-1])})
        run = factories.create_run(commit, case)
        RunCost.objects.create(run=run, part="window", seconds=cost)
        RunCost.objects.create(run=run, part="waiting", seconds=1000)


def test_a_budget_makes_runs_quick_and_says_so(tracked: Project, repository: Repository) -> None:
    give_history(tracked, {"size=1": 60, "size=2": 60})
    before = set_policy(repository, "seconds_per_commit = 90", MANIFEST.partition("[benchmarks.other]")[0])
    repository.commit("Change", train_py="2")
    trigger = push_range(tracked, f"{before}..main")
    asked = Run.objects.filter(trigger=trigger).order_by("configuration__case__key")
    assert [(run.case.key, run.quick) for run in asked] == [("size=1", False), ("size=2", True)]
    assert left_out_sentences(trigger) == [
        "tiny, 1 commit: cases measured in short windows, the budget of a commit leaves no more."
    ]


def test_a_person_and_a_schedule_are_bound_by_no_budget(tracked: Project, repository: Repository) -> None:
    give_history(tracked, {"size=1": 60, "size=2": 60})
    only_tiny = MANIFEST.partition("[benchmarks.other]")[0]
    set_policy(repository, 'seconds_per_commit = 1\n[policy.schedule.nightly]\ncron = "0 3 * * *"', only_tiny)
    for source, fields in (("web", {}), ("schedule", {"schedule": "nightly"})):
        trigger = tracked.triggers.create(source=source, revisions={"commit": "main"}, **fields)
        runs.resolve_trigger(trigger.pk)
    assert set(Run.objects.filter(trigger__isnull=False).values_list("configuration__quick", flat=True)) == {
        False
    }
