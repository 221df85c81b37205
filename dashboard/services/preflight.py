"""What has to be free before anything is started."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from pathlib import Path

from dashboard.services.errors import ServiceError

LEAST_FREE = 500_000_000  # bytes


def check_port(host: str, port: int) -> None:
    """ServiceError if nobody could listen on `host`:`port` now."""
    try:
        socket.getaddrinfo(host, port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ServiceError(
            f"PACELINE_HOST is {host!r}, which is no address of this machine: {reason}."
        ) from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the web server does: a connection of the last one that lingers is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except PermissionError:
            raise ServiceError(
                f"Port {port} may only be used by root; choose one from 1024 on, as in: make up PORT=8001"
            ) from None
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise ServiceError(
                    f"PACELINE_HOST is {host!r}, which is no address of this machine; "
                    "0.0.0.0 stands for all that it has."
                ) from None
            raise ServiceError(
                f"Port {port} on {host} can't be used ({os.strerror(error.errno or 0).lower()}); "
                f"choose another one, as in: make up PORT={port + 1 if port < 65535 else 8000}"
            ) from None


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_disk(folder: Path) -> None:
    """ServiceError if the disk of `folder` is nearly full."""
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise ServiceError(
            f"Only {free // 1_000_000} MB are free for {folder}, and Paceline needs "
            f"{LEAST_FREE // 1_000_000} MB; free some, or set PACELINE_HOME to a folder on another disk."
        )
