from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from dashboard.regressions.explanation.commit_difference import changes_environment
from tests.trainers.planted_training import learned_fingerprint
from trainers.planted import __main__ as command
from trainers.planted import calibration
from trainers.planted.changes.accidents import BROKEN, MENDED, REDEFINED, revert_change
from trainers.planted.changes.comments import REMARKS, comment_changes
from trainers.planted.changes.packages import REQUIRED, UPDATED
from trainers.planted.changes.plants import KEPT, SMOOTHED
from trainers.planted.edits import Tree, base_tree
from trainers.planted.histories import larger, same, sizing
from trainers.planted.repository import Repository

SMALL = sizing.Knob(5, 0.35)
KNOBS = {plant.subject: SMALL for plant in (*larger.TIMED, KEPT)}


def run_git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", folder, *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The larger history, with knobs that nobody measured."""
    folder = tmp_path_factory.mktemp("larger") / "snake"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(larger, "size_changes", lambda _seed, _say: (REQUIRED.apply(base_tree()), KNOBS))
        return larger.create_history(folder, 3, print) | {"folder": folder}


def commit_of(made: dict[str, Any], event: str) -> str:
    return str(next(entry["commit"] for entry in made["planted"] if entry["event"] == event))


def test_the_larger_history_has_enough_commits_and_measures_half(made: dict[str, Any]) -> None:
    assert len(made["commits"]) == len(set(made["commits"])) == larger.COMMITS == 41
    assert len(made["measured"]) == 20
    assert made["measured"][-1] == made["commits"][-1] == run_git(made["folder"], "rev-parse", "main")
    assert run_git(made["folder"], "status", "--porcelain") == ""


def test_two_culprits_lie_in_one_unmeasured_range(made: dict[str, Any]) -> None:
    places = [
        made["commits"].index(commit_of(made, f"{order} of two in one range"))
        for order in ("first", "second")
    ]
    between = made["commits"][places[0] : places[1] + 1]
    assert len(between) == 3
    assert not set(between) & set(made["measured"])


def test_the_merge_brings_its_culprit_from_a_branch(made: dict[str, Any]) -> None:
    entry = next(entry for entry in made["planted"] if entry["event"] == "came by a merge")
    first, second = run_git(made["folder"], "rev-parse", f"{entry['merge']}^1", f"{entry['merge']}^2").split()
    brought = run_git(made["folder"], "rev-list", f"{first}..{second}").split()
    assert brought[1] == entry["commit"]
    assert run_git(made["folder"], "merge-base", first, second) not in (first, second)
    assert entry["commit"] not in run_git(made["folder"], "rev-list", "--first-parent", "main").split()


def test_the_commit_that_does_not_run_is_mended_by_the_next_one(made: dict[str, Any]) -> None:
    broken = commit_of(made, "doesn't run")
    mended = made["commits"][made["commits"].index(broken) + 1]
    assert "from checks import check" in run_git(made["folder"], "show", f"{broken}:train.py")
    assert "checks.py" not in run_git(made["folder"], "ls-tree", "--name-only", broken).split()
    assert "checks.py" in run_git(made["folder"], "ls-tree", "--name-only", mended).split()


def test_a_commit_without_its_file_does_not_run() -> None:
    with pytest.raises(ModuleNotFoundError, match="checks"):
        learned_fingerprint(BROKEN.apply(base_tree()))
    assert learned_fingerprint(MENDED.apply(BROKEN.apply(base_tree()))) == learned_fingerprint(base_tree())


def test_the_repair_takes_back_every_line(made: dict[str, Any]) -> None:
    entry = next(entry for entry in made["planted"] if entry["event"] == "repaired later")
    files = ("model.py", "train.py")
    before, after = (
        [run_git(made["folder"], "show", f"{commit}:{file}") for file in files]
        for commit in (f"{entry['commit']}^", entry["repaired_by"])
    )
    assert before == after
    assert entry["repaired_by"] in made["measured"]
    tree = base_tree()
    assert revert_change(SMOOTHED.change(7)).apply(SMOOTHED.apply(tree, 7)) == tree


def test_the_package_gets_slower_and_says_its_version(tmp_path: Path) -> None:
    old = REQUIRED.apply(base_tree())
    new = UPDATED.apply(old, 30)
    assert learned_fingerprint(new) == learned_fingerprint(old) == learned_fingerprint(base_tree())
    calibration.write_tree(new, tmp_path)
    (found,) = metadata.distributions(path=[str(tmp_path / "requirements" / "meters-2.0.0")])
    assert (found.metadata["Name"], found.version) == ("meters", "2.0.0")
    assert new["requirements/pins.txt"] == "meters==2.0.0\n"


def test_the_update_touches_nothing_but_what_is_installed() -> None:
    assert {edit.path.split("/")[0] for edit in UPDATED.edits} == {"requirements"}
    assert all(changes_environment([edit.path]) for edit in UPDATED.edits)


def test_another_definition_of_the_benchmark_is_another_version() -> None:
    manifest = REDEFINED.apply(base_tree())["paceline.toml"]
    assert "\nversion = 2\n" in manifest
    assert "params = { batch_size = 64 }" in manifest


@pytest.mark.parametrize("seed", range(12))
def test_the_larger_history_fits_together_whatever_is_drawn(seed: int) -> None:
    steps = list(larger.steps_of(KNOBS, random.Random(seed)))  # noqa: S311 - nothing secret is drawn
    tree: Tree = REQUIRED.apply(base_tree())
    for step in steps:
        tree = step.change.apply(tree)
    assert all(ast.parse(text) for path, text in tree.items() if path.endswith(".py"))
    assert len({step.change.subject for step in steps}) == len(steps)


def test_a_repaired_regression_leaves_the_speed_as_it_was() -> None:
    growths = list(larger.step_growths(KNOBS))
    repaired = [what for what, _ in larger.LINE].index(larger.REVERT)
    assert (1 + growths[repaired]) * 1.35 == pytest.approx(1)
    assert len([growth for growth in growths if growth > 0]) == len(larger.TIMED)


def test_remarks_change_no_line_of_the_program() -> None:
    tree: Tree = base_tree()
    following = comment_changes()
    for _ in range(len(REMARKS)):
        commented = next(following).apply(tree)
        assert commented != tree
        assert all(
            ast.dump(ast.parse(commented[path])) == ast.dump(ast.parse(tree[path])) for path in SOURCES
        )
        tree = commented


SOURCES = [path for path in base_tree() if path.endswith(".py")]


def test_remarks_are_taken_back_and_written_again_for_a_longer_history() -> None:
    tree = start = base_tree()
    following = comment_changes()
    for _ in range(2 * len(REMARKS)):
        tree = next(following).apply(tree)
    assert tree == start
    assert next(following).apply(tree) != start


def test_a_slower_commit_can_be_planted_among_the_same_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "race_programs", lambda *_: (0.001, 0.0))
    monkeypatch.setattr(calibration, "choose_knob", lambda *_: (5, 0.1))
    made = same.create_history(tmp_path, 4, lambda _sentence: None, commits=30, slower=True)
    (entry,) = made["planted"]
    assert made["measured"] == made["commits"]
    assert 10 <= made["commits"].index(entry["commit"]) < 20
    assert (entry["phase"], entry["kind"]) == ("learn", "regression")


def test_the_command_makes_the_history_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibration, "race_programs", lambda *_: (0.001, 0.0))
    arguments = ["--history", "same", "--commits", "12", "--seed", "2", "--json"]
    monkeypatch.setattr(sys, "argv", ["planted", "--repository", str(tmp_path / "a"), *arguments])
    command.main()
    result = json.loads(capsys.readouterr().out)
    assert (len(result["commits"]), result["planted"]) == (12, [])


def test_a_branch_starts_where_the_history_is(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    first = repository.commit("one", {"a.py": "a = 1\n"})
    repository.branch("beside")
    second = repository.commit("two", {"b.py": "b = 1\n"})
    repository.switch("main")
    assert run_git(tmp_path / "r", "rev-parse", "HEAD") == first
    merge = repository.merge("beside")
    assert run_git(tmp_path / "r", "rev-parse", f"{merge}^1", f"{merge}^2").split() == [first, second]
