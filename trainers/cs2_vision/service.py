"""The vision service: HTTP in a process of its own. client.py starts this file as a script.

It prints the port that it found free, answers `POST /look` with a line of JSON for each picture and
`GET /usage` with how busy it was, and ends when its standard input does: it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from detector import Vision
from network import Network
from pictures import decode
from usage import Slices, watch
from weights import load
from wording import in_short, in_words

WITHOUT = 3
"""Exit status of a service that has no uvicorn."""

ANSWERS = {"words": in_words, "short": in_short}


class Task(NamedTuple):
    """A request. Of those that wait, the smallest is the first: urgent ones, then older ones."""

    later: bool
    number: int
    work: Callable[[], bytes]
    done: Callable[[Any], None]


class RequestThreads:
    """Threads that work on requests."""

    def __init__(self, vision: Vision, threads: int) -> None:
        self.vision = vision
        self.waiting: queue.PriorityQueue[Task] = queue.PriorityQueue()
        self.number = 0
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            task = self.waiting.get()
            try:
                task.done(task.work())
            except Exception as error:  # noqa: BLE001 (a request's fault is its answer; the next one waits)
                task.done(error)

    def look(self, body: bytes, transfer: str, answer: str) -> bytes:
        """One line for each picture."""
        views = self.vision.look(decode(body, transfer))
        return "".join(ANSWERS[answer](view) + "\n" for view in views).encode()

    async def ask(self, body: bytes, transfer: str, answer: str, later: bool) -> bytes:
        """Queue a request and wait for its answer."""
        loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def done(result: Any) -> None:
            deliver = future.set_exception if isinstance(result, Exception) else future.set_result
            loop.call_soon_threadsafe(deliver, result)

        self.number += 1
        work = lambda: self.look(body, transfer, answer)  # noqa: E731 (nothing more than the call)
        self.waiting.put(Task(later, self.number, work, done))
        return await future


async def whole_body(receive: Callable[[], Any]) -> bytes:
    """The body of a request, in as many pieces as it comes."""
    pieces, more = [], True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


class Application:
    """The service as uvicorn calls it."""

    def __init__(self, request_threads: RequestThreads, network: Network, usage: dict[str, Slices]) -> None:
        self.request_threads = request_threads
        self.network = network
        self.usage = usage
        self.connected: set[Any] = set()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request."""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        body = await whole_body(receive)
        asked = scope["method"], scope["path"]
        try:
            if asked == ("GET", "/usage"):
                content = json.dumps({name: slices.take() for name, slices in self.usage.items()}).encode()
            elif asked == ("POST", "/look"):
                content = await self._look(body, headers, scope["client"])
            else:
                raise ValueError(f"there is no {' '.join(asked)}, only POST /look and GET /usage")
            status = 200
        except (ValueError, KeyError, TypeError) as error:
            content, status = f"{error!r}\n".encode(), 400
        length = str(len(content)).encode()
        start = {"type": "http.response.start", "status": status, "headers": [(b"content-length", length)]}
        await send(start)
        await send({"type": "http.response.body", "body": content})

    async def _look(self, body: bytes, headers: dict[str, str], client: Any) -> bytes:
        """The answer to a request, as late as the network brings it."""
        is_new = client not in self.connected
        if headers.get("connection") != "close":
            self.connected.add(client)
        overdue = await self.network.carry_request(len(body), is_new=is_new)
        later = headers.get("x-later") == "1"
        content = await self.request_threads.ask(body, headers["x-transfer"], headers["x-answer"], later)
        await self.network.carry_answer(len(content), overdue)
        return content


def end_with_the_starter() -> None:
    """End when the standard input does, which it does however the process ends that holds its other end."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve. Argument: JSON with the device, threads for requests and torch's, the network, the weights."""
    try:
        import uvicorn
    except ImportError:
        # The sentence is for the process that started this one to say.
        sys.exit(WITHOUT)
    threading.Thread(target=end_with_the_starter, daemon=True).start()
    setup = json.loads(sys.argv[1])
    torch.set_num_threads(setup["torch_threads"])
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    # Connections inherit it. Without it an answer's second part waits 40 ms for the first one's receipt.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    device = torch.device(setup["device"])
    request_threads = RequestThreads(Vision(load(Path(setup["weights"])), device), setup["threads"])
    network = Network(setup["latency_ms"] / 1e3, setup["bandwidth_mbit"] * 1e6 / 8)
    application = Application(request_threads, network, watch(device))
    config = uvicorn.Config(
        application,
        log_level="warning",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        timeout_keep_alive=3600,
    )
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
