"""From rows, documents and a real repository to a cause class."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.models import Case, Commit, Machine, Project, Regression, Run, Sentinel
from dashboard.regressions import advance_proof, judge_run
from dashboard.sentences.regressions.causes import cause_sentence
from dashboard.sentinels import watch_machines
from tests.dashboard import factories
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.sentinels.test_sentinels import store_sentinel_run

COUNT, AT = 9, 5
HOUR = timedelta(hours=1)
START = timezone.now() - timedelta(hours=COUNT + 4)


@pytest.fixture
def case(project: Project) -> Case:
    return factories.create_case(project, "tiny", size=1)


def line_of(project: Project, repository: Repository, **changed: tuple[str, str]) -> list[Commit]:
    """Commits of a repository in which files are the first text before AT and the second from there on."""
    files = [{name: both[place >= AT] for name, both in changed.items()} for place in range(COUNT)]
    names = repository.commit_line(*((f"Commit {place}", written) for place, written in enumerate(files)))
    project.mirror.fetch()
    return [factories.create_commit(project, place, name=name) for place, name in enumerate(names)]


def suspected_regression(
    line: list[Commit], case: Case, *environments: dict[str, Any], in_turn: bool = False
) -> Regression:
    """Every commit measured an hour after the other; 40 % slower from AT on, as the environment is another.

    `in_turn`: machines with one and the other environment measure in turn.

    Of the first points nothing is to be said: they are judged with the next.
    """
    for place, commit in enumerate(line):
        late = place >= AT
        value = (0.014 if late else 0.010) * factories.run_noise(place)
        measured_under = environments[place % 2 if in_turn else late] if environments else {}
        at = START + place * HOUR
        run = factories.store_measured_run(
            commit, case, {"step_time": value}, environment=measured_under, finished_at=at
        )
        if place >= AT - 2:
            judge_run(run.pk)
    return Regression.objects.get()


def end_proof(found: Regression, verdict: str) -> Regression:
    """Let its confirmation end, and act on it."""
    found.experiments.update(
        state="done",
        verdict=verdict,
        machine=Machine.objects.get(name="bench-1"),
        finished_at=timezone.now(),
        ratio=1.4,
        low=1.38,
        high=1.42,
    )
    advance_proof(found.pk)
    found.refresh_from_db()
    return found


def evidence_sentences(found: Regression) -> list[str]:
    return [cause_sentence(evidence) for evidence in found.cause_evidence]


def test_a_confirmed_change_of_code_is_code(repository: Repository, tracked: Project, case: Case) -> None:
    line = line_of(tracked, repository, train_py=("print(1)\n", "print(2)\n"))
    found = end_proof(suspected_regression(line, case), "confirmed")
    assert (found.cause, found.names_commit) == ("code", True)
    assert evidence_sentences(found) == [
        "The suspect train.py:<module> was changed.",
        "Interleaved runs on bench-1, which stood still for both commits, confirm it.",
    ]


def test_a_new_version_of_a_package_is_a_dependency(
    repository: Repository, tracked: Project, case: Case
) -> None:
    line = line_of(tracked, repository, requirements_txt=("numpy==1.26\n", "numpy==2.0\n"))
    old, new = ({"packages": {"numpy": version}} for version in ("1.26", "2.0"))
    found = end_proof(suspected_regression(line, case, old, new), "confirmed")
    assert (found.cause, found.names_commit) == ("dependency", False)
    assert evidence_sentences(found)[:2] == [
        "Installed otherwise: numpy 1.26 → 2.0.",
        "Asked for in: requirements.txt.",
    ]


def test_machines_that_differ_excuse_no_commit(repository: Repository, tracked: Project, case: Case) -> None:
    line = line_of(tracked, repository, train_py=("print(1)\n", "print(2)\n"))
    with_tqdm, without = {"packages": {"tqdm": "4.70.1"}, "driver": "575"}, {"packages": {}, "driver": "570"}
    found = suspected_regression(line, case, with_tqdm, without, in_turn=True)
    assert (found.cause, found.experiments.count()) == ("", 1)
    assert not found.changes.filter(environment_only=True)


def test_more_steps_in_the_manifest_are_the_definition(
    repository: Repository, tracked: Project, case: Case
) -> None:
    line = line_of(
        tracked, repository, paceline_toml=(MANIFEST, MANIFEST.replace("steps = 100", "steps = 200"))
    )
    found = end_proof(suspected_regression(line, case), "confirmed")
    assert found.cause == "benchmark definition"
    assert evidence_sentences(found)[0].startswith("The manifest measures it otherwise: steps 100 → 200")


def test_what_is_refuted_without_a_reason_is_noise(
    repository: Repository, tracked: Project, case: Case
) -> None:
    line = line_of(tracked, repository, train_py=("print(1)\n", "print(2)\n"))
    found = end_proof(suspected_regression(line, case), "refuted")
    assert (found.state, found.cause) == ("refuted", "noise")


def test_a_sentinel_that_moved_names_the_machine(
    repository: Repository, tracked: Project, case: Case
) -> None:
    line = line_of(tracked, repository, train_py=("print(1)\n", "print(2)\n"))
    found = end_proof(suspected_regression(line, case), "refuted")
    sentinel = pinned_sentinel()
    # Measured after the proof has ended: the class is decided again.
    for hours in (0, 1):
        judge_run(store_sentinel_run(sentinel, timezone.now() + hours * HOUR, 0.0139).pk)
    found.refresh_from_db()
    assert found.cause == "machine"
    assert evidence_sentences(found)[0].startswith("The machine bench-1 moved: its sentinel")


def pinned_sentinel() -> Sentinel:
    Machine.objects.update(seen_at=timezone.now())
    watch_machines(timezone.now())
    sentinel = Sentinel.objects.get()
    assert sentinel.points.count() == 1
    for hours in (1, 2, 3):
        store_sentinel_run(sentinel, START + hours * HOUR, 0.010 + hours / 1e5)
    return sentinel


def test_a_slower_calibration_loop_names_the_machine(
    repository: Repository, tracked: Project, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = line_of(tracked, repository, train_py=("print(1)\n", "print(2)\n"))
    found = suspected_regression(line, case)
    for run in Run.objects.select_related("document", "commit"):
        loop = 0.013 if run.commit.position >= AT else 0.010
        run.document.body["repetitions"] = [{"calibration_before": loop, "calibration_after": None}]
        run.document.save()
    found = end_proof(found, "refuted")
    sentence = (
        "The machine itself was 30 % slower in the first run that shows it than in the last one before: "
        "each run times the same short calculation, which no commit changes."
    )
    assert (found.cause, evidence_sentences(found)[0]) == ("machine", sentence)


def test_a_new_kernel_opens_an_entry_that_nobody_proves(project: Project, case: Case) -> None:
    found = suspected_regression(
        factories.create_commits(project, COUNT), case, {"kernel": "6.1"}, {"kernel": "6.2"}
    )
    assert (found.cause, found.proving, found.experiments.count()) == ("driver or system", False, 0)
    assert found.deliveries.count() == 0


def test_a_blamed_change_that_joins_has_it_proved(project: Project, case: Case) -> None:
    line = factories.create_commits(project, COUNT)
    found = suspected_regression(line, case, {"kernel": "6.1"}, {"kernel": "6.2"})
    other = factories.create_case(project, "other")
    for place, commit in enumerate(line):
        value = (0.03 if place >= AT else 0.02) * factories.run_noise(place)
        judge_run(factories.store_measured_run(commit, other, {"step_time": value}).pk)
    found.refresh_from_db()
    assert found.changes.count() == 2
    assert (found.proving, found.cause, found.experiments.count()) == (True, "", 1)
