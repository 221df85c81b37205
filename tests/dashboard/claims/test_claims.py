"""Claims on the site: what is read and asked, how they stand, who is told; pairs are made up here."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from paceline.claims.claims_file import parse_claims

from dashboard import claims, dispatch, runs
from dashboard.access import command_account
from dashboard.alerts.messages import compose_message
from dashboard.claims import watching
from dashboard.claims.standing import MeasuredVerdict, stand_along_branch
from dashboard.claims.starting import ratio_range
from dashboard.claims.watching import start_next, watch_project
from dashboard.models import (
    Case,
    Channel,
    Claim,
    ClaimMeasurement,
    ClaimsFile,
    Commit,
    Delivery,
    Experiment,
    ExperimentPair,
    Machine,
    Project,
)
from dashboard.repositories import DETACHED
from dashboard.sentences.comparisons import claims as sentences
from tests.dashboard import factories
from tests.dashboard.claims.conftest import CLAIMS, MANIFEST, write_claims
from tests.dashboard.conftest import Repository
from workers.site import tasks


def ask_by_command(project: Project, **how: Any) -> claims.RequestedClaims:
    return claims.request_claims(project, actor=command_account(), **how)


def end_experiment(experiment: Experiment, ratio: float, half: float = 0.01) -> None:
    """End it with so much throughput of the head, and with pairs whose phases say the same."""
    Experiment.objects.filter(pk=experiment.pk).update(
        state="done", verdict="estimated", ratio=ratio, low=ratio - half, high=ratio + half
    )
    for index in range(6):
        noise = 1 + 0.002 * (index % 3)
        base, head = 1.0 * noise, 1.0 / ratio
        phases = {"act": [0.2 * noise, 0.2 * head], "learn": [0.7 * noise, 0.7 * head]}
        ExperimentPair.objects.create(
            experiment=experiment,
            index=index,
            base_first=True,
            base=base,
            head=head,
            phases=phases,
            seconds=5,
        )
    # As the message does that ends an experiment; said twice, it does no more.
    claims.experiment_ended(experiment.pk)
    claims.experiment_ended(experiment.pk)


def measure_at_new_commit(project: Project, repository: Repository, ratio: float, half: float = 0.01) -> None:
    repository.commit("Change it", train_py=f"print({ratio})\n")
    ask_by_command(project, keys=["fused"])
    end_experiment(Experiment.objects.filter(state="requested").latest("pk"), ratio, half)


def get_claim(key: str = "fused") -> Claim:
    return Claim.objects.select_related("newest", "since").get(key=key)


def test_each_claim_is_asked_for_or_says_why_not(project: Project, repository: Repository) -> None:
    asked = ask_by_command(project)
    assert (asked.experiments, asked.by_runs, asked.unmeasured) == (2, 0, 2)
    reasons = dict(Claim.objects.values_list("key", "reason__code"))
    assert reasons == {"fused": None, "together": None, "share": "no run", "window": "own window"}
    spelled = {
        row.purpose: (row.range_low, row.range_high)
        for row in Experiment.objects.filter(metric__name="throughput")
    }
    assert spelled == {"claim": pytest.approx((1.45, 1.55))}
    # Asked again while they wait, nothing is measured twice.
    ask_by_command(project)
    assert Experiment.objects.count() == 2


def test_a_sum_of_phases_is_weighed_from_the_pairs(project: Project, repository: Repository) -> None:
    ask_by_command(project)
    end_experiment(Experiment.objects.get(metric__name="step_time"), 1.4)
    newest = get_claim("together").newest
    assert newest is not None
    assert (newest.verdict, newest.evidence["samples"]) == ("holds", 6)
    assert newest.value == pytest.approx(1.4, rel=0.01)


@pytest.mark.parametrize(("noise", "verdict"), [(0.0, "not known"), (0.004, "holds")])
def test_phases_of_sides_in_turns_are_weighed_by_typical_steps(
    project: Project, repository: Repository, noise: float, verdict: str
) -> None:
    """Means of pairs that lie 7 % apart don't tell; `noise`: of typical steps, where pairs have them."""
    write_claims(repository, CLAIMS.replace('act+learn"', 'act+learn"\nat_least = 1.1'))
    ask_by_command(project)
    experiment = Experiment.objects.get(metric__name="step_time")
    Experiment.objects.filter(pk=experiment.pk).update(
        state="done", verdict="estimated", in_turns=True, ratio=0.8, low=0.6, high=1.0
    )
    for index, off in enumerate((0.7, -1.2, 0.4, 1.4, -0.9, -0.4, 1.1, -1.0)):
        means, typical = 0.8 * (1 + 0.07 * off), 0.8 * (1 + noise * off)
        own = {"act": [0.2, 0.2 * typical], "learn": [0.7, 0.7 * typical]}
        experiment.pairs.create(
            index=index,
            base_first=index % 2 == 0,
            base=1.0,
            head=means,
            phases={"act": [0.2, 0.2 * means], "learn": [0.7, 0.7 * means]},
            typical_phases=own if noise else {},
            seconds=5,
        )
    claims.experiment_ended(experiment.pk)
    newest = get_claim("together").newest
    assert newest is not None
    assert newest.verdict == verdict


@pytest.mark.parametrize("tainted", [False, True])
def test_what_no_run_could_tell_is_judged_by_the_first_that_does(
    project: Project, repository: Repository, tainted: bool
) -> None:
    commit = ask_by_command(project).commit
    asked = sentences.reason_text(get_claim("share").reason)
    assert asked == "it is judged as soon as a run has measured the case"
    case = Case.objects.get(key="fused=true,size=8")
    # Nothing of what is claimed: it says nothing of it.
    without_phases = factories.create_run(commit, case)
    factories.add_point(without_phases, factories.get_series(without_phases, "step_time"), 0.01)
    claims.run_stored(without_phases.pk)
    assert sentences.reason_text(get_claim("share").reason) == asked
    run = factories.create_run(commit, case)
    factories.add_point(run, factories.get_series(run, "step_time"), 0.01, tainted)
    factories.add_point(run, factories.get_series(run, "phase_time", "learn"), 0.007, tainted)
    claims.run_stored(run.pk)
    claims.run_stored(run.pk)
    share = get_claim("share")
    measured = list(ClaimMeasurement.objects.filter(claim=share).values_list("run", "requester"))
    assert measured == ([] if tainted else [(run.pk, "policy")])
    assert (share.verdict, share.reason.get("code")) == (("", "tainted runs") if tainted else ("holds", None))


def test_one_case_is_judged_by_its_newest_run(project: Project, repository: Repository) -> None:
    commit = ask_by_command(project).commit
    run = factories.create_run(commit, Case.objects.get(key="fused=true,size=8"))
    factories.add_point(run, factories.get_series(run, "step_time"), 0.01)
    factories.add_point(run, factories.get_series(run, "phase_time", "learn"), 0.007)
    assert ask_by_command(project).by_runs == 1
    share = get_claim("share")
    assert share.newest is not None
    assert (share.verdict, share.newest.run, share.reason) == ("holds", run, {})
    assert sentences.evidence_text(share.newest) == "3 repetitions"
    # The same run says nothing new.
    ask_by_command(project)
    assert ClaimMeasurement.objects.filter(claim=share).count() == 1


def test_a_disturbed_run_tells_what_is_counted(project: Project, repository: Repository) -> None:
    counted = """
[[claims]]
id = "calls"
claim = "A step calls few functions"
metric = "function_calls"
at_most = 200
case = {}
"""
    write_claims(repository, CLAIMS + counted)
    commit = ask_by_command(project).commit
    run = factories.create_run(commit, Case.objects.get(key="fused=true,size=8"))
    for name, phase, value, tainted in (
        ("step_time", "", 0.01, True),
        ("phase_time", "learn", 0.007, True),
        ("function_calls", "", 120, False),
    ):
        factories.add_point(run, factories.get_series(run, name, phase), value, tainted)
    assert ask_by_command(project).by_runs == 1
    assert get_claim("calls").verdict == "holds"
    share = get_claim("share")
    assert (share.newest, share.reason["code"]) == (None, "tainted runs")
    assert sentences.reason_text(share.reason).startswith("all runs of the case are tainted")
    # A newer run that taints the counter as well is none that tells.
    wrong = factories.create_run(commit, Case.objects.get(key="fused=true,size=8"))
    factories.add_point(wrong, factories.get_series(wrong, "function_calls"), 500, tainted=True)
    ask_by_command(project)
    calls = get_claim("calls").newest
    assert calls is not None
    assert calls.run == run


def test_each_turn_is_told_once(
    project: Project, repository: Repository, sent: list[tuple[Any, ...]]
) -> None:
    Channel.objects.create(project=project, kind="webhook", address="https://example.org/", secret="s")
    for ratio, half in ((1.5, 0.01), (1.01, 0.005), (1.0, 0.005), (1.5, 0.4), (1.5, 0.01), (1.02, 0.005)):
        measure_at_new_commit(project, repository, ratio, half)
    verdicts = ClaimMeasurement.objects.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["holds", "none", "none", "not known", "holds", "smaller"]
    events = Delivery.objects.order_by("pk").values_list("event", flat=True)
    assert list(events) == ["claim_refuted", "claim_holds", "claim_refuted"]
    told = Delivery.objects.all()
    digest = Delivery(channel=told[0].channel, event="digest", next_attempt_at=timezone.now())
    collected = list(told)
    digest.save()
    digest.collected.set(collected)
    assert compose_message(digest).title == f"Digest of {project.slug}: 3 claims"
    claim = get_claim()
    assert (claim.standing, claim.since) == ("refuted", claim.newest and claim.newest.commit)


def test_what_a_force_push_took_away_no_longer_counts(project: Project, repository: Repository) -> None:
    measure_at_new_commit(project, repository, 1.5)
    held = get_claim().newest
    measure_at_new_commit(project, repository, 1.0)
    assert get_claim().standing == "refuted"
    for kept in (held, None):
        lost = get_claim().newest
        assert lost is not None
        Commit.objects.filter(pk=lost.commit_id).update(branch=DETACHED)
        claims.history_rewritten(project.pk, [lost.commit_id])
        assert get_claim().newest == kept
    assert (get_claim().verdict, get_claim().standing, get_claim().since) == ("", "", None)


def test_what_never_held_and_more_than_claimed_are_no_alarm(
    project: Project, repository: Repository, sent: list[tuple[Any, ...]]
) -> None:
    Channel.objects.create(project=project, kind="webhook", address="https://example.org/", secret="s")
    for ratio in (1.0, 2.5, 2.6):
        measure_at_new_commit(project, repository, ratio)
    assert (get_claim().verdict, get_claim().standing) == ("larger", "holds")
    assert not Delivery.objects.exists()


def test_an_older_commit_that_is_measured_later_moves_nothing(
    project: Project, repository: Repository
) -> None:
    first = ask_by_command(project, keys=["fused"]).commit
    Experiment.objects.all().delete()
    ClaimMeasurement.objects.all().delete()
    measure_at_new_commit(project, repository, 1.5)
    ask_by_command(project, keys=["fused"], revision=first.hash)
    end_experiment(Experiment.objects.get(base_commit=first), 1.0)
    claim = get_claim()
    assert (claim.verdict, claim.standing) == ("holds", "holds")
    assert ClaimMeasurement.objects.filter(claim=claim).count() == 2


def test_a_claim_that_says_something_else_begins_anew(project: Project, repository: Repository) -> None:
    measure_at_new_commit(project, repository, 1.5)
    write_claims(
        repository, CLAIMS.replace("value = [1.5]", "value = [3]").replace('id = "share"', 'id = "part"')
    )
    ask_by_command(project, keys=["fused"])
    assert (get_claim().verdict, get_claim().newest) == ("", None)
    assert (get_claim("share").listed, get_claim("part").listed) == (False, True)


def test_a_file_that_cannot_be_read_says_which_field(project: Project, repository: Repository) -> None:
    ask_by_command(project)
    sha = write_claims(repository, CLAIMS.replace("at_least", "at_leest"))
    with pytest.raises(claims.ClaimsError, match=r"claims\[2\]\.at_leest: is unknown, did you mean|at_leest"):
        ask_by_command(project)
    commit = project.commits.create(
        hash=sha, branch="main", position=9, committed_at=timezone.now(), subject="Break it"
    )
    watch_project(project)
    file = ClaimsFile.objects.get()
    assert (file.commit, "claims[2].at_leest" in file.problem) == (commit, True)
    assert Claim.objects.filter(listed=True).count() == 4


def test_claims_beside_two_scripts_name_their_benchmark(project: Project, repository: Repository) -> None:
    folder = repository.folder / "snake"
    manifest = MANIFEST.replace('"walker.py"', '"snake/walker.py"')
    repository.commit("Move the other script", paceline_toml=manifest)
    with pytest.raises(claims.ClaimsError, match=r"the one that it is about: claims\.snake\.toml"):
        ask_by_command(project, benchmark="snake")
    (folder / "claims.toml").rename(folder / "claims.snake.toml")
    repository.commit("Name it", paceline_toml=manifest)
    assert ask_by_command(project).experiments == 2
    assert list(ClaimsFile.objects.values_list("benchmark", flat=True)) == ["snake"]


@pytest.mark.parametrize(
    ("how", "field", "sentence"),
    [
        ({"revision": "nowhere"}, "commit", "has no commit 'nowhere'"),
        ({"benchmark": "walker"}, "benchmark", "walker has no claims.toml, unlike snake."),
        ({"keys": ["fusde"]}, "claims", "There is no claim 'fusde'; there are fused, together"),
        ({"pool": "lab"}, "pool", "There is no pool 'lab'."),
    ],
)
def test_what_is_not_there_gets_one_sentence(
    project: Project, repository: Repository, how: dict[str, Any], field: str, sentence: str
) -> None:
    with pytest.raises(claims.ClaimsError, match=re.escape(sentence)) as refused:
        ask_by_command(project, **how)
    assert refused.value.field == field
    assert not Claim.objects.exists()


def test_claims_are_read_as_soon_as_their_commit_is_known(
    project: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *message: sent.append(message))
    trigger = project.triggers.create(source="web")
    runs.resolve_trigger(trigger.pk)
    assert (dispatch.READ_CLAIMS, project.pk) in sent
    tasks.read_claims(project.pk)
    file = ClaimsFile.objects.get()
    assert file.commit is not None
    assert (file.commit.hash, file.problem) == (repository.git("rev-parse", "HEAD"), "")
    assert not ClaimMeasurement.objects.exists()


def test_the_policy_asks_when_its_time_has_come(project: Project, repository: Repository) -> None:
    sha = repository.git("rev-parse", "HEAD")
    project.commits.create(hash=sha, branch="main", position=5, committed_at=timezone.now())
    project.mirror.fetch()
    watch_project(project)
    assert (ClaimsFile.objects.get().problem, ClaimMeasurement.objects.count()) == ("", 0)
    ClaimsFile.objects.update(asked_at=timezone.now() - timedelta(days=8))
    watch_project(Project.objects.get())
    waiting = ClaimMeasurement.objects.filter(requester="policy", experiment=None)
    assert waiting.count() == 2
    # Nothing new is there to measure.
    ClaimsFile.objects.update(asked_at=timezone.now() - timedelta(days=8))
    watch_project(Project.objects.get())
    assert waiting.count() == 2

    machine = Machine.objects.create(name="bench-1", pool=waiting[0].head.pool, seen_at=timezone.now())
    started = start_next(project)
    assert started
    assert start_next(project) is None  # One at a time.
    Experiment.objects.update(
        state="done", verdict="undecided", machine=machine, measuring_at=timezone.now(), seconds=9000
    )
    assert start_next(project) is None  # A tenth of a day is spent.
    Experiment.objects.update(seconds=60)
    assert start_next(project)


def test_since_when_is_the_first_commit_of_an_unbroken_row() -> None:
    def measured(*verdicts: str) -> list[MeasuredVerdict]:
        return [MeasuredVerdict(at, at, at, verdict) for at, verdict in enumerate(verdicts)]

    found = stand_along_branch(measured("holds", "none", "not known", "none", "none"), better=True)
    assert found
    assert (found.verdict, found.standing, found.since) == ("none", "refuted", 3)
    unsure = stand_along_branch(measured("holds", "not known"), better=True)
    assert unsure
    assert (unsure.verdict, unsure.standing, unsure.since) == ("not known", "holds", 1)
    assert stand_along_branch([], better=True) is None


@pytest.mark.parametrize(
    ("lines", "ends"),
    [
        ("value = [2, 4]", (1.9, 4.3)),
        ("at_least = 2", (1.9, None)),
        ('metric = "step_time"\nvalue = [2, 4]', (1 / 4.3, 1 / 1.9)),
        ('metric = "step_time"\nat_least = 2', (None, 1 / 1.9)),
        ('direction = "same"\nvalue = [1.25]', (0.8, 1.25)),
        ('direction = "worse"\nvalue = [2]', (1 / 2.1, 1 / 1.9)),
    ],
)
def test_an_experiment_gets_the_ratios_that_agree(
    lines: str, ends: tuple[float | None, float | None]
) -> None:
    text = f'document = "d"\n[[claims]]\nid = "a"\nclaim = "c"\nbefore = {{}}\nafter = {{ b = 1 }}\n{lines}\n'
    assert ratio_range(parse_claims(text, "claims.toml").claims[0]) == pytest.approx(ends)


def test_the_example_of_the_page_is_a_file_of_claims() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "claims.md").read_text()
    example = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    found = parse_claims(example, "docs/claims.md").claims
    assert {claim.key for claim in found} == {"fused", "learning-share", "less-copying", "calls"}
    assert sentences.accepted_text(found[0]) == "1.27 to 1.33x agrees"
    assert "*1.3 times* accepts 1.27 to 1.33" in page


def test_odd_claims_of_one_project_hold_up_no_others(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = [factories.create_project(slug) for slug in ("odd", "usual")]
    watched: list[Project] = []

    def watch_or_fail(project: Project) -> None:
        watched.append(project)
        if project == projects[0]:
            raise KeyError("x")

    monkeypatch.setattr(watching, "watch_project", watch_or_fail)
    claims.watch_claims()
    assert watched == projects
