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
draft.write_text(json.dumps(told)) if told else None
os.replace(draft, document)
'''
subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=True)
"""
FORGINGS = {
    "a gigabyte": (
        "told = None; open(folder / 'forged', 'w').truncate(2**30 - 4096)",
        "The document can't be read: document.json is larger than 16777216 bytes.",
    ),
    "half a document": (
        "told = None; (folder / 'forged').write_text(document.read_text()[:5000])",
        "document: is not valid JSON",
    ),
    "of another benchmark": (
        "told['benchmark']['name'] = 'other'",
        "benchmark.name: is 'other', this run measures 'tiny'",
    ),
    "of another case": (
        "told['benchmark']['case'] = 'size=99'",
        "benchmark.case: is 'size=99', this run measures 'size=10'",
    ),
    "forged seconds": (
        "told['repetitions'][0]['seconds'] = 3600.0",
        "by the document, but all of it",
    ),
    "numbers that are none": ("told['metrics'][0]['value'] = 1e300", "metrics[0].value"),
    "markup and control characters": (
        "told['metrics'][0]['name'] = '<script>' + chr(7)",
        "metrics[0].name",
    ),
}


@pytest.mark.parametrize("forging", FORGINGS)
def test_a_forged_document_fails_its_run_alone(host: Host, requested: Requested, forging: str) -> None:
    code, sentence = FORGINGS[forging]
    run = execute_run(host, requested({"train.py": FORGER.format(forging=code) + TRAIN}))
    assert (run.state, run.failure) == ("failed", "bad document"), run.reason
    assert sentence in run.reason
    assert not Document.objects.exists()
