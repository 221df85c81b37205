"""Games that are played together, and one decision of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import paceline
from agent import Agent, reward, tabulate
from arguments import Args
from games import Game
from observer import Observer
from palette import Screen


class Group:
    """Some of the games, which are played together, and the agent's last view of them."""

    def __init__(self, numbers: Sequence[int], games: Sequence[Game]) -> None:
        self.numbers = list(numbers)
        self.games = [games[number] for number in numbers]
        self.views: Any = None
        self.actions: list[int] = []

    def act(self, observer: Observer, agent: Agent, exploration: float) -> None:
        """Learn of what the last actions led to, and choose the next ones."""
        history = observer.history
        pairs = [(history.before[number], history.last[number]) for number in self.numbers]
        views = tabulate(pairs)
        for at, (before, seen) in enumerate(pairs):
            # Only in play there is something to learn.
            if self.views is not None and before.kind == "play":
                value = reward(before, seen)
                agent.rewards += value
                agent.memory.push(self.views[at], self.actions[at], value, views[at])
        self.views, self.actions = views, agent.act(views, exploration)

    def step(self) -> list[Screen]:
        """Play a decision and take pictures."""
        for game, action in zip(self.games, self.actions, strict=True):
            game.step(action)
        return self.screens()

    def screens(self) -> list[Screen]:
        return [game.screen() for game in self.games]


def make_groups(args: Args, games: Sequence[Game]) -> list[Group]:
    """All games at once, or in groups, as equal as their numbers allow."""
    count = int(args.groups or 1)
    borders = [len(games) * at // count for at in range(count + 1)]
    return [Group(range(*ends), games) for ends in pairwise(borders)]


def play(group: Group, observer: Observer, agent: Agent, exploration: float, step: int) -> None:
    """One decision of some games; with more groups than one, its answers are waited for at its next turn."""
    observer.finish(group.numbers)
    with paceline.phase("policy"):
        group.act(observer, agent, exploration)
    with paceline.phase("env"):
        screens = group.step()
    observer.begin(group.numbers, screens, step)
    if observer.args.groups == 1:
        observer.finish(group.numbers)
