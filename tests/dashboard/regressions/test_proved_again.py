"""A proof that wasn't measured, or was refuted at one place, is asked for again while its step stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from pytest_django.plugin import DjangoDbBlocker

from dashboard.access import Visitor
from dashboard.experiments import is_outdated
from dashboard.models import Commit, Experiment, Regression, Run
from dashboard.regressions import advance_proof, judge_run, redetect_project, triage_regression
from dashboard.regressions.apply import apply_decision, request_regression_experiment, reuse_proof
from dashboard.regressions.decision.outcomes import Decision
from dashboard.regressions.decision.requested_facts import ReusedProof
from dashboard.regressions.decision.wanted_measurements import Purpose, ResidualCause, WantedExperiment
from dashboard.regressions.row_facts import commit_fact, series_fact
from dashboard.sentences.regressions.bisections import bisection_sentence
from dashboard.sentences.regressions.proofs import verdict_sentence
from tests.dashboard import factories
from tests.dashboard.shared_rows import share_rows

LOST: dict[str, Any] = {"verdict": "undecided", "reason": {"code": "lost"}}
UNTESTABLE: dict[str, Any] = {"verdict": "untestable"}
FOUND, PER_TRY = 9, 5


@pytest.fixture(scope="module")
def judged_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test's `line` is read from."""
    with share_rows(django_db_blocker, judge_line):
        yield


def judge_line() -> None:
    project = factories.create_project()
    factories.create_case(project)
    line = factories.create_commits(project, FOUND + 6 * PER_TRY)
    measure_step(line[:FOUND], slow_from=6)


@pytest.fixture
def line(judged_line: None, db: None) -> list[Commit]:
    """Its step at 6 is found; one proof is under way."""
    return list(Commit.objects.select_related("project").order_by("position"))


def measure_step(commits: list[Commit], slow_from: int) -> None:
    for commit in commits:
        case = commit.project.cases.get()
        level = 0.014 if commit.position >= slow_from else 0.010
        values = {"step_time": level * factories.run_noise(commit.position)}
        judge_run(factories.store_measured_run(commit, case, values).pk)


def end_proof(verdict: str, **values: Any) -> None:
    factories.end_experiment(Experiment.objects.get(state="requested"), verdict, **values)
    advance_proof(Regression.objects.get().pk)


@pytest.mark.parametrize("ending", [LOST, UNTESTABLE], ids=["lost", "untestable"])
def test_it_is_asked_for_again_and_told(line: list[Commit], ending: dict[str, Any]) -> None:
    end_proof(**ending)
    measure_step(line[FOUND : FOUND + PER_TRY - 1], slow_from=6)
    assert not Experiment.objects.filter(state="requested").exists()
    measure_step(line[FOUND + PER_TRY - 1 :][:1], slow_from=6)
    end_proof("confirmed", ratio=1.4, low=1.38, high=1.42)
    assert Regression.objects.get().state == "confirmed"


def test_what_never_runs_is_tried_three_times(line: list[Commit]) -> None:
    for turn in range(6):
        if Experiment.objects.filter(state="requested").exists():
            end_proof(**UNTESTABLE)
        measure_step(line[FOUND + turn * PER_TRY :][:PER_TRY], slow_from=6)
    assert Experiment.objects.filter(purpose="proof").count() == 3
    assert not Regression.objects.get().proving


def test_what_was_measured_and_stays_undecided_is_not_asked_again(line: list[Commit]) -> None:
    end_proof("undecided", reason={"code": "pairs"})
    measure_step(line[FOUND : FOUND + 2 * PER_TRY], slow_from=6)
    assert Experiment.objects.count() == 1


def test_what_has_recovered_is_not_asked_again(line: list[Commit]) -> None:
    end_proof(**LOST)
    measure_step(line[FOUND : FOUND + 3 * PER_TRY], slow_from=1000)
    assert Experiment.objects.count() == 1


@pytest.fixture
def answer_for_another(line: list[Commit]) -> Callable[..., Experiment]:
    """Has pairs of the suspected commits answer for a regression of later commits."""
    regression, asked = Regression.objects.get(), Experiment.objects.get()
    series = regression.series
    another = Regression.objects.create(
        project=regression.project,
        last_good=line[-2],
        first_bad=line[-1],
        series=series,
        before=0.010,
        after=0.014,
    )

    def answer(verdict: str, suspected: float = 1.4) -> Experiment:
        levels = (0.010, 0.010 * suspected)
        wanted = WantedExperiment(Purpose.PROOF, asked.base_commit, asked.head_commit, series, *levels)
        requested = request_regression_experiment(another.project, another, wanted)
        return factories.end_experiment(requested, verdict)

    factories.end_experiment(asked, "", state="cancelled")
    return answer


def test_what_pairs_have_told_three_times_ends_undecided(
    answer_for_another: Callable[..., Experiment],
) -> None:
    for verdict in ("refuted", "confirmed", "undecided", "refuted"):
        answer_for_another(verdict)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    suspected.refresh_from_db()
    assert (suspected.state, suspected.proving) == ("undecided", False)
    assert not Experiment.objects.filter(state="requested").exists()
    assert bisection_sentence(suspected).startswith("Whether this commit has it isn't known: ")


def test_what_ended_undecided_stays_so_and_waits_for_nothing(
    line: list[Commit], answer_for_another: Callable[..., Experiment]
) -> None:
    for _ in range(3):
        answer_for_another("refuted")
    measure_step(line[FOUND : FOUND + 2], slow_from=6)
    suspected = Regression.objects.earliest("pk")
    assert (suspected.state, suspected.proving) == ("undecided", False)
    assert suspected.bisection == {"code": "answered", "times": 3, "commits": 1}


@pytest.fixture
def ended_undecided(answer_for_another: Callable[..., Experiment]) -> Regression:
    for _ in range(3):
        answer_for_another("refuted")
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    return suspected


def triage_away(line: list[Commit], regression: Regression) -> None:
    triage_regression(regression.pk, Visitor(User.objects.create_user("ada")), "intended")
    measure_step(line[FOUND : FOUND + 2], slow_from=6)


def reopen_triaged(line: list[Commit], regression: Regression) -> None:
    triage_away(line, regression)
    triage_regression(regression.pk, Visitor(User.objects.get()), "reopen")
    advance_proof(regression.pk)


def judge_all_again(line: list[Commit], regression: Regression) -> None:
    redetect_project(regression.project)


def post_points(line: list[Commit], regression: Regression) -> None:
    for commit in line[FOUND : FOUND + 3]:
        level = 0.014 * factories.run_noise(commit.position)
        run = factories.store_measured_run(commit, commit.project.cases.get(), {"step_time": level})
        Run.objects.filter(pk=run.pk).update(origin="posted")
        judge_run(run.pk)


@pytest.mark.parametrize("news", [triage_away, reopen_triaged, judge_all_again, post_points])
def test_what_ended_undecided_is_suspected_no_more(
    line: list[Commit],
    ended_undecided: Regression,
    news: Callable[[list[Commit], Regression], None],
) -> None:
    news(line, ended_undecided)
    ended_undecided.refresh_from_db()
    assert (ended_undecided.state, ended_undecided.proving) == ("undecided", False)
    assert ended_undecided.bisection["code"] == "answered"


def test_a_rest_where_another_step_ended_undecided_is_a_new_suspicion(line: list[Commit]) -> None:
    """The row of what was withdrawn at the commit tells of the rest now."""
    found = Regression.objects.get()
    answered = {"code": "answered", "times": 3, "commits": 1}
    Regression.objects.update(
        withdrawn_at=Now(),
        withdrawal="rewritten",
        bisection=answered,
        culprit=found.first_bad,
        cause="code",
        phase="learn",
        phase_share=0.9,
        recovered_by=line[8],
    )
    ends = commit_fact(line[3]), commit_fact(found.first_bad)
    rest = ResidualCause(*ends, series_fact(found.series), 0.012, 0.014)
    apply_decision(found.project, "main", Decision(residuals=(rest,)))
    found.refresh_from_db()
    assert (found.state, found.proving, found.bisection, found.withdrawal) == ("suspected", True, {}, "")
    assert (found.culprit, found.cause, found.phase, found.recovered_by) == (None, "", "", None)


@pytest.mark.parametrize("verdict", ["refuted", "undecided", "confirmed"])
def test_a_rest_where_pairs_told_of_another_step_is_proved_by_its_own(
    line: list[Commit], verdict: str
) -> None:
    """What they told of the withdrawn one ends no proof of the rest, and is none."""
    end_proof(verdict, ratio=1.0)
    former = Regression.objects.get()
    for experiment in former.experiments.filter(state="requested"):
        factories.end_experiment(experiment, "", state="cancelled")
    Regression.objects.update(withdrawn_at=Now(), withdrawal="rewritten", proving=False)
    former.changes.update(regression=None)
    ends = commit_fact(line[4]), commit_fact(former.first_bad)
    rest = ResidualCause(*ends, series_fact(former.series), 0.012, 0.014)
    apply_decision(former.project, "main", Decision(residuals=(rest,)))
    (found,) = Regression.objects.filter(withdrawn_at=None)
    advance_proof(found.pk)
    found.refresh_from_db()
    assert (found.state, found.proving, found.withdrawn_at) == ("suspected", True, None)
    assert found.experiments.get(state="requested").base_commit == line[4]


def test_what_pairs_have_told_twice_is_asked_a_third_time(
    answer_for_another: Callable[..., Experiment],
) -> None:
    for verdict in ("refuted", "undecided", "confirmed"):
        answer_for_another(verdict)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    end_requested = Experiment.objects.get(state="requested")
    assert end_requested.regression_link.regression == suspected


def add_pairs(experiment: Experiment, ratio: float) -> None:
    for index in range(12):
        head = 0.010 * ratio * factories.run_noise(index)
        experiment.pairs.create(index=index, base_first=True, base=0.010, head=head, seconds=5.0)


def test_what_pairs_refuted_for_another_is_not_measured_again(
    answer_for_another: Callable[..., Experiment],
) -> None:
    measured = answer_for_another("refuted")
    add_pairs(measured, 1.01)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    reused = suspected.experiments.get(state="done")
    assert (reused.verdict, reused.seconds, reused.pairs_of) == ("refuted", 0, measured)
    assert reused.reason["regression"] == measured.regression_link.regression_id
    text = verdict_sentence(suspected, suspected.series, reused, 12)
    assert "measured for regression" in text
    assert not Experiment.objects.filter(state="requested").exists()
    advance_proof(suspected.pk)
    suspected.refresh_from_db()
    assert suspected.state == "refuted"
    wide = Experiment.objects.get(state="requested")
    assert wide.base_commit.position < reused.base_commit.position


@pytest.mark.parametrize(
    ("verdict", "larger", "ratio"),
    [("confirmed", 1.4, 1.4), ("undecided", 1.4, 1.01), ("refuted", 3.0, 1.25)],
    ids=["confirmed", "without an answer", "refuted a larger step"],
)
def test_what_pairs_of_another_do_not_refute_is_measured(
    answer_for_another: Callable[..., Experiment], verdict: str, larger: float, ratio: float
) -> None:
    """What they confirmed too: the luck of no pairs confirms two regressions."""
    add_pairs(answer_for_another(verdict, larger), ratio)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    assert Experiment.objects.get(state="requested").regression_link.regression == suspected


def test_what_newer_pairs_of_another_confirmed_is_measured(
    answer_for_another: Callable[..., Experiment],
) -> None:
    for verdict, ratio in (("refuted", 1.01), ("confirmed", 1.4)):
        add_pairs(answer_for_another(verdict), ratio)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    assert Experiment.objects.get(state="requested").regression_link.regression == suspected


def test_what_pairs_refuted_for_this_one_is_refuted_by_no_second_look_at_them(
    line: list[Commit], answer_for_another: Callable[..., Experiment]
) -> None:
    """Reused once, pairs count once."""
    add_pairs(answer_for_another("refuted"), 1.01)
    suspected = Regression.objects.earliest("pk")
    for _ in range(3):
        advance_proof(suspected.pk)
    assert suspected.experiments.filter(pairs_of__isnull=False).count() == 1


@pytest.mark.parametrize(
    ("where", "environment", "state"),
    [
        (FOUND, {"driver": "560.1"}, "requested"),
        (6, {"driver": "550.1", "packages": {"numpy": "2.4.0"}}, "requested"),
        (FOUND, {"driver": "550.1", "packages": {"numpy": "2.4.0"}}, "done"),
        (6, {"driver": "550.1", "packages": {"numpy": "2.3.0"}}, "done"),
    ],
    ids=["another driver", "other packages", "other packages of another commit", "nothing new"],
)
def test_pairs_of_another_time_are_measured_anew(
    line: list[Commit],
    answer_for_another: Callable[..., Experiment],
    where: int,
    environment: dict[str, Any],
    state: str,
) -> None:
    """What moved the machine, or what its commits are installed with, may have moved the step."""
    for run in Run.objects.filter(state="done"):
        factories.set_environment(run, {"driver": "550.1", "packages": {"numpy": "2.3.0"}})
    Run.objects.filter(state="done").update(finished_at=Now())
    add_pairs(answer_for_another("refuted"), 1.01)
    again = factories.create_run(line[where], line[where].project.cases.get(), finished_at=Now())
    factories.set_environment(again, environment)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    (asked,) = suspected.experiments.exclude(state="cancelled")
    assert asked.state == state


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({"driver": "550.1", "gpus": []}, "done"),
        ({"driver": "550.1", "kept_files": "2"}, "done"),
        ({"driver": "560.1", "gpus": []}, "requested"),
    ],
    ids=["without its GPU", "with files of its own", "under another driver"],
)
def test_another_case_of_the_machine_tells_of_the_machine_alone(
    line: list[Commit],
    answer_for_another: Callable[..., Experiment],
    environment: dict[str, Any],
    state: str,
) -> None:
    """Which devices a case uses, and which files a project keeps, is no news of other cases."""
    own = {"driver": "550.1", "gpus": [{"name": "H200"}], "kept_files": "1"}
    for run in Run.objects.filter(state="done"):
        factories.set_environment(run, own)
    Run.objects.filter(state="done").update(finished_at=Now())
    add_pairs(answer_for_another("refuted"), 1.01)
    beside = factories.create_case(factories.create_project("beside"))
    (commit,) = factories.create_commits(beside.project, 1)
    factories.set_environment(factories.create_run(commit, beside, finished_at=Now()), environment)
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    (asked,) = suspected.experiments.exclude(state="cancelled")
    assert asked.state == state


def test_a_run_that_waited_long_tells_of_when_it_was_measured(
    line: list[Commit], answer_for_another: Callable[..., Experiment]
) -> None:
    """Of a long history runs are requested at once, and measured in any order."""
    for run in Run.objects.filter(state="done"):
        factories.set_environment(run, {"driver": "550.1"})
    Run.objects.filter(state="done").update(claimed_at=Now(), finished_at=Now())
    add_pairs(answer_for_another("refuted"), 1.01)
    first = Run.objects.filter(state="done").earliest("pk")
    factories.set_environment(first, {"driver": "560.1"})
    Run.objects.filter(pk=first.pk).update(
        claimed_at=Now() + timedelta(hours=1), finished_at=Now() + timedelta(hours=2)
    )
    suspected = Regression.objects.earliest("pk")
    advance_proof(suspected.pk)
    (asked,) = suspected.experiments.exclude(state="cancelled")
    assert asked.state == "requested"


def test_where_nothing_was_measured_since_no_environment_is_read(
    line: list[Commit],
    answer_for_another: Callable[..., Experiment],
    django_assert_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    """The project is locked meanwhile."""
    for run in Run.objects.filter(state="done"):
        factories.set_environment(run, {"driver": "550.1"})
    Run.objects.filter(state="done").update(claimed_at=Now(), finished_at=Now())
    measured = answer_for_another("refuted")
    with django_assert_num_queries(8):
        assert not is_outdated(measured)


@pytest.mark.parametrize(("times", "state", "verdicts"), [(2, "done", 1), (3, "requested", 0)])
def test_pairs_that_were_reused_have_answered_once(
    line: list[Commit],
    answer_for_another: Callable[..., Experiment],
    times: int,
    state: str,
    verdicts: int,
) -> None:
    """They refute it for one regression more; those that many have reused are measured anew."""
    measured = answer_for_another("refuted")
    add_pairs(measured, 1.01)
    suspected, another = Regression.objects.order_by("pk")
    ends = [commit_fact(end) for end in (measured.base_commit, measured.head_commit)]
    proof = ReusedProof(measured.pk, series_fact(another.series), *ends, "refuted", 0.010, 0.014, 0.01)
    for index in range(times):
        another.pk, another.first_bad = None, line[-3 - index]
        another.save()
        reuse_proof(another, proof)
    advance_proof(suspected.pk)
    (asked,) = suspected.experiments.exclude(state="cancelled")
    assert (asked.state, suspected.experiments.filter(verdict="refuted").count()) == (state, verdicts)
