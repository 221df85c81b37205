"""The hash of a commit is spelt in one place, and in the room that may not look there alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard import repositories
from dashboard.forges import json_fields

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("text", "whole", "named"),
    [("a" * 40, True, True), ("a" * 64, True, True), ("a" * 7, False, True), ("a" * 50, False, True)],
)
def test_a_whole_hash_is_told_from_its_beginning(text: str, whole: bool, named: bool) -> None:
    assert bool(repositories.FULL_HASH.fullmatch(text)) is whole
    assert bool(repositories.ABBREVIATED_HASH.fullmatch(text)) is named


def test_a_hash_is_spelt_nowhere_else() -> None:
    assert (json_fields.FULL_HASH, json_fields.ABBREVIATED_HASH) == (
        repositories.FULL_HASH,
        repositories.ABBREVIATED_HASH,
    )
    spelt = [
        path.relative_to(ROOT).as_posix()
        for room in ("dashboard", "workers")
        for path in sorted((ROOT / room).rglob("*.py"))
        if 're.compile(r"[0-9a-f]{40}' in path.read_text()
    ]
    assert spelt == ["dashboard/forges/json_fields.py", "dashboard/repositories/hashes.py"]
