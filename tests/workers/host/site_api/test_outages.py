"""A host is told to end: that is never lost."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, time
from workers.host.site_api import outages

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

outages.RAISED_AGAIN_SECONDS = 0.05
try:
    with outages.ending_signals():
        Finalized()
        print("dropped", flush=True)
        time.sleep(60)
except outages.StopRequested:
    os.kill(os.getpid(), signal.SIGTERM)
    print("ended")
"""


def test_an_end_that_python_drops_is_raised_again():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "dropped\nended\n")
    assert "Exception ignored" in done.stderr
