from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def game(environment: ModuleType) -> Any:
    return environment.Snake(0)


def place_ahead(environment: ModuleType, game: Any, cells: int) -> None:
    game.food = game.body[0] + cells * environment.MOVES[game.heading]


@pytest.mark.parametrize("seed", range(8))
def test_the_food_is_the_brightest_cell(environment: ModuleType, seed: int) -> None:
    view = environment.Snake(seed).view()
    assert np.sum(view == 1.0) == 1
    assert view.max() == 1.0


@pytest.mark.parametrize("heading", range(4))
def test_food_ahead_is_shown_above_the_head(environment: ModuleType, game: Any, heading: int) -> None:
    game.heading = heading
    place_ahead(environment, game, 3)
    grid = game.view().reshape(environment.VIEW, environment.VIEW)
    assert np.argwhere(grid == grid.max()).tolist() == [[environment.AHEAD - 3, environment.LEFT]]


def test_food_out_of_sight_is_shown_at_the_edge(environment: ModuleType, game: Any) -> None:
    place_ahead(environment, game, -10)
    grid = game.view().reshape(environment.VIEW, environment.VIEW)
    assert int(np.argwhere(grid == grid.max())[0, 0]) == environment.VIEW - 1


def test_eating_makes_the_snake_longer(environment: ModuleType, game: Any) -> None:
    place_ahead(environment, game, 1)
    _, reward, ended = game.step(0)
    assert (reward, ended, game.score, len(game.body)) == (1.0, False, 1, 4)


def test_getting_nearer_is_rewarded_and_farther_is_not(environment: ModuleType, game: Any) -> None:
    place_ahead(environment, game, 5)
    assert game.step(0)[1] == 0.1
    place_ahead(environment, game, -3)
    assert game.step(0)[1] == -0.1


def test_the_wall_ends_the_game(environment: ModuleType, game: Any) -> None:
    game.food = game.body[2]
    ends = [game.step(0)[2] for _ in range(environment.BOARD // 2 + 1)]
    assert ends.index(True) >= environment.BOARD // 2 - 1


def test_the_snake_may_follow_its_tail_but_not_bite_itself(environment: ModuleType, game: Any) -> None:
    def circle(length: int) -> bool:
        game.reset()
        for _ in range(length - 3):
            place_ahead(environment, game, 1)
            game.step(0)
        game.food = -1
        return any(game.step(1)[2] for _ in range(4))

    assert (circle(4), circle(5)) == (False, True)


def test_a_snake_that_never_eats_starves(environment: ModuleType, game: Any) -> None:
    game.food = -1
    steps = next(number for number in range(1, 200) if game.step(1)[2])
    assert steps == environment.PATIENCE


def test_the_same_seed_is_the_same_game(environment: ModuleType) -> None:
    first, second = environment.Snake(7), environment.Snake(7)
    views = [(first.step(number % 3)[0], second.step(number % 3)[0]) for number in range(6)]
    assert all(np.array_equal(view, other) for view, other in views)
