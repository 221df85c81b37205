"""Small programs for the supervisor's tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dashboard.services.child import Program

# Reports its pid, then writes NAME to the file `order` when it is asked to end.
OBEDIENT = """
import os, signal, sys, time
def end(number, frame):
    open("order", "a").write(sys.argv[1] + " ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
open(sys.argv[1] + ".pid", "w").write(str(os.getpid()))
time.sleep(60)
"""
STUBBORN = OBEDIENT.replace(
    "signal.signal(signal.SIGTERM, end)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
)
WITH_GRANDCHILD = """
import subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1] + ".pid", "w").write(str(grandchild.pid))
grandchild.wait()
"""


def python_program(folder: Path, name: str, code: str = OBEDIENT, **settings: Any) -> Program:
    """`code` as a program that is ready once it has written its pid."""
    settings = {"ready": (folder / f"{name}.pid").exists, "grace": 30, "timeout": 60, **settings}
    return Program(name=name, argv=[sys.executable, "-c", code, name], folder=folder, **settings)


def is_alive(pid: int) -> bool:
    """Whether it runs and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def becomes_true(condition: Callable[[], object], seconds: float = 60, pause: float = 0.02) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def read_pid(folder: Path, name: str) -> int:
    path = folder / f"{name}.pid"
    assert becomes_true(lambda: path.exists() and path.read_text())
    return int(path.read_text())
