"""How a collector chooses its games' actions, in a thread or in a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from arguments import Args
from network import ViewLoader
from numpy.typing import NDArray
from pictures import ACTIONS, Pictures


def exploration_share(args: Args, step: int) -> float:
    """The share of random moves after so many decisions of a game."""
    return max(args.exploration, 1 - step / args.exploration_steps)


@torch.inference_mode()
def choose_actions(
    network: Any,
    view_loader: ViewLoader,
    views: Pictures,
    chances: Sequence[np.random.Generator],
    exploration: float,
    *,
    batched: bool,
) -> NDArray[np.int64]:
    """The best action for every game, or a random one; each game draws from a generator of its own.

    `batched`: the network sees all games at once, not one by one.
    """
    ours = [game for game, chance in enumerate(chances) if chance.random() >= exploration]
    actions = np.array([chance.integers(ACTIONS) for chance in chances], dtype=np.int64)
    asked = [ours] if batched else [[game] for game in ours]
    for some in filter(None, asked):
        actions[some] = network(view_loader.views(views[some])).argmax(1).tolist()
    return actions
