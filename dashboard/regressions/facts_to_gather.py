"""How a judgement says which facts it lacks: it ends, and begins again once they are gathered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dashboard.regressions.decision.requested_facts import Request


class FactsToGather(Exception):  # noqa: N818 - reads as a fact
    """A judgement needs facts that are found out without the project's lock."""

    def __init__(self, requests: Iterable[Request[Any]]) -> None:
        self.requests = tuple(requests)
        super().__init__(f"{len(self.requests)} facts are missing.")
