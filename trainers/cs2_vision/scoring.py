"""How well the agent plays, and how well it sees, after training."""

from __future__ import annotations

from typing import Any

from agent import Agent, tabulate
from arguments import Args
from client import Request
from games import Game
from history import History
from observer import Observer
from pictures import encode
from playing import make_groups, play

AUDITED = 256
"""Observations that are asked about anew after training."""

AT_ONCE = 8
"""Of them in one request."""


def score(args: Args, observer: Observer, agent: Agent) -> tuple[float, float]:
    """The share of enemies that are hit, and of pictures of which the right thing is believed.

    Training never saw these games; the agent sees them as in training, the judge is the games themselves.
    """
    games = [Game(1_000_000 + game) for game in range(args.games)]
    looking = Observer(args, observer.client, History(args.games, 64, "palette"), observer.known)
    groups = make_groups(args, games)
    met = 0
    for group in groups:
        looking.begin(group.numbers, group.screens(), args.total_steps)
    for step in range(1, args.score_steps + 1):
        for group in groups:
            looking.finish(group.numbers)
            for number in group.numbers:
                seen = looking.history.last[number]
                met += games[number].seen().is_met(seen.kind, seen.target)
            play(group, looking, agent, 0.0, args.total_steps + step)
    for group in groups:
        looking.finish(group.numbers)
    hits, came = sum(game.hits for game in games), sum(game.came for game in games)
    return hits / max(1, came), met / (args.score_steps * args.games)


def agreement(observer: Observer, agent: Agent) -> float:
    """Of the last observations in play, the share in which a fresh answer leads to the same action."""
    fresh: dict[int, Any] = {}
    pairs, others = [], []
    audited = list(observer.history.observations)[-AUDITED:]
    for kept, text in zip(audited, ask_anew(observer, audited), strict=True):
        seen = observer.parser.read(text)
        if seen.kind == "play" and kept.game in fresh:
            pairs.append((fresh[kept.game], seen))
            others.append((kept.before, kept.seen))
        fresh[kept.game] = seen
    if not pairs:
        return 0.0
    actions, used = agent.best(tabulate(pairs)), agent.best(tabulate(others))
    return sum(action == other for action, other in zip(actions, used, strict=True)) / len(pairs)


def ask_anew(observer: Observer, observations: list[Any]) -> list[str]:
    """What the service says of these observations' pictures now."""
    screens = [observer.history.storage.screen(kept.picture) for kept in observations]
    shares = [screens[at : at + AT_ONCE] for at in range(0, len(screens), AT_ONCE)]
    transfer = str(observer.args.transfer)
    return observer.client.ask([Request(encode(share, transfer), later=False) for share in shares])
