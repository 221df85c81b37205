"""A network between the agent and the vision service: real waiting, as long as a remote service would take.

Requests that are under way at once share the bandwidth, but wait for their latencies side by side.
"""

from __future__ import annotations

import asyncio

HEADERS = 200
"""Bytes of a message beside its body, roughly."""


class Line:
    """One direction of the connection; messages are sent one after the other."""

    def __init__(self, latency: float, rate: float) -> None:
        self.latency = latency
        self.rate = rate
        self.is_free = 0.0

    def arrival(self, size: int, sent: float) -> float:
        """When a message of so many bytes, sent at this time, has arrived; in seconds."""
        begun = max(sent, self.is_free)
        self.is_free = begun + (size + HEADERS) / self.rate if self.rate else begun
        return self.is_free + self.latency


class Network:
    """Both directions. `latency` is a round trip in seconds, `rate` bytes a second; 0 switches either off."""

    def __init__(self, latency: float, rate: float) -> None:
        self.latency = latency
        self.up, self.down = Line(latency / 2, rate), Line(latency / 2, rate)

    async def carry_request(self, size: int, *, is_new: bool) -> float:
        """Wait until a request is here; return how much longer that took, since timers are coarse.

        A new connection costs a round trip more.
        """
        now = asyncio.get_running_loop().time()
        return await self._wait_until(self.up.arrival(size, now + self.latency * is_new), now)

    async def carry_answer(self, size: int, overdue: float) -> None:
        """Wait until an answer is there, less what its request waited too long."""
        now = asyncio.get_running_loop().time()
        await self._wait_until(self.down.arrival(size, now - overdue), now)

    async def _wait_until(self, time: float, now: float) -> float:
        if time <= now:
            return 0.0
        await asyncio.sleep(time - now)
        return asyncio.get_running_loop().time() - time
