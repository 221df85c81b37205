from __future__ import annotations

import subprocess
import sys

from dashboard.garbage_collection import IMPORTED_OBJECTS, YOUNG_OBJECTS

# It says how often it has collected once all pages are imported, before it does so by itself.
WEB_PROCESS = """
import gc, sys
import django
django.setup()
from dashboard.garbage_collection import freeze_imported_objects
collect = gc.collect
def say_and_collect():
    print(gc.get_threshold()[0], gc.get_stats()[0]["collections"], gc.get_stats()[2]["collections"])
    return collect()
gc.collect = say_and_collect
freeze_imported_objects()
assert "dashboard.pages.overview" in sys.modules
print(gc.get_freeze_count(), len(gc.get_objects()))
"""


def test_a_web_process_collects_a_few_times_and_leaves_out_what_it_imported() -> None:
    done = subprocess.run([sys.executable, "-c", WEB_PROCESS], capture_output=True, text=True, check=True)
    young, collections, full, frozen, left = map(int, done.stdout.split())
    assert young == IMPORTED_OBJECTS
    # At every 700 objects there are 450 of them, three of which walk everything.
    assert collections < 200
    assert full == 0
    assert frozen > 100_000
    assert left < frozen / 100


JUDGED = """
import gc
from celery.signals import task_postrun
from workers.site import app, tasks
from dashboard import regressions
task_postrun.send(tasks.sweep_everything, task_id="swept")
assert not gc.get_freeze_count()
task_postrun.send(tasks.judge_run, task_id="judged")
print(gc.get_freeze_count(), len(gc.get_objects()), gc.get_threshold()[0])
"""


def test_a_worker_that_has_judged_leaves_what_it_imported_out_of_collections() -> None:
    done = subprocess.run([sys.executable, "-c", JUDGED], capture_output=True, text=True, check=True)
    frozen, left, young = map(int, done.stdout.split())
    assert frozen > 50_000
    assert left < frozen / 100
    assert young == YOUNG_OBJECTS
