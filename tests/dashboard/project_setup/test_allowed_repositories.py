"""Which repositories a page may name."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pytest_django import Settings

from dashboard.outgoing_http import InternalAddressError
from dashboard.project_setup.allowed_repositories import guarded_options, read_address, remote_host
from dashboard.project_setup.errors import SetupError


@pytest.mark.parametrize(
    ("written", "address"),
    [
        (" https://git.example.org/team/code.git ", "https://git.example.org/team/code.git"),
        ("ssh://git@git.example.org:2222/code", "ssh://git@git.example.org:2222/code"),
        ("git@git.example.org:team/code.git", "git@git.example.org:team/code.git"),
    ],
)
def test_what_may_be_named(written: str, address: str) -> None:
    assert read_address(written, "", "", local_allowed=False) == (address, "")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("", "Give the repository's address"),
        ("--upload-pack=touch x", "no address of a repository has"),
        ("-oProxyCommand=x:y", "no address of a repository has"),
        ("https://git.example.org/a b", "no address of a repository has"),
        ("ext::sh -c id", "no address of a repository has"),
        ("ext::id", "is no address of a repository"),
        ("git@host:--upload-pack=x", "is no address of a repository"),
        ("ssh://-oProxyCommand=x/y", "The host of that address"),
        ("ssh://-x@host/y", "The host of that address"),
        ("https://host:99999/x", "The port of that address"),
        ("https://host/", "names the repository's path"),
        ("https://host/x?service=y", "names the repository's path"),
        ("http://host/x", "is not encrypted"),
        ("git://host/x", "is not encrypted"),
        ("ftp://host/x", "begins with https:// or ssh://"),
        ("/srv/git/code", "administrators of the site alone"),
        ("../code", "administrators of the site alone"),
        ("file:///srv/git/code", "administrators of the site alone"),
        ("https://host/" + "x" * 2000, "at most 2000 characters"),
    ],
)
def test_what_may_not_be_named(written: str, sentence: str) -> None:
    with pytest.raises(SetupError, match=sentence) as refused:
        read_address(written, "", "", local_allowed=False)
    assert refused.value.field == "repository"


def test_an_administrator_names_a_folder(tmp_path: Path) -> None:
    assert read_address(str(tmp_path), "", "", local_allowed=True) == (str(tmp_path), "")
    for written in ("wu_repo", "ftp://host/x"):
        with pytest.raises(SetupError, match="git@host:path, or is a folder of the site's machine"):
            read_address(written, "", "", local_allowed=True)
    with pytest.raises(SetupError, match="neither a folder"):
        read_address(str(tmp_path / "nowhere"), "", "", local_allowed=True)


@pytest.mark.parametrize("address", ["ssh://git@git.example.org/code", "git@git.example.org:team/code.git"])
def test_only_who_may_add_projects_names_what_the_key_of_the_site_reads(address: str) -> None:
    read = partial(read_address, user="", password="", local_allowed=False, key_allowed=False)
    https = "https://git.example.org/code"
    for known in ("", https):
        with pytest.raises(SetupError, match="the site's own key is used"):
            read(address, known=known)
    assert read(address, known=address) == (address, "")
    assert read(https) == (https, "")


def test_who_may_not_name_a_folder_keeps_the_one_that_is_named() -> None:
    assert read_address("/srv/x", "", "", local_allowed=False, known="/srv/x") == ("/srv/x", "")


@pytest.mark.parametrize(
    ("address", "user", "password", "credentials"),
    [
        ("https://host/x", "ann", "p@ss:/", "ann:p%40ss%3A%2F"),
        ("https://ann:secret@host/x", "", "", "ann:secret"),
        ("https://ann:old@host/x", "ann", "new", "ann:new"),
    ],
)
def test_credentials_are_kept_apart(address: str, user: str, password: str, credentials: str) -> None:
    assert read_address(address, user, password, local_allowed=False) == ("https://host/x", credentials)


@pytest.mark.parametrize(
    ("address", "user", "password", "field"),
    [
        ("git@host:x", "ann", "secret", "user"),
        ("https://host/x", "", "secret", "user"),
        ("https://host/x", "ann", "se\ncret", "password"),
        ("https://host/x", "ann", "x" * 1001, "password"),
    ],
)
def test_wrong_credentials_name_their_field(address: str, user: str, password: str, field: str) -> None:
    with pytest.raises(SetupError) as refused:
        read_address(address, user, password, local_allowed=False)
    assert (refused.value.field, password in str(refused.value)) == (field, False)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://git.example.org/x", ("git.example.org", 443)),
        ("ssh://git@git.example.org:2222/x", ("git.example.org", 2222)),
        ("git@git.example.org:x", ("git.example.org", 22)),
        ("/srv/x", None),
    ],
)
def test_the_host_that_is_asked(address: str, host: tuple[str, int] | None) -> None:
    assert remote_host(address) == host


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1/x", "ssh://git@10.0.0.1/x", "git@localhost:x", "https://[::1]/x"]
)
def test_internal_hosts_are_not_asked(address: str, settings: Settings) -> None:
    with pytest.raises(InternalAddressError):
        guarded_options(address)
    settings.PACELINE_ALLOW_INTERNAL_REPOSITORIES = True
    assert "http.followRedirects=false" not in guarded_options(address)


def test_git_asks_the_address_that_was_looked_at() -> None:
    options = guarded_options("https://93.184.216.34/x")
    assert "http.curloptResolve=93.184.216.34:443:93.184.216.34" in options
    assert "http.followRedirects=false" in options
