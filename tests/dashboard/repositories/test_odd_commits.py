"""Commits that no `git commit` writes and old repositories have: taken as they are, and none is lost."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dashboard import repositories
from dashboard.repositories import Mirror, git
from dashboard.repositories.child import ChildResult, run_child
from dashboard.repositories.commits import CommitContents, parse_commit
from tests.dashboard.conftest import Repository
from tests.dashboard.repositories.odd_commits import (
    NORMAL,
    commit_object,
    import_history,
    write_commit,
    write_commits,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NORMAL_DATE = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


TREE, PARENT = "1" * 40, "2" * 40
ADA = b"Ada <ada@example.org> "
DATES = [
    (b"1700000000 +518:00", NORMAL_DATE),
    (b"1700000000 +051800", NORMAL_DATE),
    (b"1700000000 -7530", NORMAL_DATE),
    (b"1700000000 somewhere", NORMAL_DATE),
    (b"1700000000", NORMAL_DATE),
    (b"-86400 +0000", datetime(1969, 12, 31, tzinfo=UTC)),
    (b"0 +0000", EPOCH),
    (b"99999999999999 +0000", datetime(9999, 12, 30, tzinfo=UTC)),
    (b"-99999999999999 +0000", datetime(1, 1, 2, tzinfo=UTC)),
    (b"9" * 5000 + b" +0000", datetime(9999, 12, 30, tzinfo=UTC)),
    (b"253402300800 +1400", datetime(9999, 12, 30, tzinfo=UTC)),
]
DATELESS_COMMITTERS = [None, b"", b"Ada", b"Ada <ada@example.org> yesterday", b"<> +0000"]
NAMELESS_AUTHORS = [None, b"", b" <> 1700000000 +0000", b"<ada@example.org>"]
NAMES = [
    (b"\xff\xfe <a@b> 1 +0000", "\ufffd\ufffd"),
    (b"A\0B <a@b> 1 +0000", "A\ufffdB"),
    (b"A > B <a@b> 1 +0000", "A > B"),
    (b"x" * 3000 + b" <a@b> 1 +0000", "x" * 200),
    ("a\u2028b <a@b> 1 +0000".encode(), "a\u2028b"),
]
MESSAGES = [
    (b"", ""),
    (b"\n\n\n", ""),
    (b"\n \n  Late\n", "Late"),
    (b"Folded\nsubject\n\nbody", "Folded subject"),
    (b"Windows\r\n\r\nbody\r\n", "Windows"),
    (b"a\0b\n", "a\ufffdb"),
    (b"\xe9t\xe9\n", "\ufffdt\ufffd"),
    ("a\u2028b\n".encode(), "a\u2028b"),
    (b"x" * 2_000_000, "x" * 500),
    (b"no end", "no end"),
]
ENCODINGS = [
    (b"ISO-8859-1", b"Gr\xfc\xdfe", "Grüße"),
    (b"latin1", b"Gr\xfc\xdfe", "Grüße"),
    (b"ISO-2022-JP", b"\x1b$B%F%9%H\x1b(B", "テスト"),
    (b"UTF-16", b"plain", "plain"),
    (b"no-such-thing", "Grüße".encode(), "Grüße"),
    (b"rot13", b"plain", "plain"),
    (b"undefined", b"plain", "plain"),
    (b"UTF-7", b"+2AA-", "\ufffd"),
    (b"\xff\0", b"plain", "plain"),
    (b"", b"plain", "plain"),
]
SAYS_NOTHING: dict[str, Any] = {"author": None, "committer": None, "message": b""}
SIGNED_TAG = {
    "more": b"mergetag object x\n tagger Eve <e@f> 1 +0000\n \n Not this\n"
    b"gpgsig -----BEGIN\n \n " + b"a" * 70_000
}


def encoded_parts(encoding: bytes, text: bytes) -> dict[str, bytes]:
    return {"author": text + b" <a@b> 1 +0000", "more": b"encoding " + encoding, "message": text + b"\n"}


# All that the tests below read one by one.
ODDITIES: list[dict[str, Any]] = [
    *({"committer": ADA + date} for date, _ in DATES),
    *({"committer": committer} for committer in DATELESS_COMMITTERS),
    *({"author": author} for author in (*NAMELESS_AUTHORS, *(name for name, _ in NAMES))),
    *({"message": message} for message, _ in MESSAGES),
    *(encoded_parts(encoding, text) for encoding, text, _ in ENCODINGS),
    SAYS_NOTHING,
    SIGNED_TAG,
]


def test_each_is_read_from_git_between_others(mirror: Mirror, repository: Repository) -> None:
    """Just as what git stores of it is parsed, and none moves or hides the one behind it."""
    line = [parts for odd in ODDITIES for parts in (odd, {"message": b"After\n"})]
    hashes = write_commits(repository, *line)
    mirror.fetch()
    read = repositories.select_commits(mirror, {"last": len(line) + 1})
    found = repositories.read_commits(mirror, read)
    assert [commit.hash for commit in found[1:]] == hashes
    assert [commit.position for commit in found] == list(range(1, len(line) + 2))
    assert {commit.subject for commit in found[2::2]} == {"After"}
    for before, commit, parts in zip(found, found[1:], line, strict=False):
        parsed = parse_commit(commit_object(TREE, before.hash, **parts))
        assert parsed == CommitContents(commit.parents, commit.author, commit.committed_at, commit.subject)


def parse_odd(**parts: Any) -> CommitContents:
    parsed = parse_commit(commit_object(TREE, PARENT, **parts))
    assert parsed.parents == [PARENT]
    return parsed


@pytest.mark.parametrize(("date", "expected"), DATES)
def test_a_date_is_its_seconds(date: bytes, expected: datetime) -> None:
    found = parse_odd(committer=ADA + date)
    assert (found.committed_at, found.author, found.subject) == (expected, "Ada", "A subject")


@pytest.mark.parametrize("committer", DATELESS_COMMITTERS)
def test_without_a_committers_date_it_is_the_authors(committer: bytes | None) -> None:
    assert parse_odd(committer=committer).committed_at == NORMAL_DATE


@pytest.mark.parametrize("author", NAMELESS_AUTHORS)
def test_a_commit_may_have_no_author(author: bytes | None) -> None:
    found = parse_odd(author=author)
    assert (found.author, found.subject, found.committed_at) == ("", "A subject", NORMAL_DATE)


def test_a_commit_may_say_nothing_at_all() -> None:
    found = parse_odd(**SAYS_NOTHING)
    assert (found.author, found.subject, found.committed_at) == ("", "", EPOCH)


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_a_name_may_be_anything(name: bytes, expected: str) -> None:
    assert parse_odd(author=name).author == expected


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_message_may_be_anything(message: bytes, expected: str) -> None:
    assert parse_odd(message=message).subject == expected


@pytest.mark.parametrize(("encoding", "text", "expected"), ENCODINGS)
def test_a_text_is_read_in_its_encoding(encoding: bytes, text: bytes, expected: str) -> None:
    found = parse_odd(**encoded_parts(encoding, text))
    assert (found.author, found.subject) == (expected, expected)


def test_a_signature_and_a_merged_tag_stand_before_the_message() -> None:
    found = parse_odd(**SIGNED_TAG)
    assert (found.author, found.subject, found.committed_at) == ("Ada", "A subject", NORMAL_DATE)


def test_only_the_lines_after_the_tree_are_parents() -> None:
    parents = b"".join(b"parent %040x\n" % number for number in range(100))
    data = b"tree %040x\n" % 1 + parents + b"author " + NORMAL + b"\nparent %040x\n\nx" % 7
    assert parse_commit(data).parents == [f"{number:040x}" for number in range(100)]


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\n\n", b"tree", b"parent x\n\n", b"\0" * 100, b"author\n" * 1000]
)
def test_no_bytes_are_too_odd(data: bytes) -> None:
    assert parse_commit(data).committed_at == EPOCH


def test_files_whose_names_are_not_utf8_are_no_obstacle(mirror: Mirror, repository: Repository) -> None:
    odd = b"fast\xff\xfe name\n.py"
    stream = (
        b"commit refs/heads/main\ncommitter Ada <a@b> 1700000000 +0000\ndata 3\nodd\n"
        b"from refs/heads/main^0\nM 644 inline " + b'"fast\\377\\376 name\\n.py"' + b"\ndata 1\nx\n"
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository.folder, input=stream, check=True)
    mirror.fetch()
    tip = repositories.resolve_revision(mirror, "HEAD")
    assert odd in mirror.run(["ls-tree", "-z", "--name-only", tip]).split(b"\0")
    assert repositories.read_commits(mirror, [tip])[0].subject == "odd"
    assert list(repositories.read_manifests(mirror, [tip])) == [tip]


def test_an_account_that_checks_objects_fetches_odd_ones(
    mirror: Mirror, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "account").write_text("[transfer]\n\tfsckObjects = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "account"))
    odd = write_commit(repository, author=None, committer=b"Ada<a@b> 099999999999999999999 +518:00")
    own = repositories.locate_mirror(tmp_path / "other", "snakes", str(repository.folder), "main")
    own.fetch()
    assert repositories.resolve_revision(own, "HEAD") == odd


def test_ten_thousand_commits_are_read_by_a_few_processes(
    mirror: Mirror, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_history(repository, 10_000, odd=1000)
    repository.git("branch", "topic", "main")
    repository.git("update-ref", "refs/heads/main", "main~10000")
    mirror.fetch()
    hashes = repositories.commits_between(mirror, "main", "topic", most=10_000)
    started = []

    def counted(command: list[str], **more: Any) -> ChildResult:
        started.append(command)
        return run_child(command, **more)

    monkeypatch.setattr(git, "run_child", counted)
    found = repositories.read_commits(mirror, hashes)
    assert [commit.hash for commit in found] == hashes
    assert {commit.branch for commit in found} == {"topic"}
    assert [commit.position for commit in found] == list(range(2, 10_002))
    assert (found[1].subject, found[1000].subject) == ("number 1", "\ufffd\ufffd")
    assert len(started) <= 5
