"""The observer: which pictures the service is asked about, when, and what comes of its answers.

Observing has two halves: begin() asks, finish() waits for what decisions depend on. In between other work
can be done.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import paceline
from answers import Parser, ScreenState
from arguments import Args
from cache import LruCache, make_cache
from client import Client, Connection, Request
from history import History
from palette import Screen
from pictures import encode
from shares import Shares


@dataclass
class Picture:
    """A game's picture in a look; no text until there is an answer."""

    game: int
    screen: Screen
    key: Any = None
    is_ui: bool = False
    text: str = ""
    fresh: bool = False


@dataclass
class Part:
    """Pictures that share a request."""

    pictures: list[Picture]
    request: Request
    connection: Connection | None = None

    @property
    def is_ui(self) -> bool:
        return all(picture.is_ui for picture in self.pictures)


@dataclass
class ObservedGames:
    """Some games whose pictures are looked at together."""

    step: int
    pictures: list[Picture]
    asked: deque[Part] = field(default_factory=deque)
    later: list[Part] = field(default_factory=list)


class Observer:
    """Looks at games through the vision service, the cache before it, and the history behind it."""

    def __init__(self, args: Args, client: Client, history: History, known: LruCache | None = None) -> None:
        self.args = args
        self.client = client
        self.history = history
        self.parser = Parser(compact=bool(args.compact), similar=bool(args.similar))
        self.known = known or make_cache(args, self.parser.alike)
        self.shares = Shares()
        self.looked = [-(10**9)] * len(history.last)
        self.looks: dict[tuple[int, ...], ObservedGames] = {}
        self.late: dict[tuple[int, ...], list[Part]] = {}
        self.waits = 0

    def begin(self, games: Sequence[int], screens: Sequence[Screen], step: int) -> None:
        """Ask about these games' pictures, as far as nothing is known of them."""
        pictures = [
            Picture(game, screen, is_ui=self.history.last[game].kind != "play")
            for game, screen in zip(games, screens, strict=True)
        ]
        look = self.looks[tuple(games)] = ObservedGames(step, pictures)
        asked = [picture for picture in pictures if self._is_due(picture, step)]
        with self.shares.phase("cache"):
            asked = self._missing(asked, step)
        urgent = [picture for picture in asked if not (self.args.priorities and picture.is_ui)]
        with self.shares.phase("serialize"):
            look.asked.extend(self._parts(urgent, later=False))
            look.later.extend(
                self._parts([picture for picture in asked if picture not in urgent], later=True)
            )
        for part in [*list(look.asked)[: self.args.parallel], *look.later]:
            self._send(part)

    def _is_due(self, picture: Picture, step: int) -> bool:
        if self.args.skip_ui and picture.is_ui and step - self.looked[picture.game] < self.args.ui_every:
            paceline.count("ui_skipped")
            return False
        self.looked[picture.game] = step
        return True

    def _parts(self, pictures: list[Picture], *, later: bool) -> list[Part]:
        """Share pictures out to requests, as evenly as their size and number allow."""
        if not pictures:
            return []
        size = min(int(self.args.pictures or 1), -(-len(pictures) // int(self.args.parallel or 1)))
        shares = [pictures[at : at + size] for at in range(0, len(pictures), size)]
        transfer = str(self.args.transfer)
        return [
            Part(share, Request(encode([picture.screen for picture in share], transfer), later))
            for share in shares
        ]

    def _send(self, part: Part) -> None:
        with self.shares.phase("api"):
            part.connection = self.client.send(part.request)

    def finish(self, games: Sequence[int]) -> None:
        """Wait for the answers that decisions depend on, and add what was seen to the history."""
        look = self.looks.pop(tuple(games), None)
        if look is None:
            return
        if look.asked:
            self._tidy()
        late = self.late.pop(tuple(games), [])
        for part in late:
            self._receive(part)
        while look.asked:
            part = look.asked.popleft()
            self._receive(part)
            waiting = [other for other in look.asked if other.connection is None]
            if waiting:
                self._send(waiting[0])
        self.late[tuple(games)] = look.later
        self._keep([picture for part in late for picture in part.pictures], look.step)
        self._keep(look.pictures, look.step)
        with self.shares.phase("parse"):
            overdue = {picture.game: self._seen(picture) for part in late for picture in part.pictures}
            seen = [self._seen(picture) for picture in look.pictures]
        seen = [
            fresh or overdue.get(picture.game) for fresh, picture in zip(seen, look.pictures, strict=True)
        ]
        self._remember(look, seen)

    def _receive(self, part: Part) -> None:
        assert part.connection is not None  # noqa: S101 (sent before)
        with self.shares.phase("api"):
            if part.is_ui:
                with self.shares.phase("ui"):
                    texts = self.client.receive(part.connection)
            else:
                texts = self.client.receive(part.connection)
        waited = 1e3 * (perf_counter() - part.connection.sent)
        for picture, text in zip(part.pictures, texts, strict=True):
            picture.text, picture.fresh = text, True
            paceline.gauge("answer_ms", waited)

    def _missing(self, pictures: list[Picture], step: int) -> list[Picture]:
        """Put what is known into the pictures; return those of which nothing is."""
        if self.known is None or not pictures:
            return pictures
        began = perf_counter()
        keys = self.known.keys(np.stack([picture.screen for picture in pictures]))
        for picture, picture.key in zip(pictures, keys, strict=True):
            picture.text = self.known.get(picture.key, step) or ""
        missing = [picture for picture in pictures if not picture.text]
        paceline.count("cache_lookups", len(pictures))
        paceline.count("cache_hits", len(pictures) - len(missing))
        for _ in range(len(pictures) - len(missing)):
            paceline.gauge("answer_ms", 1e3 * (perf_counter() - began))
        return missing

    def _keep(self, pictures: list[Picture], step: int) -> None:
        """Keep fresh answers."""
        if self.known is None:
            return
        with self.shares.phase("cache"):
            for picture in pictures:
                if picture.fresh:
                    self.known.put(picture.key, picture.text, step)

    def _seen(self, picture: Picture) -> ScreenState | None:
        """What the picture's text says; None where there is none yet."""
        return self.parser.parse(picture.text) if picture.text else None

    def _remember(self, look: ObservedGames, seen: list[ScreenState | None]) -> None:
        for picture, answer in zip(look.pictures, seen, strict=True):
            last = self.history.last[picture.game]
            found = answer or last
            if not self.args.skip_ui and found.kind != last.kind:
                found = self._ask_again(picture)
            with self.shares.phase("history"):
                self.history.add(picture.game, picture.screen, found)

    def _ask_again(self, picture: Picture) -> ScreenState:
        """Make sure of a screen that changed."""
        with self.shares.phase("serialize"):
            (part,) = self._parts([picture], later=False)
        with self.shares.phase("api"), self.shares.phase("ui"):
            (text,) = self.client.ask([part.request])
        with self.shares.phase("parse"):
            return self.parser.parse(text)

    def _tidy(self) -> None:
        """Collect garbage while the service is at work."""
        if self.args.collect != "idle":
            return
        self.waits += 1
        # As often in a step, however many groups of games look in it.
        looks = 20 * int(self.args.groups or 1)
        if self.waits % looks == 0:
            with self.shares.phase("history"), paceline.phase("collect"):
                gc.collect(2 if self.waits % (20 * looks) == 0 else 0)
