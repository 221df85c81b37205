"""zelda_overworld's table of time shares: its document beside what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.trainers.conftest import ROOT, import_script

ZELDA = ROOT / "trainers" / "zelda_overworld"


def run_document(gauges: dict[str, float]) -> dict[str, Any]:
    """A document with what table.py reads of one."""
    metrics = [{"name": "step_time", "value": 0.01}]
    metrics += [{"name": f"gauge.{name}", "value": value} for name, value in gauges.items()]
    return {
        "benchmark": {"case": "variant=baseline"},
        "environment": {"cpu_model": "a processor", "torch": "2.13.0"},
        "metrics": metrics,
        "warnings": [{"code": "processor_contention"}] if "profiled_calls.all" not in gauges else [],
        "phases": [{"path": "observation", "total": 3e-4}],
    }


def test_the_table_puts_the_document_beside_what_was_measured() -> None:
    gauges = {"profiled_seconds.all": 100.0, "profiled_seconds.observation": 6.0}
    gauges |= {"profiled_percent.observation": 6.0, "profiled_calls.all": 1.8e7}
    said = import_script(ZELDA, "table").table(run_document(gauges))
    assert "| Observation construction | 5.80 s | 12.0 % | 6.00 s | 6.0 % | 3.00 s |" in said
    assert "| NES emulator | 10.30 s | 21.0 % |  |  |  |" in said
    assert "| All | 48.60 s | 100.0 % | 100.00 s |  | 100.00 s |" in said
    assert said.endswith("18.0 million calls (document: 17.9 million before, 16.1 million after).")


def test_a_run_without_shares_has_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(run_document({})))
    command = [sys.executable, str(ZELDA / "table.py"), str(tmp_path / "a.json")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "a.json: it has no gauges profiled_seconds" in ended.stderr


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    table = import_script(ZELDA, "table")
    first, last = table.MARKS
    (tmp_path / "README.md").write_text(f"before\n{first}\nold\n{last}\nafter\n")
    table.insert(tmp_path / "README.md", "new")
    assert (tmp_path / "README.md").read_text() == f"before\n{first}\n\nnew\n\n{last}\nafter\n"
    assert table.MARKS[0] in (ZELDA / "README.md").read_text()
