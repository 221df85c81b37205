"""A small worker, to be killed: `python -m tests.workers.host.launcher LOCK CODE` runs the code as a tree."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from dashboard.repositories import try_lock
from workers.host.processes import process_tree


def forward_output(data: bytes) -> None:
    os.write(1, data)


def main() -> None:
    lock, code = Path(sys.argv[1]), sys.argv[2]
    with try_lock(lock) as held:
        command = [sys.executable, "-I", "-S", "-c", code]
        order = process_tree.ProcessSpec(command, Path.cwd(), {}, time_limit=600, lock=held, grace=1)
        process_tree.run_process_tree(order, forward_output, threading.Event())


if __name__ == "__main__":
    main()
