"""Saving a training, and going on with it: game, memory, network, optimizer, and all random numbers.

With the same arguments a training that goes on ends bit by bit where one ends that never stopped. Another
variant can go on with it too, as long as the network has as many hidden units.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from benchmark_support.arguments import refuse
from benchmark_support.checkpoints import (
    State,
    generator_state,
    read_checkpoint,
    restore_generator,
    write_checkpoint,
)

BENCHMARK = "snake_dqn"
GAME_NUMBERS = ("heading", "score", "hunger", "food")


def save_training(training: Any) -> None:
    """Write the training as it is before its next step."""
    state = {
        "hidden": training.args.hidden,
        "step": training.step,
        "episodes": training.episodes,
        "chance": generator_state(training.chance),
        "position_sampler": training.position_sampler.state(),
        "game": _game_state(training.game),
        "memory": [torch.from_numpy(array) for array in training.memory.arrays()],
        "agent": training.agent.state(),
    }
    write_checkpoint(training.args.save, BENCHMARK, state)


def restore_training(training: Any) -> None:
    """Bring the training to where a saved one was."""
    args, path = training.args, training.args.resume
    state = read_checkpoint(path, BENCHMARK)
    if state["hidden"] != args.hidden:
        refuse(f"--resume is {path!r}, whose --hidden is {state['hidden']}, not {args.hidden}")
    training.step, training.episodes = state["step"], state["episodes"]
    restore_generator(training.chance, state["chance"])
    training.position_sampler.restore(state["position_sampler"])
    _restore_game(training.game, state["game"])
    columns = [_as_kept(tensor, args) for tensor in state["memory"]]
    for transition in zip(*columns, strict=True):
        training.memory.push(*transition)
    training.agent.restore(state["agent"])
    view = training.game.view()
    training.view = view if args.memory else view.tolist()


def _as_kept(tensor: torch.Tensor, args: Any) -> Any:
    """Return a row for each transition as the memory keeps it."""
    return tensor.numpy() if args.memory and tensor.dim() == 2 else tensor.tolist()


def _game_state(game: Any) -> State:
    numbers = {name: getattr(game, name) for name in GAME_NUMBERS}
    board = torch.from_numpy(game.board)
    return {**numbers, "board": board, "body": list(game.body), "random": generator_state(game.random)}


def _restore_game(game: Any, state: State) -> None:
    for name in GAME_NUMBERS:
        setattr(game, name, state[name])
    game.board, game.body = np.array(state["board"].numpy()), deque(state["body"])
    restore_generator(game.random, state["random"])
