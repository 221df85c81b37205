"""Where the embedded services keep their files, and the addresses that follow from it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

DEFAULT_PORT = 8000
PORT_FILE = "port"


@dataclass(frozen=True)
class Addresses:
    """How to reach the embedded services of one PACELINE_HOME."""

    database_url: str
    broker_url: str
    socket_folder: Path

    @property
    def broker_socket(self) -> Path:
        return self.socket_folder / "redis.sock"


def service_addresses(home: Path) -> Addresses:
    """The addresses of `home`'s services, whether they run or not. Touches nothing."""
    # A socket's path may have 107 bytes at most, which a home folder's own path can exceed.
    name = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:12]
    folder = Path("/tmp") / f"paceline-{os.getuid()}-{name}"  # noqa: S108 - owner and mode are checked
    return Addresses(
        database_url=f"postgresql:///paceline?host={quote(str(folder), safe='')}&user=paceline",
        broker_url=f"redis+socket://{folder}/redis.sock",
        socket_folder=folder,
    )


def log_folder(home: Path) -> Path:
    return home / "logs"


def remember_port(home: Path, port: int) -> None:
    """For commands in other shells, which write the site's address into hooks and messages."""
    (home / PORT_FILE).write_text(f"{port}\n")


def last_port(home: Path) -> int:
    """Where the site of this home was last started, or else DEFAULT_PORT."""
    try:
        port = int((home / PORT_FILE).read_text())
    except (OSError, ValueError):
        return DEFAULT_PORT
    return port if 1 <= port <= 65535 else DEFAULT_PORT
