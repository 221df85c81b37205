from __future__ import annotations

import pytest

from dashboard.pull_requests.selection import ProfiledFiles, is_prose, touched_cases

FILES = {
    "snake": ProfiledFiles(frozenset({"snake/train.py", "common/replay.py"})),
    "mario": ProfiledFiles(frozenset({"mario/train.py", "common/replay.py"})),
}


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        (["snake/train.py"], {"snake"}),
        (["common/replay.py"], {"snake", "mario"}),
        (["README.md", "docs/plot.png", ".github/workflows/ci.yml", "LICENSE"], set()),
        (["configs/fast.yaml"], {"snake", "mario"}),
        (["mario/train.py", "README.md"], {"mario"}),
        (["requirements.txt"], {"snake", "mario"}),
        ([], set()),
    ],
)
def test_a_case_is_touched_by_what_it_runs_and_by_what_nobody_knows(
    changed: list[str], touched: set[str]
) -> None:
    assert set(touched_cases(changed, FILES)) == touched


def test_what_was_never_measured_is_touched_by_any_code() -> None:
    files = {**FILES, "new": None}
    assert set(touched_cases(["snake/train.py"], files)) == {"snake", "new"}
    assert touched_cases(["CHANGELOG.md"], files) == {}


def test_what_other_processes_run_may_be_any_code() -> None:
    """A DataLoader's worker has no profile: the files of the main process's aren't all that its case runs."""
    files = {**FILES, "loader": ProfiledFiles(frozenset({"loader/train.py"}), all=False)}
    assert set(touched_cases(["common/replay.py"], files)) == {"snake", "mario", "loader"}
    assert set(touched_cases(["loader/train.py"], files)) == {"loader"}
    assert touched_cases(["CHANGELOG.md"], files) == {}


def test_the_first_file_says_why() -> None:
    changed = ["a.md", "common/replay.py", "snake/train.py"]
    assert touched_cases(changed, FILES)["snake"] == "common/replay.py"


@pytest.mark.parametrize(
    ("path", "prose"),
    [
        ("docs/a.rst", True),
        ("data/a.txt", False),
        ("LICENSE.txt", True),
        (".gitlab/x.py", True),
        ("a", False),
    ],
)
def test_prose(path: str, prose: bool) -> None:
    assert is_prose(path) == prose
