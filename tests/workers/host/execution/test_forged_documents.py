"""Code that writes its own document: one clear failure each time, and nothing of it is stored."""

from __future__ import annotations

import pytest

from dashboard.models import Document
from tests.workers.conftest import TRAIN, Host, Requested
from tests.workers.host.execution.test_run_executor import execute_run

# At its end the harness renames the document into place; what runs beside it in the box replaces it then.
FORGER = """
import os, subprocess, sys

code = '''
import json, os, pathlib, time
folder = pathlib.Path(os.environ["TMPDIR"]).parent
document = folder / "document.json"
while not document.exists():
    time.sleep(0.0005)
told = json.loads(document.read_text())
{forging}
draft = folder / "forged"
draft.write_text(json.dumps(told))
os.replace(draft, document)
'''
subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=True)
"""
# Refused by the site and by the host. What else either refuses, tests/dashboard/ingest/test_store.py and
# test_launching.py say.
FORGINGS = {
    "of another case": (
        "told['benchmark']['case'] = 'size=99'",
        "benchmark.case: is 'size=99', this run measures 'size=10'",
    ),
    "forged seconds": (
        "told['repetitions'][0]['seconds'] = 3600.0",
        "by the document, but all of it",
    ),
}


@pytest.mark.parametrize("forging", FORGINGS)
def test_a_forged_document_fails_its_run_alone(host: Host, requested: Requested, forging: str) -> None:
    code, sentence = FORGINGS[forging]
    run = execute_run(host, requested({"train.py": FORGER.format(forging=code) + TRAIN}))
    assert (run.state, run.failure) == ("failed", "bad document"), run.reason
    assert sentence in run.reason
    assert not Document.objects.exists()
