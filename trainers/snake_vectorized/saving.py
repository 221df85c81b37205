"""Saving a training, and going on with it: games, memory, network, optimizer, and all random numbers.

With the same arguments a training that goes on ends bit by bit where one ends that never stopped. With others
it can go on too, as long as the network has the same shape: arrays are saved in one form, whichever toggles
hold them.
"""

from __future__ import annotations

from typing import Any

import torch
from benchmark_support.arguments import refuse
from benchmark_support.checkpoints import (
    State,
    generator_state,
    read_checkpoint,
    restore_generator,
    write_checkpoint,
)
from environment import NUMBERS, Snakes
from tensor_environment import TensorSnakes

BENCHMARK = "snake_vectorized"
GAME_ARRAYS = ("boards", *NUMBERS)


def save_training(training: Any, step: int, views: Any) -> None:
    """Write the training as it is before `step`, with what the snakes see then."""
    args = training.args
    rows = training.memory.entries()
    state = {
        "shape": _shape(training),
        "step": step,
        "views": torch.as_tensor(views).cpu(),
        "spaces": torch.from_numpy(training.spaces),
        "games": _games_state(training.games),
        "memory": [torch.from_numpy(array) for array in rows] if rows else [],
        "position_sampler": training.position_sampler.state(),
        "agent": training.agent.state(),
        "metrics": training.metrics.state(),
    }
    write_checkpoint(args.save, BENCHMARK, state)


def restore_training(training: Any) -> tuple[int, Any]:
    """Bring the training to where a saved one was; return the next step, and what the snakes see then."""
    path = training.args.resume
    state = read_checkpoint(path, BENCHMARK)
    for name, mine in _shape(training).items():
        if state["shape"][name] != mine:
            refuse(f"--resume is {path!r}, whose {name} is {state['shape'][name]}, not {mine}")
    _restore_games(training.games, state["games"])
    if state["memory"]:
        newest = slice(-training.args.capacity, None)
        training.memory.push_batch(*(tensor.numpy()[newest] for tensor in state["memory"]))
    training.spaces = state["spaces"].numpy()
    training.position_sampler.restore(state["position_sampler"])
    training.agent.restore(state["agent"])
    training.metrics.restore(state["metrics"])
    return state["step"], training.agent.hold(state["views"].numpy())


def _shape(training: Any) -> dict[str, int]:
    """Return what must be the same in both trainings, by the names of the arguments."""
    args = training.args
    return {"--environments": args.environments, "--hidden": args.hidden, "inputs": training.features}


def _games_state(games: Snakes | TensorSnakes) -> State:
    arrays = {name: torch.as_tensor(getattr(games, name)).cpu() for name in GAME_ARRAYS}
    return {**arrays, "random": generator_state(games.random)}


def _restore_games(games: Snakes | TensorSnakes, state: State) -> None:
    for name in GAME_ARRAYS:
        mine, saved = getattr(games, name), state[name]
        setattr(games, name, saved.to(mine.device) if torch.is_tensor(mine) else saved.numpy().copy())
    restore_generator(games.random, state["random"])
