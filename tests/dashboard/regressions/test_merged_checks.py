"""What a check has proved of a branch, once git has merged it: merged, squashed, rebased."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard import repositories, runs
from dashboard.access import Visitor
from dashboard.models import (
    Channel,
    Check,
    CheckedCase,
    Commit,
    Delivery,
    Experiment,
    ExperimentPair,
    Machine,
    Project,
    PullRequest,
    Regression,
    RegressionExperiment,
    Triage,
)
from dashboard.pull_requests.merged import MergedCheck
from dashboard.regressions import advance_proof, judge_run, triage_regression
from dashboard.regressions.merged_checks import intended_up_to
from dashboard.repositories import MergedBy, MergedHead
from tests.dashboard import factories
from tests.dashboard.conftest import Repository
from tests.dashboard.regressions.test_proving import EVEN
from tests.dashboard.shared_rows import restored_folders, share_rows
from tests.pages.check_builders import count_sides

pytestmark = pytest.mark.django_db

LEVEL, SLOW = 0.010, 0.014
CODE = "\n".join(f"line {number}" for number in range(30))
Merge = Callable[[Repository], None]


def merge_commit(repository: Repository) -> None:
    repository.git("merge", "--quiet", "--no-ff", "--message", "Merge", "feature")


def fast_forward(repository: Repository) -> None:
    repository.git("merge", "--quiet", "--ff-only", "feature")


def squash_branch(repository: Repository) -> None:
    repository.git("merge", "--quiet", "--squash", "feature")
    repository.commit("Squashed")


def rebase_branch(repository: Repository) -> None:
    repository.git("cherry-pick", "main..feature")


WAYS = [merge_commit, fast_forward, squash_branch, rebase_branch]


@dataclass
class Branch:
    """A project with a quiet history and `feature`, one commit ahead of it, which a check has measured."""

    project: Project
    repository: Repository
    check: Check

    def measure_merged(self) -> None:
        """With a commit behind it: a level takes two points."""
        self.repository.commit("Go on", notes_md="much later")
        self.measure()

    def measure(self) -> None:
        """Measure and judge what is new on the branch's line, by what its commits hold."""
        mirror = self.project.mirror
        mirror.fetch()
        hashes = repositories.newest_commits(mirror, 11)
        rows = runs.get_or_create_commits(self.project, repositories.read_commits(mirror, hashes))
        case = self.project.cases.get(benchmark="snake_dqn")
        for sha in hashes:
            if not rows[sha].runs.filter(state="done").exists():
                level = SLOW if "slow" in self.repository.git("show", f"{sha}:loop.py") else LEVEL
                value = level * factories.run_noise(rows[sha].position)
                profile = [factories.profiled_function("train", "loop.py")]
                measured = {"step_time": value}
                judge_run(factories.store_measured_run(rows[sha], case, measured, functions=profile).pk)
        act_on_ended_experiments()

    @property
    def merged(self) -> Commit:
        return Commit.objects.get(hash=self.repository.git("rev-parse", "main~1"))


def act_on_ended_experiments() -> None:
    """What the queue's message would have done."""
    ended = RegressionExperiment.objects.filter(applied_at=None, experiment__state="done")
    for key in list(ended.values_list("regression", flat=True)):
        advance_proof(key)


@pytest.fixture(scope="module")
def measured_branch(
    shared_repository: Repository, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Branch]:
    """What each test's `branch` begins as."""
    with share_rows(django_db_blocker, lambda: create_branch(shared_repository)) as made:
        yield made


def create_branch(repository: Repository) -> Branch:
    project = Project.objects.create(slug="snakes", repository=str(repository.folder))
    repository.commit("Write", loop_py="fast", model_py=CODE)
    repository.commit_line(*((f"Change number {number}", {"notes_md": str(number)}) for number in range(10)))
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit("Check more", loop_py="slow")
    repository.git("checkout", "--quiet", "main")
    factories.create_case(project)
    Channel.objects.create(project=project, kind="email", address="a@example.org", suspicions=True)
    made = Branch(project, repository, create_check(project, repository, SLOW / LEVEL))
    made.measure()
    return made


@pytest.fixture
def branch(measured_branch: Branch, db: None, tmp_path: Path) -> Iterator[Branch]:
    """Rows are rolled back behind the test, and the repository and its mirror put back."""
    project, repository = Project.objects.get(), measured_branch.repository
    with restored_folders(tmp_path / "kept", repository.folder, project.mirror.folder):
        yield Branch(project, repository, Check.objects.get())


def create_check(project: Project, repository: Repository, ratio: float, **values: object) -> Check:
    """Of `feature` against `main`, with 12 pairs of this ratio."""
    project.mirror.fetch()
    hashes = repository.git("rev-parse", "main", "feature").split()
    rows = runs.get_or_create_commits(project, repositories.read_commits(project.mirror, hashes))
    base, head = (rows[sha] for sha in hashes)
    check = Check.objects.create(
        project=project, head_hash=head.hash, onto="main", onto_hash=base.hash, base_commit=base,
        head_commit=head, minutes=20, floor=0.03, state="done",
        answer="worse" if ratio > 1.03 else "not worse", **values,
    )  # fmt: skip
    configuration = factories.get_configuration(project.cases.get())
    run = factories.create_run(base, project.cases.get(), "cancelled")
    metric = factories.get_series(run, "step_time").metric
    experiment = Experiment.objects.create(
        project=project, purpose="check", question="bound", base_commit=base, head_commit=head,
        base_configuration=configuration, head_configuration=configuration, metric=metric, floor=0.03,
        error=0.002, state="done", verdict=check.answer, finished_at=timezone.now(), seconds=80,
        machine=Machine.objects.get(name="bench-1"),
    )  # fmt: skip
    add_pairs(experiment, ratio)
    CheckedCase.objects.create(of=check, configuration=configuration, experiment=experiment)
    return check


def add_pairs(experiment: Experiment, ratio: float) -> None:
    for index in range(12):
        experiment.pairs.create(
            index=index, base_first=True, base=LEVEL, head=LEVEL * ratio * EVEN[index % 5], seconds=6
        )


def mark_intended(check: Check, **values: object) -> None:
    Check.objects.filter(pk=check.pk).update(intended_by="Ada (github)", **values)


@pytest.mark.parametrize("merge", WAYS)
def test_what_was_proved_on_the_branch_is_the_proof(branch: Branch, merge: Merge) -> None:
    merge(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    assert (found.state, found.first_bad) == ("confirmed", branch.merged)
    reused = found.experiments.get()
    assert (reused.verdict, reused.seconds, reused.pairs.count()) == ("confirmed", 0, 12)
    assert reused.pairs_of == branch.check.cases.get().experiment
    assert reused.reason == {"code": "proved on the branch", "check": branch.check.pk}
    assert not Experiment.objects.filter(state="requested").exists()
    assert found.ratio == pytest.approx(1.4, rel=0.01)


def test_what_was_called_intended_is_told_to_nobody(branch: Branch) -> None:
    person = User.objects.create_user("grace")
    mark_intended(branch.check, intended_person=person)
    rebase_branch(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    assert (found.state, found.triaged, found.triaged_by) == ("confirmed", "intended", person)
    (said,) = found.triages.all()
    assert (said.action, said.person, said.merged_check) == ("intended", person, branch.check)
    assert not Delivery.objects.exists()
    assert not Experiment.objects.filter(state="requested").exists()


def test_the_intended_level_is_what_later_commits_are_judged_against(branch: Branch) -> None:
    mark_intended(branch.check)
    merge_commit(branch.repository)
    for number in range(4):
        branch.repository.commit(f"Later {number}", notes_md=f"later {number}")
    branch.measure()
    found = Regression.objects.get()
    assert (found.triaged, found.first_bad.subject) == ("intended", "Merge")
    assert (found.triages.get().person, found.triages.get().account) == (None, "Ada (github)")


@pytest.mark.parametrize(
    ("moved", "reused"),
    [({"notes_md": "other words"}, True), ({"model_py": CODE.replace("line 3\n", "line three\n")}, False)],
)
@pytest.mark.parametrize("merge", [merge_commit, rebase_branch])
def test_a_target_that_moved_on_asks_anew_where_the_case_runs_what_moved(
    branch: Branch, merge: Merge, moved: dict[str, str], reused: bool
) -> None:
    branch.repository.commit("Move on", **moved)
    branch.measure()
    merge(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    asked = found.experiments.get()
    assert (asked.state, asked.pairs_of is not None) == ("done" if reused else "requested", reused)


def test_what_the_case_does_not_run_may_have_moved(branch: Branch) -> None:
    """Another case runs it: it is known not to be read by this one."""
    newest = Commit.objects.get(hash=branch.repository.git("rev-parse", "main"))
    other = factories.create_case(branch.project, "other")
    profile = [factories.profiled_function("other", "model.py")]
    factories.store_measured_run(newest, other, {}, functions=profile)
    branch.repository.commit("Move on", model_py=CODE.replace("line 3\n", "line three\n"))
    squash_branch(branch.repository)
    branch.measure_merged()
    assert Regression.objects.get().experiments.get().pairs_of is not None


def test_intended_is_expected_also_where_the_target_moved_on(branch: Branch) -> None:
    mark_intended(branch.check)
    branch.repository.commit("Move on", model_py=CODE.replace("line 3\n", "line three\n"))
    branch.measure()
    squash_branch(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    assert (found.state, found.triaged) == ("suspected", "intended")
    assert not Delivery.objects.exists()
    assert not found.experiments.exists()


def test_more_than_was_intended_is_told(branch: Branch) -> None:
    ExperimentPair.objects.update(head=LEVEL * 1.05)
    mark_intended(branch.check)
    branch.repository.commit("Move on", model_py=CODE.replace("line 3\n", "line three\n"))
    branch.measure()
    squash_branch(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    assert (found.triaged, found.experiments.get().state) == ("", "requested")


def test_what_somebody_reopened_stays_open(branch: Branch) -> None:
    mark_intended(branch.check)
    merge_commit(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    triage_regression(found.pk, Visitor(User.objects.create_user("grace")), Triage.Action.REOPEN)
    for number in range(3):
        branch.repository.commit(f"Later {number}", notes_md=f"later {number}")
    branch.measure()
    found.refresh_from_db()
    assert found.triaged == ""


def test_a_suspicion_at_the_merge_is_refuted_by_what_was_measured_on_the_branch(branch: Branch) -> None:
    ExperimentPair.objects.update(head=LEVEL)
    Check.objects.update(answer="not worse")
    merge_commit(branch.repository)
    branch.measure_merged()
    found = Regression.objects.get()
    reused = found.experiments.get(pairs_of__isnull=False)
    assert (found.state, reused.verdict) == ("refuted", "refuted")
    assert not Delivery.objects.exists()


def test_a_machine_that_moved_by_itself_has_proved_nothing(branch: Branch) -> None:
    Check.objects.update(answer="not known", reason={"code": "control moved", "ratio": 1.1})
    merge_commit(branch.repository)
    branch.measure_merged()
    assert Regression.objects.get().experiments.get().pairs_of is None


def test_in_what_the_merge_base_differs_from_itself_nothing_is_proved(branch: Branch) -> None:
    """Whatever the check's answer was: of other metrics it says nothing."""
    case = branch.check.cases.get()
    control = case.experiment
    control.pk, control.head_commit = None, control.base_commit
    control.save()
    add_pairs(control, 1.2)
    branch.check.cases.create(configuration=case.configuration, experiment=control, is_control=True)
    merge_commit(branch.repository)
    branch.measure_merged()
    assert Regression.objects.get().experiments.get().pairs_of is None


def test_what_was_cancelled_before_the_machine_was_known_to_tell_has_proved_nothing(branch: Branch) -> None:
    """Its memory was proved to be worse, whose reason stays; its merge cancelled the rest."""
    Check.objects.update(reason={"code": "proved", "case": "walker", "metric": "memory.peak"})
    merge_commit(branch.repository)
    branch.measure_merged()
    assert Regression.objects.get().experiments.get().pairs_of is None


def test_commits_that_nobody_measured_are_left_out_of_the_range(branch: Branch) -> None:
    for number in range(3):
        branch.repository.commit(f"Unmeasured {number}", notes_md=f"later {number}")
    merge_commit(branch.repository)
    mirror = branch.project.mirror
    mirror.fetch()
    (tip,) = repositories.newest_commits(mirror, 1)
    row = runs.get_or_create_commits(branch.project, repositories.read_commits(mirror, [tip]))[tip]
    judge_run(factories.store_measured_run(row, branch.project.cases.get(), {"step_time": SLOW}).pk)
    branch.repository.commit("Go on", notes_md="much later")
    mirror.fetch()
    (tip,) = repositories.newest_commits(mirror, 1)
    behind = runs.get_or_create_commits(branch.project, repositories.read_commits(mirror, [tip]))[tip]
    judge_run(factories.store_measured_run(behind, branch.project.cases.get(), {"step_time": SLOW}).pk)
    act_on_ended_experiments()
    found = Regression.objects.get()
    assert (found.state, found.first_bad, found.last_good.subject) == ("confirmed", row, "Unmeasured 2")


def test_the_forge_says_which_commit_is_the_merge(branch: Branch) -> None:
    """Though somebody mended a conflict there, so that neither files nor patch are the branch's."""
    branch.repository.git("merge", "--quiet", "--squash", "feature")
    merge = branch.repository.commit("Squashed", loop_py="slow, with a change")
    request = PullRequest.objects.create(
        project=branch.project, number=7, head_hash=branch.check.head_hash, base_ref="main", merge_hash=merge
    )
    Check.objects.update(pull_request=request)
    mark_intended(branch.check)
    branch.measure_merged()
    assert Regression.objects.get().triaged == "intended"


@pytest.mark.parametrize(
    ("name", "counts", "largest"),
    [
        ("scalar_reads", (2, 3), 1.5),
        ("function_calls", (100, 130), 1.3),
        ("host_device_copies", (0, 1), math.inf),
        ("graph_breaks", (2, 2), None),
        ("recompilations", None, math.inf),
    ],
)
def test_a_counter_may_grow_by_as_much_as_was_intended(
    branch: Branch, name: str, counts: tuple[float, float] | None, largest: float | None
) -> None:
    """And by what doesn't matter: the target moved on. What couldn't be told explains what else is worse."""
    mark_intended(branch.check)
    row = CheckedCase.objects.get()
    if counts:
        row.experiment.profiles = {side: {} for side in ("base", "head")}
        count_sides(row, **{name: counts})
    run = factories.create_run(row.experiment.base_commit, branch.project.cases.get(), "cancelled")
    series = factories.get_series(run, name)
    series.exact = True
    found = MergedCheck(row, MergedHead("", "", MergedBy.MERGE_COMMIT), same_code=True)
    expected = None if largest is None else pytest.approx(math.log(1.05 * largest))
    assert intended_up_to(series, found) == expected
