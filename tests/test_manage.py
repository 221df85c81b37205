from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PACELINE_LEASE_SECONDS", "abc", "PACELINE_LEASE_SECONDS must be a whole number, not 'abc'."),
        ("EMAIL_URL", "foo", "EMAIL_URL must begin with smtp://"),
        ("DATABASE_URL", "foo", "DATABASE_URL must begin with postgresql://"),
        (
            "PACELINE_HOME",
            "/dev/null",
            "PACELINE_HOME is /dev/null, where the key can't be kept: Not a directory.",
        ),
    ],
)
@pytest.mark.parametrize("command", ["up", "trigger"])
def test_a_wrong_setting_is_one_sentence(name: str, value: str, sentence: str, command: str) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(sentence)
    assert ended.stderr.count("\n") == 1
