from __future__ import annotations

import pytest

from dashboard.repositories import join_credentials, split_credentials


@pytest.mark.parametrize(
    ("address", "without", "credentials"),
    [
        ("https://ann:hunter2@git.example/x.git", "https://git.example/x.git", "ann:hunter2"),
        ("https://token@git.example:8443/x", "https://git.example:8443/x", "token"),
        ("https://ann:p%40ss@git.example/x@y", "https://git.example/x@y", "ann:p%40ss"),
        ("ssh://git@git.example/x", "ssh://git@git.example/x", ""),
        ("git@git.example:x.git", "git@git.example:x.git", ""),
        ("/srv/git/a@b", "/srv/git/a@b", ""),
        ("https://[bad/x", "https://[bad/x", ""),
    ],
)
def test_credentials_are_taken_out_and_put_back(address: str, without: str, credentials: str) -> None:
    assert split_credentials(address) == (without, credentials)
    assert join_credentials(without, credentials) == address
