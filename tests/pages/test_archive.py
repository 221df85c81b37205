"""Everything of a project out in one file, and in again: the same rows, the same pages, or nothing."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard.archive import archive_name, compress_lines, write_archive
from dashboard.archive.tables import LATER_TABLES, TABLES, archived_fields
from dashboard.models import (
    AlertRule,
    Channel,
    Check,
    CheckedCase,
    Claim,
    Commit,
    Document,
    KeptFile,
    Machine,
    PostedDocument,
    Project,
    PullRequest,
    Regression,
    Run,
    Sentinel,
    SentinelPoint,
    Series,
    SeriesLatest,
    Snooze,
    Triage,
    Trigger,
)
from dashboard.secrets import EncryptedField
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders
from tests.pages.claim_builders import create_claim, measure_claim
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_experiment

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def archive(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Path]:
    """The archive of a project with a row in every table, made once for all tests that begin with both."""
    with share_rows(django_db_blocker, lambda: export_project(tmp_path_factory.mktemp("archive"))) as path:
        yield path


@pytest.fixture
def operator(archive: Path, db: None) -> User:
    """Who asked for what is in it."""
    return User.objects.get(username="ada")


@pytest.fixture
def exported(archive: Path, db: None) -> Path:
    return archive


def export_project(folder: Path) -> Path:
    """The archive as the command writes it."""
    operator = User.objects.create_superuser("ada", "ada@example.org", "a long secret")
    regression = builders.create_stepped_regression(state=Regression.State.CONFIRMED)
    project, series, commit = regression.project, regression.series, regression.first_bad
    run = Run.objects.filter(commit=commit).get()
    project.hook_secret, project.credentials = "hook-secret", "user:password-of-git"
    project.visibility, project.poll_minutes, project.check_floor = "private", 5, 0.07
    project.policy = "[policy]\npaths_ignore = []\n"
    project.save()
    KeptFile.objects.create(project=project, path="train.py", text="print('é')\n")
    run.trigger = Trigger.objects.create(
        project=project, source="web", state="resolved", delivery="once", requested_by=operator
    )
    run.save()
    run.costs.create(part="measuring", seconds=3.25)
    PostedDocument.objects.create(
        run=run, sha256="a" * 64, machine="laptop", measured_at=timezone.now(), posted_by=operator
    )
    SeriesLatest.objects.filter(series=series).update(level=0.00145)
    limit = builders.create_limit(series, run, 0.0011, regression=regression)
    series.guard_results.create(run=run, position=limit.position, state="kept", seeds=3, minimum=0.5)
    experiment = create_experiment([regression.last_good, commit])
    experiment.state, experiment.verdict, experiment.finished_at = "done", "confirmed", timezone.now()
    experiment.save()
    experiment.pairs.create(index=0, base_first=True, base=1.0, head=1.4, seconds=2, phases={"learn": [1, 2]})
    regression.experiment_links.create(experiment=experiment, series=series)
    Triage.objects.create(regression=regression, person=operator, action="comment", comment="Seen.")
    Snooze.objects.create(regression=regression, growth_percent=5, ratio=1.38)
    sentinel = Sentinel.objects.create(
        configuration=run.configuration, machine=run.machine, commit=commit, by_hand=True
    )
    SentinelPoint.objects.create(
        sentinel=sentinel, run=run, metric=series.metric, value=2.5, samples=[2.5], measured_at=timezone.now()
    )
    channel = Channel.objects.create(
        project=project, kind="webhook", address="https://example.org/hook", secret="channel-secret"
    )
    AlertRule.objects.create(channel=channel, position=0, states=["confirmed"])
    builders.create_delivery(regression, "failed", kind=channel.kind, address=channel.address)
    measure_claim(create_claim([commit]), commit, 1.5, "holds")
    request = PullRequest.objects.create(project=project, number=7, head_hash="b" * 40, base_ref="main")
    check = Check.objects.create(
        project=project,
        pull_request=request,
        head_hash="b" * 40,
        onto="main",
        base_commit=commit,
        minutes=10,
        floor=0.03,
        state="done",
        answer="not worse",
        requested_by=operator,
    )
    CheckedCase.objects.create(of=check, configuration=run.configuration, experiment=experiment)
    path = folder / archive_name(project)
    call_command("export_results", project.slug, output=str(path), stdout=StringIO())
    return path


def import_file(path: Path, slug: str = "copy") -> str:
    output = StringIO()
    call_command("import_results", slug, str(path), format="paceline", stdout=output)
    return output.getvalue()


def read_lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, lines: list[Any]) -> Path:
    """An archive of these lines, with the digest that they have."""
    packed = [orjson.dumps(line) + b"\n" for line in lines[:-1]]
    digest = hashlib.sha256(b"".join(packed[1:])).hexdigest()
    path.write_bytes(b"".join(packed) + orjson.dumps({"sha256": digest}))
    return path


def test_a_copy_exports_the_same_content(exported: Path) -> None:
    lines = read_lines(exported)
    assert [line["table"] for line in lines if isinstance(line, dict) and line.get("rows") == 0] == []
    printed = import_file(exported)
    assert "4 commits, 4 runs" in printed
    assert "Its channels are off" in printed
    copy = Project.objects.get(slug="copy")
    again = [orjson.loads(line) for line in write_archive(copy)]
    assert again[0]["project"] == "copy"
    assert again[1:] == lines[1:]


def test_a_copy_shows_the_same_numbers(exported: Path, signed_in: Client) -> None:
    import_file(exported)
    # A copy's are off, and its pages say that nobody is told.
    Channel.objects.update(enabled=True)
    Project.objects.get(slug="copy").note_reading()
    for model, way in ((Series, "configuration__case__project__slug"), (Regression, "project__slug")):
        before, after = (
            shown_numbers(signed_in, model.objects.filter(**{way: slug}).order_by("pk")[0])
            for slug in ("snake", "copy")
        )
        assert len(before) > 100
        assert [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]] == []


def shown_numbers(client: Client, row: Series | Regression) -> list[str]:
    """The words of its page, without names, numbers of rows, and times that go by."""
    text = shown_text(client.get(row.get_absolute_url()))
    # Its neighbours are those of the whole site.
    neighbours = r"← newer|older →|\[ |\] "
    passing = r"\b(snake|copy)\b|#\d+|(run|regression|experiment) \d+|\d+ \w+ ago|just now"
    return re.sub(f"{neighbours}|{passing}", "", text).split()


def test_no_secret_and_no_account_leaves(exported: Path) -> None:
    text = gzip.decompress(exported.read_bytes()).decode()
    for secret in ("hook-secret", "password-of-git", "channel-secret", "ada@example.org"):
        assert secret not in text
    columns = [column for table in TABLES for column in archived_fields(table)]
    assert not [column for column in columns if isinstance(column, EncryptedField) or "token" in column.name]


def test_a_posted_run_stays_posted_in_a_copy(exported: Path, signed_in: Client) -> None:
    import_file(exported)
    posted = PostedDocument.objects.get(run__commit__project__slug="copy")
    assert (posted.sha256, posted.machine, posted.posted_by) == ("a" * 64, "laptop", None)
    page = posted.run.get_absolute_url()
    Run.objects.filter(pk=posted.run_id).update(origin=Run.Origin.POSTED)
    assert "laptop" in shown_text(signed_in.get(page))
    # As files from before this table left it.
    posted.delete()
    assert signed_in.get(page).status_code == 200


def test_a_copy_is_quiet(exported: Path) -> None:
    Machine.objects.filter(name="bench-1").update(name="another")
    import_file(exported)
    copy = Project.objects.get(slug="copy")
    assert (copy.visibility, copy.poll_minutes, copy.check_floor) == ("private", 0, 0.07)
    assert not copy.channels.get().enabled
    assert not copy.sentinels
    assert Machine.objects.get(name="bench-1").state == Machine.State.RETIRED
    assert Triage.objects.get(regression__project=copy).account == "ada"
    assert not Regression.objects.get(project=copy).proving


def test_a_copy_measures_nothing_before_its_repository_is_read(exported: Path, signed_in: Client) -> None:
    import_file(exported)
    run = Run.objects.filter(project__slug="copy", state="done").latest("pk")
    pages = ("/projects/copy/", "/projects/copy/commits/", run.get_absolute_url())
    compared = f"/projects/copy/compare/?base={run.commit.hash}&head=nothing"
    series = Series.objects.filter(configuration__case__project__slug="copy", headline=True)[0]
    for page in (*pages, compared, series.get_absolute_url()):
        shown = signed_in.get(page).content.decode()
        assert "/projects/copy/trigger/" not in shown
        assert "/projects/copy/experiments/new/" not in shown
        assert "what is missing</button>" not in shown
    asking = 'action="/projects/copy/trigger/"'
    problem = signed_in.post("/projects/copy/read-commits/", follow=True)
    assert "can't be read" in shown_text(problem)
    assert "Read the repository" in shown_text(signed_in.get(pages[0]))
    Project.objects.get(slug="copy").note_reading()
    assert [asking in signed_in.get(page).content.decode() for page in pages] == [True, True, True]


def test_the_overview_warns_of_nothing_in_a_copy(exported: Path, signed_in: Client) -> None:
    Regression.objects.all().delete()
    import_file(exported)
    needs, _, rest = shown_text(signed_in.get("/")).partition("Projects")
    assert "Needs you now ✓ Nothing." in needs
    assert "imported copy" in rest
    Run.objects.filter(project__slug="copy").update(requested_at=timezone.now() + timedelta(minutes=1))
    assert "Step time" in shown_text(signed_in.get("/")).partition("Projects")[0]


def test_the_overview_tells_what_was_refused_to_a_copy_here(exported: Path, signed_in: Client) -> None:
    import_file(exported)
    copy = Project.objects.get(slug="copy")
    Trigger.objects.create(project=copy, source="web", state="refused", detail="There is no such commit.")
    needs, _, _ = shown_text(signed_in.get("/")).partition("Projects")
    assert "There is no such commit." in needs


def test_what_was_imported_before_the_upgrade_rests_unless_it_was_measured_here(exported: Path) -> None:
    fill = import_module("dashboard.migrations.0072_imported_at").FILL
    import_file(exported)
    copies = Project.objects.filter(slug="copy")
    newest = Run.objects.filter(project__slug="copy").latest("requested_at")
    for seen_at, imported_at in ((None, newest.requested_at), (timezone.now(), None)):
        copies.update(imported_at=None)
        Machine.objects.update(seen_at=seen_at)
        with connection.cursor() as cursor:
            cursor.execute(fill)
        assert copies.get().imported_at == imported_at


def test_a_second_import_changes_nothing(exported: Path) -> None:
    import_file(exported)
    counts = [table.model._default_manager.count() for table in TABLES]
    assert "nothing changed" in import_file(exported)
    assert [table.model._default_manager.count() for table in TABLES] == counts
    with pytest.raises(CommandError, match="already, and it wasn't made from this file"):
        import_file(exported, "snake")


def line_of(lines: list[Any], table: str) -> int:
    """Where the first row of a table is."""
    return (
        next(at for at, line in enumerate(lines) if isinstance(line, dict) and line.get("table") == table) + 1
    )


def replace_value(lines: list[Any], table: str, column: str, value: Any) -> None:
    at = line_of(lines, table)
    lines[at][lines[at - 1]["columns"].index(column)] = value


@pytest.mark.parametrize(
    ("table", "column", "value", "sentence"),
    [
        ("run", "state", "dome", r"run\[0\]\.state is 'dome', none of"),
        ("run", "commit", 99, r"run\[0\]\.commit is 99, and there is no such row"),
        ("run", "requested_at", "2026-01-01", r"run\[0\]\.requested_at is '2026-01-01', not a time with"),
        (
            "run",
            "requested_at",
            "0001-01-01T00:00:00+14:00",
            r"requested_at is '.*', which no calendar",
        ),
        ("commit", "committed_at", "9999-12-31T23:00:00-14:00", r"committed_at is '.*', which no calendar"),
        ("run", "warning_codes", ["a", 3], r"run\[0\]\.warning_codes\[1\] is 3, not text"),
        ("commit", "hash", "a" * 65, r"commit\[0\]\.hash has 65 characters, at most 64"),
        ("commit", "position", -1, r"commit\[0\]\.position is -1, not from 0"),
        ("commit", "subject", "a\0b", r"commit\[0\] holds a NUL"),
        ("project", "policy", "[policy]\npaths_ignore = 3", r"project\[0\]\.policy can't be taken"),
        ("metric", "unit", "parsec", r"metric\[0\]\.unit is 'parsec'; .* here"),
        ("point", "value", [1.0], r"point\[0\]\.value isn't a list of 4 values"),
        ("point", "value", [1.0, "2", 3.0, 4.0], r"point\[0\]\.value\[1\] is '2', not a finite number"),
        ("point", "run", [0, 1, 2, 9], r"point\[0\]\.run\[3\] is 9, and there is no such row"),
        ("commit", "hash", None, r"commit\[0\]\.hash is None, not text"),
    ],
)
def test_a_bad_value_is_refused_with_its_path(
    exported: Path, tmp_path: Path, table: str, column: str, value: Any, sentence: str
) -> None:
    lines = read_lines(exported)
    replace_value(lines, table, column, value)
    with pytest.raises(CommandError, match=sentence):
        import_file(write_lines(tmp_path / "bad.jsonl", lines))
    assert not Project.objects.filter(slug="copy").exists()
    assert Commit.objects.count() == 4


def test_a_file_that_is_not_whole_is_refused(exported: Path, tmp_path: Path) -> None:
    lines = read_lines(exported)
    short = tmp_path / "short.gz"
    short.write_bytes(exported.read_bytes()[:-2000])
    with pytest.raises(CommandError, match="can't be read: Compressed file ended"):
        import_file(short)
    for at, change, sentence in (
        (0, {"format": "paceline.export/9"}, "format is 'paceline.export/9'; this site reads"),
        (1, {"table": "comet"}, "project.table is 'comet' in line 2"),
        (1, {"columns": ["orbit"]}, r"project.columns\[0\] is 'orbit', which isn't known"),
        (1, {"rows": "many"}, "project.rows is 'many'"),
    ):
        changed = [*lines[:at], lines[at] | change, *lines[at + 1 :]]
        with pytest.raises(CommandError, match=sentence):
            import_file(write_lines(tmp_path / "bad.jsonl", changed))
    cut = line_of(lines, "commit")
    for sentence, changed in (
        ("commit\\[3\\] isn't a list", [*lines[:cut], *lines[cut + 1 :]]),
        ("commit can't be stored: duplicate key", [*lines[:cut], lines[cut], *lines[cut:]]),
        (r"delivery\[0\] isn't a list", lines[:-1]),
    ):
        with pytest.raises(CommandError, match=sentence):
            import_file(write_lines(tmp_path / "bad.jsonl", changed))
    assert not Project.objects.filter(slug="copy").exists()


def test_a_changed_byte_is_noticed(exported: Path, tmp_path: Path) -> None:
    text = gzip.decompress(exported.read_bytes()).replace(b'"Ada"', b'"Eve"', 1)
    path = tmp_path / "changed.jsonl"
    path.write_bytes(text)
    with pytest.raises(CommandError, match="sha256 isn't that of the file's lines"):
        import_file(path)


def test_an_older_file_lacks_columns_and_has_former_names(exported: Path, tmp_path: Path) -> None:
    lines = read_lines(exported)
    head = line_of(lines, "run") - 1
    at = lines[head]["columns"].index("warning_codes")
    for line in lines[head : head + 1 + lines[head]["rows"]]:
        del (line["columns"] if isinstance(line, dict) else line)[at]
    for table in TABLES:
        former = {name: earlier for earlier, name in table.former_columns.items()}
        columns = lines[line_of(lines, table.name) - 1]["columns"]
        columns[:] = [former.get(name, name) for name in columns]
    replace_value(lines, "check", "told", {"comment": "5d0b"})
    import_file(write_lines(tmp_path / "older.jsonl", lines))
    assert Run.objects.filter(commit__project__slug="copy").values_list("warning_codes", flat=True)[0] == []
    assert Document.objects.filter(run__commit__project__slug="copy").count() == 4
    assert Check.objects.get(project__slug="copy").published == {"comment": "5d0b"}


def test_claims_and_checks_stand_in_the_copy_as_they_stood(exported: Path) -> None:
    import_file(exported)
    claim = Claim.objects.get(project__slug="copy")
    assert claim.newest is not None
    assert (claim.standing, claim.newest.verdict, claim.newest.value) == ("holds", "holds", 1.5)
    check = Check.objects.get(project__slug="copy")
    assert (check.answer, check.pull_request and check.pull_request.number) == ("not worse", 7)
    assert check.cases.get().experiment.verdict == "confirmed"


def test_a_file_from_before_a_table_lacks_it(exported: Path, tmp_path: Path) -> None:
    lines, kept, named = read_lines(exported), [], ""
    for line in lines:
        named = line.get("table", "") if isinstance(line, dict) else named
        if named not in LATER_TABLES:
            kept.append(line)
    import_file(write_lines(tmp_path / "older.jsonl", kept))
    assert Run.objects.filter(commit__project__slug="copy").count() == 4
    assert not Claim.objects.filter(project__slug="copy").exists()


def test_lines_are_compressed_as_they_come() -> None:
    lines = [b"x" * 70_000 + b"\n"] * 3
    pieces = list(compress_lines(lines))
    assert len(pieces) == 4
    assert gzip.decompress(b"".join(pieces)) == b"".join(lines)
