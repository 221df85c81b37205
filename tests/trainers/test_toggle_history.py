from __future__ import annotations

import ast
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.trainers.conftest import run_script
from trainers.planted.histories import toggles
from trainers.planted.repository import RepositoryError

BENCHMARKS = toggles.benchmark_names()


def toggle_statements(text: str) -> list[str]:
    """The lines that set the variant once more, below where it is made."""
    return [ast.unparse(node) for node in ast.parse(text).body if isinstance(node, ast.AugAssign)]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_each_switch_is_one_line_and_is_taken_back(benchmark: str) -> None:
    tree = toggles.first_tree(benchmark)
    claims = toggles.switched_off(benchmark)
    assert claims
    for claim in claims:
        change = toggles.switch_off(tree, claim)
        switched = change.apply(tree)
        (path,) = {edit.path for edit in change.edits}
        assert toggle_statements(switched[path]) == [
            f"VARIANTS['optimized'] |= {toggles.settings_when_off(claim)!r}"
        ]
        assert toggles.revert_switch(change).apply(switched) == tree


def test_a_history_goes_back_to_where_it_began(tmp_path: Path) -> None:
    made = toggles.create_history(tmp_path / "history", "snake_dqn")
    git = ["git", "-C", str(tmp_path / "history"), "diff", "--name-only", made["commits"][0]]
    assert subprocess.run(git, capture_output=True, text=True, check=True).stdout.split() == ["NOTES.md"]
    places = [made["commits"].index(entry["commit"]) for entry in made["planted"]]
    assert places[0] == toggles.FIRST_LEVEL
    assert {later - place for place, later in pairwise(places)} == {2 * toggles.LEVEL}


def test_the_history_runs_as_the_benchmark_does(tmp_path: Path) -> None:
    toggles.create_history(tmp_path / "history", "snake_dqn")
    script = "trainers/snake_dqn/train.py"
    done = run_script(script, "--total-steps", "20", cwd=tmp_path / "history")
    assert done.returncode == 0, done.stderr


def test_an_unknown_benchmark_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="--benchmark is 'tetris', must be one of "):
        toggles.create_history(tmp_path / "history", "tetris")


def test_only_the_toggles_asked_for_are_switched_in_their_order(tmp_path: Path) -> None:
    made = toggles.create_history(tmp_path / "history", "snake_dqn", ["train_every", "tensors"])
    assert [entry["event"] for entry in made["planted"]] == ["train_every off", "tensors off"]
    with pytest.raises(RepositoryError, match="--toggle is 'turbo', must be one of tensors, "):
        toggles.create_history(tmp_path / "other", "snake_dqn", ["turbo"])
