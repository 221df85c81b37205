"""A small worker with a box, to be killed: `python -m tests.workers.host.boxed_worker KIND HOME FOLDER`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tests.workers.host.boxes import SMALL, Cell
from tests.workers.host.launcher import forward_output
from workers.host.box import box
from workers.host.processes import process_tree

CODE = "import signal, time; signal.signal(15, signal.SIG_IGN); print('running', flush=True); time.sleep(600)"


def main() -> None:
    kind, home, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    held = Cell(box.open_box(SMALL, home, (kind,)), folder).prepare()
    command = [sys.executable, "-I", "-S", "-c", CODE]
    with held.box.wrap_command(command, held.checkout, held.view(), {}) as boxed:
        spec = process_tree.ProcessSpec(boxed.command, held.checkout, {}, time_limit=600, grace=0.5)
        process_tree.run_process_tree(spec, forward_output, threading.Event())


if __name__ == "__main__":
    main()
