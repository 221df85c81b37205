"""Becomes somebody else's launcher, which is asked to end when the harness dies, also when that is killed.

Started by the harness as `python -P -m paceline.measured.launcher_process PLAN`. A launcher that is asked to
end ends its ranks, on other hosts too; one that nobody asks trains on for ever.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from .ending import die_with_parent
from .plan import ProcessPlan


def become_launcher() -> None:
    """Become the launcher; a launcher is a program of its own, which inherits this."""
    plan = ProcessPlan(**json.loads(Path(sys.argv[1]).read_text()))
    die_with_parent(signal.SIGTERM)
    if os.getppid() != plan.parent:
        sys.exit("the harness is gone")
    command = plan.launcher_command(sys.argv[1])
    os.execvp(command[0], command)  # noqa: S606  # it is the command that the harness was given


if __name__ == "__main__":
    become_launcher()
