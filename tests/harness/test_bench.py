"""The measurements of the harness itself run to their end; what they find depends on the machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import prepared_python

# A part that trains takes minutes where other tests run beside it.
pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).resolve().parent.parent.parent


def run_bench(*arguments: str) -> str:
    command = [sys.executable, "-m", "bench", *arguments]
    ended = prepared_python.run_prepared(command, cwd=ROOT, capture_output=True, timeout=280)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_marks_are_shown_beside_their_alternatives() -> None:
    shown = run_bench("marks", "--rounds", "2")
    assert re.search(r"a phase +\d+ ns +1\.00 +(reached|MISSED|undecided): at most 300 ns", shown)
    assert re.search(r"record_function.+ns +\d+\.\d+", shown)


def test_a_run_is_compared_with_one_without_marks() -> None:
    shown = run_bench("overhead", "--pairs", "1")
    assert re.search(r"added by measuring +[+-]\d+\.\d+ us +none from so few pairs +undecided", shown)


def test_growth_is_told_per_million_steps() -> None:
    assert len(re.findall(r"[\d,]+ +-?\d+\.\d+ MB", run_bench("growth", "--steps", "2000"))) == 3


def test_a_part_that_does_not_exist_is_refused() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"], cwd=ROOT, capture_output=True, text=True
    )
    assert (ended.returncode, "there is no part nothing" in ended.stderr) == (2, True)
