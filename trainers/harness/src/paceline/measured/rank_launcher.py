"""Starts the ranks of one measured process on this host, with the variables that torchrun would set.

Started by the harness as `python -P -m paceline.measured.rank_launcher RANKS PLAN`. It imports no PyTorch: a
launcher that takes a second to start would take it from every repetition.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from time import monotonic

from .ending import die_with_parent
from .rank_results import FAILED_RANK

CHILD = Path(__file__).with_name("child.py")
# The end of a rank wakes the launcher; this long it sleeps where nothing does.
POLL_SECONDS = 0.05
# How long the other ranks may take to end by themselves, once one of them has failed.
OTHER_RANKS_SECONDS = 5.0


def main() -> int:
    """Start the ranks and wait for all of them; return the status of the first one that failed, or 0."""
    count, plan = int(sys.argv[1]), sys.argv[2]
    keeps_running = json.loads(Path(plan).read_text())["keep_running"]
    if not keeps_running:
        die_with_parent()
    port = str(_find_free_port())
    ranks = [_start_rank(rank, count, port, plan) for rank in range(count)]
    received = _pass_signals_on(ranks) if keeps_running else set()
    # Only behind their start, for they would inherit it. A rank that loses another one crashes a moment
    # later: only whom every end wakes knows which of them was the first.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    first, latest = None, float("inf")
    while any(rank.poll() is None for rank in ranks):
        if first is None and (first := find_failed_rank(ranks, Path(plan), received)):
            latest = monotonic() + OTHER_RANKS_SECONDS
        if monotonic() > latest:
            for rank in ranks:
                rank.kill()
        signal.sigtimedwait({signal.SIGCHLD}, POLL_SECONDS)
    return first or find_failed_rank(ranks, Path(plan), received) or 0


def _pass_signals_on(ranks: list[subprocess.Popen[bytes]]) -> set[int]:
    """Let the ranks know that they have to end, and wait for them; a terminal tells them itself.

    Return the signals that all ranks were sent, SIGINT among them since nobody else sends it.
    """
    received = {int(signal.SIGINT)}

    def send(number: int, _frame: object) -> None:
        received.add(number)
        for rank in ranks:
            rank.send_signal(number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, send)
    return received


def find_failed_rank(
    ranks: Sequence[subprocess.Popen[bytes]], plan: Path, received: AbstractSet[int]
) -> int | None:
    """Return the status of the first rank that has failed, and leave a sentence for the harness.

    Of several at once it is one that was killed: a rank that lost another one crashes with a status.
    `received` are the signals that ended no rank by itself, but all of them.
    """
    failed = [(rank.returncode, number) for number, rank in enumerate(ranks) if rank.poll()]
    if not failed:
        return None
    status, number = min(failed, key=lambda ended: (ended[0] > 0, ended[1]))
    how = f"crashed with exit status {status}" if status > 0 else f"was killed by signal {-status}"
    what = f"failed: rank {number} {how}, which ended the other ranks"
    if -status in received:
        what = f"was ended by {signal.Signals(-status).name}"
    with suppress(OSError):
        plan.with_name(FAILED_RANK).write_text(what)
    return status if status > 0 else 128 - status


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
    command = [sys.executable, str(CHILD), plan]
    return subprocess.Popen(command, env={**os.environ, **variables})


def _find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
