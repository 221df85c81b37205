"""Starts the ranks of one measured process on this host, with the variables that torchrun would set.

Started by the harness as `python -P -m paceline.measured.rank_launcher RANKS PLAN`. It imports no PyTorch: a
launcher that takes a second to start would take it from every repetition.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from time import sleep

from .ending import die_with_parent

POLL_SECONDS = 0.05
# How long the other ranks may take to end by themselves, once one of them has failed.
PATIENCE = 5.0


def main() -> int:
    """Start the ranks and wait for all of them; return the status of the first one that failed, or 0."""
    count, plan = int(sys.argv[1]), sys.argv[2]
    if not json.loads(Path(plan).read_text())["keep_running"]:
        die_with_parent()
    port = str(_find_free_port())
    ranks = [_start_rank(rank, count, port, plan) for rank in range(count)]
    patience = PATIENCE
    while any(rank.poll() is None for rank in ranks):
        sleep(POLL_SECONDS)
        if any(rank.poll() for rank in ranks):
            patience -= POLL_SECONDS
        if patience < 0:
            for rank in ranks:
                rank.kill()
    failed = [rank.returncode for rank in ranks if rank.returncode]
    # A rank that was killed because another one failed says nothing of why.
    return next((status if status > 0 else 128 - status for status in sorted(failed, reverse=True)), 0)


def _start_rank(rank: int, count: int, port: str, plan: str) -> subprocess.Popen[bytes]:
    variables = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        # Frameworks know by it that their ranks are started already.
        "TORCHELASTIC_RUN_ID": "paceline",
    }
    command = [sys.executable, "-P", "-m", "paceline.measured.child", plan]
    return subprocess.Popen(command, env={**os.environ, **variables})


def _find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
