from __future__ import annotations

import subprocess
import sys

CODE = """
import gc
import django
django.setup()
from dashboard.garbage_collection import freeze_imported_objects
freeze_imported_objects()
import sys
assert "dashboard.pages.overview" in sys.modules
print(gc.get_freeze_count(), len(gc.get_objects()))
"""


def test_a_web_process_leaves_what_it_imported_out_of_collections() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    frozen, left = map(int, done.stdout.split())
    assert frozen > 100_000
    assert left < frozen / 100
