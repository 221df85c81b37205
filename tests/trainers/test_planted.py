from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests import prepared_python
from tests.trainers.conftest import ROOT
from tests.trainers.planted_training import learned_fingerprint
from trainers.planted import __main__ as command
from trainers.planted import calibration
from trainers.planted.changes.plants import KEPT, LISTED, PICTURE_BYTES, SMOOTHED, SUMMED, VECTORIZED, Plant
from trainers.planted.changes.renaming import RENAMING
from trainers.planted.edits import Edit, Tree, base_tree
from trainers.planted.histories import demo, plan
from trainers.planted.repository import FIRST_DATE, RepositoryError, create_repository

IMPROVABLE = 0.4
SMALL_KNOBS = {"replay": 40, "tensors": 4, "memory": 3, "loss": 9, "improvement": 0}


def seeded_random(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - nothing secret is drawn


def drawn_plan(seed: int) -> list[plan.Planned]:
    return plan.draw_plan(seeded_random(seed), IMPROVABLE)


def laid_out(seed: int) -> tuple[list[tuple[str, Tree]], list[demo.Sized]]:
    sized = [demo.Sized(entry, SMALL_KNOBS[entry.plant.name], entry.size) for entry in drawn_plan(seed)]
    return demo.lay_out(base_tree(), sized, seeded_random(seed)), sized


def level_lengths(entries: Sequence[plan.Planned]) -> list[int]:
    """Of how many measured commits each level consists."""
    measured = plan.measured_indices()
    starts = [0, *(next(i for i, at in enumerate(measured) if at >= entry.position) for entry in entries)]
    return [end - start for start, end in pairwise([*starts, len(measured)])]


@pytest.mark.parametrize("seed", range(40))
def test_enough_measured_commits_lie_between_the_planted_ones(seed: int) -> None:
    entries = drawn_plan(seed)
    first, *others = level_lengths(entries)
    assert first >= 3
    assert min(others) >= 2
    slight = next(index for index, entry in enumerate(entries) if entry.plant is SMOOTHED)
    assert min([first, *others][slight : slight + 2]) >= 3
    assert entries[-1].plant is not SMOOTHED


@pytest.mark.parametrize("seed", range(40))
def test_no_level_lies_between_two_equal_ones(seed: int) -> None:
    level, levels = 1.0, [1.0]
    for entry in drawn_plan(seed):
        if entry.plant is not KEPT:
            level *= 1 + entry.size
            levels.append(level)
    assert min(abs(later / level - 1) for level, later in zip(levels, levels[2:], strict=False)) > 0.09


@pytest.mark.parametrize("seed", range(40))
def test_each_kind_is_planted_once_and_neutral_commits_lie_between(seed: int) -> None:
    entries = drawn_plan(seed)
    names = sorted(entry.plant.name for entry in entries)
    assert names == ["improvement", "loss", "memory", "replay", "tensors"]
    assert min(later.position - earlier.position for earlier, later in pairwise(entries)) >= 3


def test_culprits_are_drawn_among_measured_and_unmeasured_commits() -> None:
    positions = [entry.position for seed in range(40) for entry in drawn_plan(seed)]
    unmeasured = [at for at in positions if at not in plan.measured_indices()]
    assert 0.3 < len(unmeasured) / len(positions) < 0.7


def test_the_measured_commits_are_spread_evenly() -> None:
    measured = plan.measured_indices()
    assert (measured[0], measured[-1], len(measured)) == (0, plan.COMMITS - 1, plan.MEASURED)
    assert {later - index for index, later in pairwise(measured)} == {2}


@pytest.mark.parametrize("seed", range(40))
def test_drawn_sizes_keep_the_promise(seed: int) -> None:
    size = {entry.plant.name: entry.size for entry in drawn_plan(seed)}
    small, large = sorted((size["replay"], size["tensors"]))
    assert plan.SLIGHT[0] < size["loss"] < plan.SLIGHT[1]
    assert plan.SMALL[0] < small < plan.SMALL[1]
    assert plan.LARGE[0] < large < plan.LARGE[1]
    assert plan.MEMORY[0] < size["memory"] < plan.MEMORY[1]
    assert size["improvement"] <= -plan.IMPROVEMENT


def test_seeds_draw_different_histories() -> None:
    orders = {tuple(entry.plant.name for entry in drawn_plan(seed)) for seed in range(40)}
    places = {tuple(entry.position for entry in drawn_plan(seed)) for seed in range(40)}
    assert len(orders) > 6
    assert len(places) > 20
    assert drawn_plan(3) == drawn_plan(3)


@pytest.mark.parametrize("seed", range(20))
def test_changes_fit_together_in_any_order(seed: int) -> None:
    commits, _ = laid_out(seed)
    subjects = [subject for subject, _ in commits]
    assert len(set(subjects)) == plan.COMMITS
    assert {change.subject for change in RENAMING} <= set(subjects)
    for _, tree in commits:
        assert all(ast.parse(text) for path, text in tree.items() if path.endswith(".py"))


def test_every_commit_runs_and_neutral_ones_keep_every_bit() -> None:
    commits, sized = laid_out(11)
    # Drawing other transitions is what one of the planted changes does.
    differs = {entry.planned.position for entry in sized if entry.planned.plant.phase == "sample"}
    parameters = [learned_fingerprint(tree) for _, tree in commits]
    assert {at for at in range(1, plan.COMMITS) if parameters[at] != parameters[at - 1]} <= differs


@pytest.mark.parametrize(
    "plant", [SUMMED, LISTED, KEPT, SMOOTHED, VECTORIZED], ids=lambda plant: str(plant.name)
)
def test_a_planted_change_leaves_the_learning_alone(plant: Plant) -> None:
    tree = base_tree()
    assert learned_fingerprint(plant.apply(tree, SMALL_KNOBS[plant.name])) == learned_fingerprint(tree)


def test_a_larger_knob_makes_a_larger_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "LEAST_ROUNDS", 4)
    tree = base_tree()
    grown = [calibration.race_programs(tree, LISTED.apply(tree, rows), seconds=0.0)[1] for rows in (4, 60)]
    assert grown[0] + 0.5 < grown[1]


@pytest.mark.parametrize("wanted", [0.13, 0.3, 1.2])
def test_the_knob_is_chosen_that_comes_near_to_what_is_wanted(
    wanted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def race(_first: Tree, second: Tree, _seconds: float) -> tuple[float, float]:
        number = int(second["model.py"].partition("RECENT_LOSSES = ")[2].partition("\n")[0])
        return 0.001, 0.01 + number / 40_000

    monkeypatch.setattr(calibration, "race_programs", race)
    knob, growth = calibration.choose_knob(SMOOTHED, base_tree(), wanted, lambda _sentence: None)
    assert growth == pytest.approx(0.01 + knob / 40_000)
    assert growth == pytest.approx(wanted, abs=0.003 + 0.06 * wanted)


def test_programs_race_with_full_memories_that_they_have_not_learned_from() -> None:
    racer = calibration.Racer(base_tree())
    assert len(racer.trainer.replay) == calibration.FILLED + calibration.WARMUP
    assert racer.trainer.batch_size == calibration.BATCH_SIZE


def test_pictures_need_the_memory_that_they_are_said_to() -> None:
    tree = base_tree()
    with prepared_python.prepared_starts():
        more = calibration.peak_memory(KEPT.apply(tree, 60), 90) - calibration.peak_memory(tree, 90)
    assert more == pytest.approx(60 * PICTURE_BYTES, rel=0.15)


def test_an_edit_that_does_not_fit_says_so() -> None:
    with pytest.raises(ValueError, match="0 times, not once"):
        Edit("replay.py", "no such line", "").apply(base_tree())
    with pytest.raises(ValueError, match="is there already"):
        Edit("replay.py", "", "anything").apply(base_tree())


def test_the_repository_holds_every_tree_in_order(tmp_path: Path) -> None:
    commits, _ = laid_out(5)
    folder = tmp_path / "snake"
    hashes = create_repository(folder, commits)
    log = subprocess.run(
        ["git", "-C", folder, "log", "--reverse", "--format=%H %ct %s", "main"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    dates = [int(line.split()[1]) for line in log]
    assert [line.split()[0] for line in log] == hashes
    assert [line.split(maxsplit=2)[2] for line in log] == [subject for subject, _ in commits]
    assert dates == sorted(set(dates))
    assert dates[0] == FIRST_DATE.timestamp()
    assert (folder / "replay.py").read_text() == commits[-1][1]["replay.py"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(RepositoryError, match="is there already and isn't empty"):
        create_repository(tmp_path, [])


def test_the_command_refuses_a_taken_folder_before_it_measures(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    arguments = [sys.executable, "-m", "trainers.planted", "--repository", str(tmp_path)]
    ran = prepared_python.run_prepared(arguments, cwd=ROOT, capture_output=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"planted: --repository {tmp_path} is there already and isn't empty\n"


def test_the_command_prints_what_it_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # That sizes come true isn't this test's subject.
    monkeypatch.setattr(calibration, "race_programs", lambda *_: (0.001, -IMPROVABLE))
    monkeypatch.setattr(calibration, "choose_knob", lambda *_: (5, 0.3))
    monkeypatch.setattr(calibration, "peak_memory", lambda *_: 300_000_000)
    monkeypatch.setattr(
        sys, "argv", ["planted", "--repository", str(tmp_path / "a"), "--seed", "2", "--json"]
    )
    command.main()
    result = json.loads(capsys.readouterr().out)
    assert (result["seed"], result["repository"], len(result["commits"])) == (
        2,
        str(tmp_path / "a"),
        plan.COMMITS,
    )
    assert sorted(entry["kind"] for entry in result["planted"]) == ["improvement"] + 4 * ["regression"]
    assert {entry["commit"] for entry in result["planted"]} < set(result["commits"])
    assert result["measured"] == [result["commits"][index] for index in plan.measured_indices()]
    assert {entry["metric"] for entry in result["planted"]} == {"step_time", "peak_memory"}
