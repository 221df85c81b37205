from __future__ import annotations

from pathlib import Path

from dashboard.secrets.keys import read_earlier_keys, read_or_make_key, renew_key


def test_the_sites_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert read_or_make_key(home) == read_or_make_key(home)
    assert (home / "secret_key").stat().st_mode & 0o077 == 0
    assert [file.name for file in home.iterdir()] == ["secret_key"]


def test_a_renewed_key_leaves_those_before_behind(tmp_path: Path) -> None:
    first = read_or_make_key(tmp_path)
    second = renew_key(tmp_path)
    third = renew_key(tmp_path)
    assert len({first, second, third}) == 3
    assert read_or_make_key(tmp_path) == third
    assert read_earlier_keys(tmp_path) == [second, first]
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["secret_key", "secret_key_fallbacks"]
