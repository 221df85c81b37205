from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rooms import (
    LAYERS,
    ROOMS,
    forbidden_imports,
    import_circles,
    impure_decisions,
    module_imports,
    package_imports,
    regression_modules,
    upward_imports,
)

ROOT = Path(__file__).resolve().parent.parent


def reads_rows(source: str) -> bool:
    names = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    return not names.isdisjoint({"objects", "_default_manager", "save", "delete", "refresh_from_db"})


def test_every_import_follows_an_arrow() -> None:
    assert forbidden_imports(ROOT) == []


def test_every_room_has_files() -> None:
    assert [room.folder for room in ROOMS if not list((ROOT / room.folder).rglob("*.py"))] == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("dashboard/runs/planted.py", "import workers.site.tasks"),
        ("dashboard/detection/planted.py", "from django.db import models"),
        ("dashboard/detection/planted.py", "from .. import models"),
        ("dashboard/detection/planted.py", "import bench.detection.null_models"),
        ("dashboard/pages/planted.py", "from paceline import sampler"),
        ("dashboard/management/planted.py", "from bench import demo"),
        ("dashboard/experiments/planted.py", "from dashboard import regressions"),
        ("dashboard/experiments/planted.py", "from dashboard.models import Regression"),
        ("dashboard/repositories/planted.py", "from django.conf import settings"),
        ("dashboard/repositories/planted.py", "from dashboard.models import Project"),
        ("dashboard/repositories/planted.py", "from paceline import sampler"),
        ("dashboard/regressions/decision/planted.py", "from time import monotonic"),
        ("dashboard/regressions/decision/planted.py", "from datetime import datetime"),
        ("dashboard/regressions/decision/planted.py", "from django.utils import timezone"),
        ("dashboard/regressions/decision/planted.py", "from django.db import connection"),
        ("dashboard/regressions/decision/planted.py", "from dashboard.models import Change"),
        ("dashboard/regressions/decision/planted.py", "from dashboard.regressions import snapshot"),
        ("dashboard/regressions/decision/planted.py", "from dashboard import repositories"),
        ("dashboard/forges/planted.py", "from dashboard import pull_requests"),
        ("dashboard/forges/planted.py", "from dashboard.triggers.receiving import receive_trigger"),
        ("dashboard/forges/planted.py", "from dashboard.models import Run"),
        ("dashboard/services/planted.py", "from django.conf import settings"),
        ("workers/site/planted.py", "from dashboard.models import Run"),
        ("workers/site/planted.py", "from dashboard import models"),
        ("workers/host/planted.py", "import torch"),
        ("workers/host/planted.py", "from django.conf import settings"),
        ("workers/host/planted.py", "from dashboard import runs"),
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


def test_no_decision_reads_a_row() -> None:
    files = list((ROOT / "dashboard" / "regressions" / "decision").rglob("*.py"))
    assert len(files) > 5
    assert [file.name for file in files if reads_rows(file.read_text())] == []
    assert reads_rows("Experiment.objects.get(pk=1)")
    assert reads_rows("regression.save()")


@pytest.mark.parametrize("package", ["detection", "repositories", "structured_logs"])
def test_what_needs_no_django_imports_none(package: str) -> None:
    code = f"import sys, dashboard.{package}; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_workers_never_import_torch() -> None:
    code = "import sys, workers.site.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_regressions_import_downwards_alone() -> None:
    modules = regression_modules(ROOT)
    assert upward_imports(modules) == []
    assert import_circles(modules) == []
    assert len(LAYERS) <= 5


def test_every_layer_has_modules() -> None:
    firsts = {name.split(".")[0] for name in regression_modules(ROOT)}
    assert [part for layer in LAYERS for part in layer if part not in firsts] == []


@pytest.mark.parametrize(
    ("path", "line", "sentence"),
    [
        ("series/history.py", "from dashboard.regressions.judging import judge_run", "imports judging"),
        ("decision/decide.py", "from dashboard.regressions import apply", "imports apply"),
        ("decision/decide.py", "from ..snapshot import take_snapshot", "imports snapshot"),
        ("services.py", "import math", "has no layer"),
    ],
)
def test_a_planted_layer_is_found(tmp_path: Path, path: str, line: str, sentence: str) -> None:
    for planted in ("judging.py", "apply.py", "snapshot.py", path):
        file = tmp_path / "dashboard/regressions" / planted
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(line if planted == path else "")
    assert [found for found in upward_imports(regression_modules(tmp_path)) if sentence in found]


def test_a_planted_circle_is_found() -> None:
    modules = {"apply": {"gathering"}, "gathering": {"snapshot"}, "snapshot": {"apply"}, "changes": {"apply"}}
    assert import_circles(modules) == ["apply", "gathering", "snapshot"]


@pytest.mark.parametrize("room", ["dashboard", "dashboard/alerts", "dashboard/charts", "dashboard/sentences"])
def test_no_packages_import_each_other(room: str) -> None:
    assert import_circles(package_imports(ROOT, room)) == []


@pytest.mark.parametrize("folder", ["bench", "dashboard", "trainers/harness/src/paceline", "workers"])
def test_no_modules_import_each_other(folder: str) -> None:
    assert import_circles(module_imports(ROOT, folder)) == []


def test_a_circle_that_only_types_close_is_found(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/causes.py").write_text("if TYPE_CHECKING:\n    from bench.project import Project")
    (tmp_path / "bench/project.py").write_text("from bench.causes import Cause")
    (tmp_path / "bench/printing.py").write_text("from bench import project")
    assert import_circles(module_imports(tmp_path, "bench")) == ["bench.causes", "bench.project"]


def test_a_planted_circle_of_packages_is_found(tmp_path: Path) -> None:
    for path, line in (
        ("runs/claiming.py", "from dashboard.experiments.transitions import end"),
        ("experiments/__init__.py", "def later():\n    from dashboard import runs"),
        ("leases.py", "import dashboard.runs.claiming"),
    ):
        (tmp_path / "dashboard" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dashboard" / path).write_text(line)
    assert set(import_circles(package_imports(tmp_path, "dashboard"))) == {"runs", "experiments"}


def test_the_decision_reads_no_rows_no_clock_and_no_git() -> None:
    assert impure_decisions(ROOT) == []


@pytest.mark.parametrize(
    "line",
    [
        "from datetime import datetime",
        "import time",
        "import subprocess",
        "from django.utils import timezone",
        "from django.db import transaction",
        "from dashboard import repositories",
        "from dashboard.models import Change",
        "from dashboard.models import Regression\nrows = Regression.objects.all()",
        "from dashboard.models import Experiment as Row\nmade = Row(pk=1)",
        "from dashboard.experiments import request_experiment",
        "from dashboard.regressions import apply",
    ],
)
def test_a_planted_impurity_is_found(tmp_path: Path, line: str) -> None:
    planted = tmp_path / "dashboard/regressions/decision/planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"{line}\n")
    assert len(impure_decisions(tmp_path)) == 1
