from __future__ import annotations

from typing import Any

import pytest

from dashboard import dispatch
from dashboard.experiments.assignment import side_of
from dashboard.models import Check, Experiment, ForgeConnection, Project
from dashboard.pull_requests import CheckError, CheckRequest, request_check, sweep_checks
from dashboard.pull_requests.case_files import profiled_files
from dashboard.pull_requests.sentences import next_step, reason_sentence
from tests.dashboard.conftest import Repository
from tests.dashboard.factories import create_case, create_commit, profiled_function, store_measured_run
from tests.dashboard.pull_requests.conftest import MANIFEST, TRAIN, Propose, prepare_check

pytestmark = pytest.mark.django_db
SECOND = MANIFEST.replace("loop", "second").replace("train.py", "second.py")


def test_head_and_merge_base_are_asked_for_and_the_base_against_itself(
    check: Check, proposed: Repository
) -> None:
    prepare_check(check)
    base, head = proposed.git("rev-parse", "main~1", "feature").split()
    rows = [row.experiment for row in check.cases.select_related("experiment__base_commit").order_by("pk")]
    assert [(row.base_commit.hash, row.head_commit.hash) for row in rows] == [(base, head), (base, base)]
    assert {(row.question, row.purpose, row.floor, row.most_seconds) for row in rows} == {
        ("bound", "check", 0.03, 600)
    }
    assert [(row.error, row.most_pairs) for row in rows] == [(0.002, 400), (0.01, 6)]
    assert (check.state, check.base_commit) == ("measuring", rows[0].base_commit)


def test_preparing_twice_asks_once(check: Check) -> None:
    prepare_check(prepare_check(check))
    assert Experiment.objects.count() == 2


def test_the_merge_base_stays_when_the_target_moves_on(propose: Propose, proposed: Repository) -> None:
    tip = proposed.git("rev-parse", "main")
    check = propose(onto_hash=tip)
    assert check
    # The branch is merged into its target meanwhile: seen from there, the merge base would be the head.
    proposed.git("checkout", "--quiet", "main")
    proposed.git("merge", "--quiet", "--no-ff", "--message", "Merge", "feature")
    base = prepare_check(check).base_commit
    assert base
    assert base.hash == proposed.git("rev-parse", f"{tip}~1")


@pytest.mark.parametrize(
    ("kind", "ref"), [("github", "refs/pull/7/head"), ("gitlab", "refs/merge-requests/7/head")]
)
def test_a_fork_is_fetched_from_the_ref_that_its_forge_shows(
    tracked: Project, propose: Propose, proposed: Repository, kind: str, ref: str
) -> None:
    proposed.git("checkout", "--quiet", "--detach", "feature")
    head = proposed.commit("From elsewhere", train_py=TRAIN.replace("8_000", "9_000"))
    proposed.git("update-ref", ref, head)
    values = {"api_address": "https://forge.example", "repository": "a/b", "token": "t"}
    ForgeConnection.objects.create(project=tracked, kind=kind, **values)
    proposed.git("checkout", "--quiet", "main")
    check = propose(head_hash=head)
    assert check
    assert prepare_check(check).state == "measuring"
    measured = check.cases.get(is_control=False).experiment
    base = side_of(measured.base_commit, measured.base_configuration)
    proposed_head = side_of(measured.head_commit, measured.head_configuration)
    assert (base.on_branch, proposed_head.on_branch) == (True, False)


def test_a_head_that_is_gone_is_not_known(propose: Propose) -> None:
    check = propose(head_hash="1" * 40)
    assert check
    prepare_check(check)
    assert (check.state, check.answer, check.reason["code"]) == ("done", "not known", "head is gone")


def test_histories_without_a_common_commit_are_not_compared(propose: Propose, proposed: Repository) -> None:
    proposed.git("checkout", "--quiet", "--orphan", "other")
    check = propose(head_hash=proposed.commit("Begin anew"))
    assert check
    prepare_check(check)
    assert (check.answer, check.reason) == ("not known", {"code": "no merge base", "onto": "main"})


def test_prose_alone_passes_at_once(tracked: Project, proposed: Repository) -> None:
    proposed.git("checkout", "--quiet", "-b", "prose", "main")
    proposed.commit("Explain", README_md="More words")
    check = prepare_check(request_check(tracked, CheckRequest("prose")))
    assert (check.state, check.answer, check.reason["code"]) == ("done", "not worse", "nothing touched")
    assert not Experiment.objects.exists()


def test_what_is_on_its_target_already_says_so(tracked: Project, proposed: Repository) -> None:
    check = prepare_check(request_check(tracked, CheckRequest("main~1")))
    assert (check.state, check.answer) == ("done", "not worse")
    assert reason_sentence(check.reason) == "It is on main already: there is nothing to compare."


def test_a_benchmark_that_the_head_has_not_is_refused(tracked: Project, proposed: Repository) -> None:
    with pytest.raises(CheckError, match=r"^benchmarks: Commit .* has no benchmark 'lop'; did you mean loop"):
        request_check(tracked, CheckRequest("feature", benchmarks=["lop"]))
    assert not Check.objects.exists()


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ({"code": "no merge base"}, ""),
        (
            {"code": "can't be measured", "text": "x"},
            "Mend that and check the new head; where no code is to blame, run this one again.",
        ),
        ({}, "Run it again, with more minutes or on a quieter machine."),
    ],
)
def test_what_is_not_known_says_what_may_help(reason: dict[str, str], advice: str) -> None:
    assert next_step(Check(state="done", answer="not known", reason=reason)) == advice


def test_a_broken_manifest_is_not_known(tracked: Project, proposed: Repository) -> None:
    proposed.commit("Break it", paceline_toml="[benchmarks")
    check = prepare_check(request_check(tracked, CheckRequest("feature")))
    assert (check.answer, check.reason["code"]) == ("not known", "can't be measured")
    assert "paceline.toml" in check.reason["text"]


def test_only_the_cases_that_run_what_changed_are_measured(tracked: Project, proposed: Repository) -> None:
    proposed.git("checkout", "--quiet", "main")
    proposed.commit("Add a second one", paceline_toml=MANIFEST + SECOND, second_py=TRAIN)
    commit = create_commit(tracked, 1)
    for benchmark, file in (("loop", "train.py"), ("second", "second.py")):
        case = create_case(tracked, benchmark)
        store_measured_run(commit, case, {}, functions=[profiled_function("learn", file)])
    proposed.git("checkout", "--quiet", "-b", "part")
    proposed.commit("Change the second one", second_py=TRAIN.replace("8_000", "9_000"))
    check = prepare_check(request_check(tracked, CheckRequest("part")))
    assert {str(row.configuration.case) for row in check.cases.all()} == {"second"}
    assert check.left_out == [{"case": "loop", "code": "not touched"}]


@pytest.mark.parametrize(
    "document",
    [
        {"loaders": [{"workers": [{"worker": 0}]}]},
        {"helpers": [{"name": "augment"}]},
        {"counting": {"doubts": ["processes"]}},
    ],
)
def test_a_case_with_other_processes_is_measured_at_any_code(
    tracked: Project, proposed: Repository, document: dict[str, Any]
) -> None:
    commit = create_commit(tracked, 1)
    for benchmark, more in (("loop", document), ("second", {"loaders": [{"workers": []}]})):
        functions = [profiled_function("learn", f"{benchmark}.py")]
        store_measured_run(commit, create_case(tracked, benchmark), {}, functions=functions, document=more)
    found = [profiled_files(tracked, benchmark, "") for benchmark in ("loop", "second")]
    assert [known.all for known in found if known] == [False, True]


def test_new_cases_and_other_versions_are_left_out(tracked: Project, proposed: Repository) -> None:
    proposed.git("checkout", "--quiet", "main")
    proposed.commit("Add two", paceline_toml=MANIFEST + SECOND)
    proposed.git("checkout", "--quiet", "-b", "part")
    third = SECOND.replace("second]", "third]")
    changed = SECOND.replace("version = 1", "version = 2")
    proposed.commit("Change", paceline_toml=MANIFEST + changed + third)
    check = prepare_check(request_check(tracked, CheckRequest("part")))
    assert check.left_out == [
        {"case": "second", "code": "another version"},
        {"case": "third", "code": "new"},
    ]
    # Nothing is left to compare: it is said of each case, also of what only the merge base has.
    proposed.commit("Rename", paceline_toml=MANIFEST.replace("benchmarks.loop", "benchmarks.ring"))
    check = prepare_check(request_check(tracked, CheckRequest("part")))
    assert check.reason["code"] == "no common case"
    assert [(row["case"], row["code"]) for row in check.left_out] == [
        *[("ring", "new"), ("loop", "gone"), ("second", "gone")]
    ]


def test_cases_without_minutes_are_left_out(tracked: Project, proposed: Repository) -> None:
    proposed.git("checkout", "--quiet", "main")
    proposed.commit("Add a second one", paceline_toml=MANIFEST + SECOND, second_py=TRAIN)
    proposed.git("checkout", "--quiet", "-b", "both")
    proposed.commit("Change both", train_py=TRAIN + "\n", second_py=TRAIN + "\n")
    check = prepare_check(request_check(tracked, CheckRequest("both", minutes=2)))
    assert check.left_out == [{"case": "second", "code": "no time"}]
    assert check.cases.count() == 2


def test_what_is_forgotten_is_swept_up(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *call: sent.append(call))
    sweep_checks()
    assert sent == [(dispatch.PREPARE_CHECK, check.pk)]
