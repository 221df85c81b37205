"""The embedded queue: Redis on a unix socket, without TCP."""

from __future__ import annotations

import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from dashboard.services.accounts import Account
from dashboard.services.child import Program


@dataclass(frozen=True)
class Redis:
    """A server with its files in `data` and its socket at `path`; `account` owns both folders."""

    data: Path
    path: Path
    server: Path
    account: Account

    def program(self) -> Program:
        settings = {
            "port": "0",
            "unixsocket": str(self.path),
            "unixsocketperm": "700",
            "dir": str(self.data),
            # An append-only file outlives kill -9; a snapshot now and then would not hold the last messages.
            "appendonly": "yes",
            "save": "",
        }
        options = [part for key, value in settings.items() for part in (f"--{key}", value)]
        return Program(
            name="redis",
            argv=[str(self.server), *options],
            folder=self.data,
            ready=self.is_answering,
            account=self.account,
            orphan_signal=signal.SIGTERM,
            quiet=True,
        )

    def is_answering(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(1)
                connection.connect(str(self.path))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
