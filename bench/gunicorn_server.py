"""A web server of the site or of another tool, with the processes and threads of the site's own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dashboard.services.preflight import free_port

SIZE = ("--workers", "2", "--threads", "4", "--timeout", "60")
TRIES = 300


@contextmanager
def running_server(
    python: Sequence[str], application: str, environment: Mapping[str, str], folder: str | None = None
) -> Iterator[str]:
    """The address of gunicorn, run by this Python in `folder`. SystemExit where it doesn't start."""
    port = free_port()
    bind = ("--bind", f"127.0.0.1:{port}", "--log-level", "error")
    server = subprocess.Popen(
        [*python, "-m", "gunicorn", *SIZE, *bind, application], env={**os.environ, **environment}, cwd=folder
    )
    try:
        _await_port(port, application)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


def _await_port(port: int, application: str) -> None:
    for _ in range(TRIES):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{application} didn't start.")
