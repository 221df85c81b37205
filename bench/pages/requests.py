"""Requests to the site's web server as browsers make them: so many in flight, each timed by itself."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from statistics import median, quantiles

TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """Seconds from the request to the last byte of the answer, each; and the bytes that came."""

    seconds: list[float]
    received: int

    @property
    def p50(self) -> float:
        return 1000 * median(self.seconds)

    @property
    def p95(self) -> float:
        if len(self.seconds) < 2:
            return self.p50
        return 1000 * quantiles(self.seconds, n=20, method="inclusive")[-1]


def time_requests(port: int, where: str, count: int, in_flight: int) -> AnswerTimes:
    """RuntimeError where an answer isn't 200."""
    return asyncio.run(_time_requests(port, where, count, in_flight))


async def _time_requests(port: int, where: str, count: int, in_flight: int) -> AnswerTimes:
    request = (
        f"GET {where} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept-Encoding: gzip, br\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    waiting = iter(range(count))
    seconds: list[float] = []
    received = 0

    async def ask_in_turn() -> None:
        nonlocal received
        for _ in waiting:
            begun = time.perf_counter()
            answer = await asyncio.wait_for(_ask_site(port, request), TIMEOUT)
            seconds.append(time.perf_counter() - begun)
            received = len(answer)
            if answer[:12].split()[-1:] != [b"200"]:
                raise RuntimeError(f"{where} answered {answer[:60]!r}")

    await asyncio.gather(*(ask_in_turn() for _ in range(in_flight)))
    return AnswerTimes(seconds, received)


async def _ask_site(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read(-1)
    finally:
        writer.close()
