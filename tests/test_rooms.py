from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rooms import ROOMS, forbidden_imports

ROOT = Path(__file__).resolve().parent.parent


def test_every_import_follows_an_arrow() -> None:
    assert forbidden_imports(ROOT) == []


def test_every_room_has_files() -> None:
    assert [room.folder for room in ROOMS if not list((ROOT / room.folder).rglob("*.py"))] == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("dashboard/runs/planted.py", "import workers.tasks"),
        ("dashboard/detection/planted.py", "from django.db import models"),
        ("dashboard/detection/planted.py", "from .. import models"),
        ("dashboard/detection/planted.py", "import bench.detection.null_models"),
        ("dashboard/pages/planted.py", "from paceline import sampler"),
        ("dashboard/management/planted.py", "from bench import demo"),
        ("dashboard/repositories/planted.py", "from django.conf import settings"),
        ("dashboard/repositories/planted.py", "from dashboard.models import Project"),
        ("dashboard/repositories/planted.py", "from paceline import sampler"),
        ("dashboard/services/planted.py", "from django.conf import settings"),
        ("workers/planted.py", "from dashboard.models import Run"),
        ("workers/planted.py", "from dashboard import models"),
        ("workers/planted.py", "import torch"),
        ("trainers/harness/src/paceline/planted.py", "import numpy"),
        ("trainers/snake_dqn/planted.py", "import dashboard.runs"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, path: str, line: str) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(f"def later():\n    {line}\n")
    (sentence,) = forbidden_imports(tmp_path)
    assert sentence.startswith(f"{path}:2 imports ")


@pytest.mark.parametrize("package", ["detection", "repositories"])
def test_what_needs_no_django_imports_none(package: str) -> None:
    code = f"import sys, dashboard.{package}; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_workers_never_import_torch() -> None:
    code = "import sys, workers.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
