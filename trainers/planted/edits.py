"""A commit as a set of edits to the training code, and the code that they start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BASE = HERE / "base"
GAME = HERE.parent / "snake_dqn" / "environment.py"

Tree = Mapping[str, str]
"""The text of every file of a commit, by its path."""


@dataclass(frozen=True)
class Edit:
    """Puts `new` in the place of `old`, which stands once in the file. Without `old` the file is new."""

    path: str
    old: str
    new: str

    def apply(self, tree: Tree) -> dict[str, str]:
        """Return the edited tree; raises ValueError where the edit doesn't fit."""
        text = tree.get(self.path, "")
        if self.old:
            if text.count(self.old) != 1:
                raise ValueError(f"{self.path} holds {self.old!r} {text.count(self.old)} times, not once")
            return {**tree, self.path: text.replace(self.old, self.new)}
        if text:
            raise ValueError(f"{self.path} is there already")
        return {**tree, self.path: self.new}


@dataclass(frozen=True)
class Change:
    """What one commit does, and the first line of its message."""

    subject: str
    edits: tuple[Edit, ...]

    def apply(self, tree: Tree) -> dict[str, str]:
        """Return the tree after this commit."""
        for edit in self.edits:
            tree = edit.apply(tree)
        return dict(tree)


def lines_after(path: str, line: str, *lines: str) -> Edit:
    """An edit that adds lines below the one line that contains nothing but `line`."""
    return Edit(path, f"{line}\n", "\n".join((line, *lines, "")))


def lines_before(path: str, line: str, *lines: str) -> Edit:
    """An edit that adds lines above `line`."""
    return Edit(path, f"{line}\n", "\n".join((*lines, line, "")))


def base_tree() -> dict[str, str]:
    """The first commit's files: those of base/, and the game of the benchmark snake_dqn."""
    files = sorted(path for path in BASE.iterdir() if path.is_file())
    return {GAME.name: GAME.read_text(), **{path.name: path.read_text() for path in files}}


def set_steps(tree: Tree, steps: int) -> dict[str, str]:
    """The tree with another number of measured steps in its manifest."""
    return Edit("paceline.toml", "\nsteps = 1500\n", f"\nsteps = {steps}\n").apply(tree)


def shorten_runs(tree: Tree) -> dict[str, str]:
    """The tree with a manifest whose runs take half as long: they raise suspicions, experiments prove them.

    What is counted once can't be exact, so no counter is judged by itself.
    """
    counted = Edit(
        "paceline.toml", "counting_steps = 200\ncountings = 2", "counting_steps = 100\ncountings = 1"
    )
    return Edit("paceline.toml", "repetitions = 3", "repetitions = 2").apply(counted.apply(tree))
