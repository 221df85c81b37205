from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def manage(site_environment: dict[str, str]) -> Manage:
    """`manage.py` as a person calls it, on this test's database."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**site_environment, "COLUMNS": "100", **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return call
