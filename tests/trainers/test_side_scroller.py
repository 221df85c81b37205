"""mario_pipeline's own game: its level, its cartridge, and how it is played on one console."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.trainers.conftest import ROOT, import_script, parse_arguments

MARIO = ROOT / "trainers" / "mario_pipeline"
RIGHT, RIGHT_AND_JUMP = 2, 5


@pytest.fixture(scope="module")
def train() -> ModuleType:
    return import_script(MARIO, "train")


@pytest.fixture
def games(train: ModuleType) -> Iterator[Any]:
    args = parse_arguments(train, ["--variant", "baseline", "--game", "side_scroller", "--device", "cpu"])
    games = train.games(args, 2, 0)
    yield games
    games.close()


def test_every_start_has_ground_and_every_pit_can_be_jumped() -> None:
    cartridge = import_script(MARIO, "cartridge")
    level = cartridge.Level(1)
    assert {len(level.tops), len(level.shelves), len(level.walkers)} == {cartridge.COLUMNS}
    starts = range(0, cartridge.COLUMNS, cartridge.STRETCH)
    assert all(set(level.tops[start : start + 6]) == {192} for start in starts)
    pits = "".join("." if top == cartridge.NOTHING else "#" for top in level.tops)
    assert "." * 4 not in pits
    assert pits.count("#.") > 5
    assert sum(level.walkers) > 5


def test_the_cartridge_has_the_size_that_its_header_says() -> None:
    content = import_script(MARIO, "cartridge").cartridge()
    assert content[:4] == b"NES\x1a"
    assert len(content) == 16 + content[4] * 16384 + content[5] * 8192
    assert content[6] == 1, "the two screens lie side by side"


def test_who_runs_is_rewarded_and_dies_at_the_first_pit(games: Any) -> None:
    first = games.reset()
    results = [games.step(np.array([RIGHT, 0])) for _ in range(60)]
    advances = np.sum([result.advances for result in results], axis=0)
    rewards = np.sum([result.rewards for result in results], axis=0)
    ended = np.sum([result.ended for result in results], axis=0)
    assert first.shape == (2, 4, 52, 53)
    assert advances[0] > 100 > advances[1] == 0
    assert ended[0] >= 1
    assert rewards[0] == pytest.approx(advances[0] / 16 - ended[0])


def test_who_jumps_gets_further(games: Any) -> None:
    games.reset()
    results = [games.step(np.array([RIGHT, RIGHT_AND_JUMP])) for _ in range(200)]
    walked, jumped = np.sum([result.advances for result in results], axis=0)
    assert jumped > 1.5 * walked


def test_games_that_take_turns_are_each_as_if_alone(train: ModuleType, games: Any) -> None:
    moves = np.random.default_rng(0).integers(9, size=(40, 2))
    together = [games.reset(), *[games.step(move).views for move in moves]]
    args = parse_arguments(train, ["--variant", "baseline", "--game", "side_scroller", "--device", "cpu"])
    for game in range(2):
        alone = train.games(args, 1, game)
        views = [alone.reset(), *[alone.step(move[game : game + 1]).views for move in moves]]
        alone.close()
        assert all(np.array_equal(view[game], other[0]) for view, other in zip(together, views, strict=True))


def test_the_other_console_has_no_vector_of_games(
    train: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    scroller = ["--variant", "beyond", "--game", "side_scroller", "--device", "cpu"]
    assert parse_arguments(train, scroller).vectorized is False
    with pytest.raises(SystemExit):
        parse_arguments(train, [*scroller, "--vectorized"])
    said = "train.py: --vectorized is an environment of ale-py, which doesn't know side_scroller\n"
    assert capsys.readouterr().err == said
