from __future__ import annotations

import pytest

from dashboard.policy.patterns import selects_name, selects_path, touched_paths


@pytest.mark.parametrize(
    ("patterns", "name", "selected"),
    [
        (["main"], "main", True),
        (["main"], "x/main", False),
        (["release/*"], "release/1.0", True),
        (["release/*"], "release/1/0", False),
        (["release/**"], "release/1/0", True),
        (["**"], "any/thing", True),
        (["v*"], "v1.2", True),
        (["**", "!wip/**"], "wip/a", False),
        (["**", "!wip/**", "wip/keep"], "wip/keep", True),
        (["!gh-pages"], "main", True),
        (["!gh-pages"], "gh-pages", False),
        ([], "main", False),
    ],
)
def test_names(patterns: list[str], name: str, selected: bool) -> None:
    assert selects_name(patterns, name) is selected


@pytest.mark.parametrize(
    ("pattern", "path", "selected"),
    [
        ("*.md", "README.md", True),
        ("*.md", "docs/deep/page.md", True),
        ("/*.md", "docs/page.md", False),
        ("docs/**", "docs/deep/page.txt", True),
        ("docs/**", "src/docs/page.txt", False),
        ("docs/", "docs/page.txt", True),
        ("**/docs/**", "src/docs/page.txt", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/test_*.py", "src/a/b/test_c.py", True),
        ("src/?.py", "src/a.py", True),
    ],
)
def test_paths(pattern: str, path: str, selected: bool) -> None:
    assert selects_path([pattern], path) is selected


def test_a_path_of_many_stars_is_quick() -> None:
    assert not selects_path(["*a" * 100 + "/b"], "a" * 4000 + "/c")


def test_ignored_paths_do_not_count() -> None:
    changed = ["README.md", "src/train.py", "src/notes.md"]
    assert touched_paths(changed, ["src/**"], ["*.md"]) == ["src/train.py"]
    assert touched_paths(changed, [], ["*.md"]) == ["src/train.py"]
    assert touched_paths(["README.md"], ["src/**"], []) == []
